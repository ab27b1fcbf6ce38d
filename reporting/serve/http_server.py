"""The HTTP server for the web pages of a store.

It sends changes to open pages as events. Pages need no script except for these updates. The events
(server-sent events) contain parts of a page, each made once for all viewers.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import secrets
import socket
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ...errors import ActivememError
from ...storage import Store
from ..tables.render.html import STYLE_SOURCE
from .site import Site

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MIN_TOKEN_LENGTH = 16

Verdict = Literal["allowed", "allowed with a token", "wrong host", "no token"]


class ServeError(ActivememError):
    """Error for an invalid option of the server. It states the expected and the actual value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access rules of the server: which requests it answers.

    A request needs a valid Host header and, if a token is set, this token. The Host header must name this
    machine. Raises ServeError if other machines can reach the host without a token, or if the token is short.
    """

    host: str
    token: str | None = None
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < MIN_TOKEN_LENGTH:
            raise ServeError(
                f"token: expected at least {MIN_TOKEN_LENGTH} characters, got {len(self.token)}; "
                f"for instance {secrets.token_urlsafe(18)}"
            )
        if self.token is None and not _is_loopback(self.host):
            raise ServeError(
                f"--host {self.host}: expected 127.0.0.1, or a token (--token, ACTIVEMEM_TOKEN), "
                "since other machines can reach this address"
            )

    def check(self, headers: Mapping[str, str], query: Mapping[str, str], cookie: str) -> Verdict:
        """Return whether a request is allowed, or the reason why it is not.

        A browser with the token in its query gets a cookie instead.
        """
        if not self.names_this_machine(headers.get("Host", "")):
            return "wrong host"
        if self.token is None:
            return "allowed"
        if _equal(query.get("token", ""), self.token):
            return "allowed with a token"
        if _equal(headers.get("Authorization", "").removeprefix("Bearer "), self.token):
            return "allowed"
        return "allowed" if _equal(cookie, self.cookie) else "no token"

    @property
    def cookie(self) -> str:
        """Return the cookie that a browser sends instead of the token.

        It becomes invalid when this process ends.
        """
        return hmac.new(self._key, (self.token or "").encode(), hashlib.sha256).hexdigest()

    def names_this_machine(self, host: str) -> bool:
        """Return whether a Host header names this machine.

        The port is ignored.

        Without this check, a foreign web site could read the pages by DNS rebinding. With a token, the host
        names of this machine are allowed, and all numeric addresses, since DNS cannot rebind these.
        """
        name = _without_port(host).lower().removesuffix(".")
        if name == "localhost" or name.endswith(".localhost") or _is_loopback(name):
            return True
        if self.token is None:
            return False
        known = {self.host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
        return name in known or _is_address(name)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


def _equal(given: str, expected: str) -> bool:
    # in constant time, so that the time of an answer does not reveal a part of the token
    return hmac.compare_digest(given.encode(errors="surrogateescape"), expected.encode())


EVENTS = "/events"

MAX_STREAMS = 64
"""The maximum number of open pages that receive updates."""

MAX_QUERY_PARTS = 32

HEARTBEAT_S = 15.0
"""The seconds without an event after which a comment is sent, to detect closed browsers."""

GRACE_S = 1
"""The seconds after which open requests are cut off when the server stops."""

_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    f"style-src 'self' {STYLE_SOURCE}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class PageServer:
    """Server of the pages of a store. It raises OSError if the address is taken."""

    def __init__(self, store: Store, access: Access, port: int, look_s: float | None = None) -> None:
        """Listen on a port (0: any free one).

        While a page is open, the store is checked each `look_s` seconds.
        """
        self.site, self.access = Site(store, look_s), access
        family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
        # made here, not by uvicorn, so that a taken address raises an error at once
        self._socket = socket.create_server((access.host, port), family=family)
        self.port: int = self._socket.getsockname()[1]
        self._streams = 0
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._answer,
                interface="asgi3",
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,  # do not log addresses, which may have a token
                server_header=False,
                headers=list(_HEADERS.items()),
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    def serve_forever(self) -> None:
        """Serve requests until `shutdown`. Raise KeyboardInterrupt after Ctrl-C."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def shutdown(self) -> None:
        """Stop the server; open pages get no further updates."""
        self._server.should_exit = True

    @property
    def _cookie_name(self) -> str:
        return f"activemem-{self.port}"  # all ports of a machine share cookies

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._response(Request(scope))
        except ActivememError as error:  # for example an unreadable store
            response = _text(500, str(error))
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        path: str = request.scope["path"]
        query = {name: value for name, value in request.query_params.items() if value}
        if other := self._refusal(request, query):
            return other
        if path == EVENTS or path.startswith(f"{EVENTS}/"):
            return await self._events(request.method, path.removeprefix(EVENTS) or "/", query)
        answer = await run_in_threadpool(self.site.answer, path, query)
        # The first piece is made here, so that an unreadable store still changes the status.
        first = await run_in_threadpool(next, answer.content, b"")
        caching = "max-age=31536000, immutable" if answer.fixed else "no-store"
        return StreamingResponse(
            chain([first], answer.content),
            answer.status,
            {"Content-Type": answer.kind, "Cache-Control": caching},
        )

    def _refusal(self, request: Request, query: dict[str, str]) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return _text(405, "Expected GET: these pages are read-only.", {"Allow": "GET, HEAD"})
        if len(request.query_params.multi_items()) > MAX_QUERY_PARTS:
            return _text(400, f"Expected an address with at most {MAX_QUERY_PARTS} parts in its query.")
        match self.access.check(request.headers, query, request.cookies.get(self._cookie_name, "")):
            case "wrong host":
                return _text(421, "Expected a name of this machine in the address, such as localhost.")
            case "no token":
                return _text(401, "Expected the token in the address, as in ?token=…")
            case "allowed with a token":  # set a cookie, and redirect to the address without the token
                rest = urlencode({name: value for name, value in query.items() if name != "token"})
                raw = request.scope["raw_path"].decode("ascii")
                # with two slashes at its start, the address would name another server
                where = "/" + raw.lstrip("/") + (f"?{rest}" if rest else "")
                cookie = f"{self._cookie_name}={self.access.cookie}; HttpOnly; SameSite=Strict; Path=/"
                return _text(303, "", {"Location": where, "Set-Cookie": cookie})
            case "allowed":
                return None

    async def _events(self, method: str, path: str, query: dict[str, str]) -> Response:
        """Stream changed parts of a page until the browser disconnects.

        `have` in the query lists the versions of the parts that the browser already has.
        """
        parts = (each.partition(":") for each in query.pop("have", "").split(","))
        have = {name: version for name, _, version in parts}
        if await run_in_threadpool(self.site.live_page, path, query) is None:
            return _text(404, "No page has this address.")
        if self._streams >= MAX_STREAMS:
            return _text(503, f"Expected at most {MAX_STREAMS} open pages.")
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        if method == "HEAD":
            return Response(headers=headers)
        return StreamingResponse(self._changes(path, query, have), headers=headers)

    async def _changes(self, path: str, query: Mapping[str, str], have: dict[str, str]) -> AsyncIterator[str]:
        self._streams += 1
        spoken = time.monotonic()
        try:
            while not self._server.should_exit:
                page = await run_in_threadpool(self.site.live_page, path, query)
                if page is None:  # the study is gone
                    return
                for part in page.parts:
                    version, markup = await run_in_threadpool(part.render)
                    if have.get(part.id) != version:
                        have[part.id] = version
                        # JSON has no line breaks, which would end the event
                        yield f"event: part\ndata: {json.dumps({'id': part.id, 'markup': markup})}\n\n"
                        spoken = time.monotonic()
                if time.monotonic() - spoken > HEARTBEAT_S:
                    yield ":\n\n"
                    spoken = time.monotonic()
                await asyncio.sleep(self.site.look_s)
        finally:
            self._streams -= 1


def _text(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers)
