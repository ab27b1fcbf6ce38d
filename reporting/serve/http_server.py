"""The HTTP server for the web pages of a store.

An event (server-sent event) tells an open page that it has changed, and its script then asks for it again.
Pages need no script except for this.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ...errors import ActivememError
from ...storage import Store
from ..tables.render.html import STYLE_SOURCE
from .site import Site, SitePage

MIN_TOKEN_LENGTH = 16

Verdict = Literal["allowed", "allowed with a token", "wrong host", "no token"]


class ServeError(ActivememError):
    """Error for an invalid option of the server. It states the expected and the actual value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access rules of the server: which requests it answers.

    Without a token, the Host header of a request must name this machine's loopback address. Otherwise a
    foreign web site could read the pages by DNS rebinding. With a token, a request needs the token, or the
    cookie that a browser gets for it. A foreign site has neither.

    Raises ServeError if other machines can reach the host without a token, or if the token is short.
    """

    host: str
    token: str | None = None
    cookie: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    """what a browser sends instead of the token; it becomes invalid when this process ends"""

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
        """Return whether a request is allowed, or the reason why it is not."""
        if self.token is None:
            return "allowed" if _is_loopback(_without_port(headers.get("Host", ""))) else "wrong host"
        if _equal(query.get("token", ""), self.token):
            return "allowed with a token"
        if _equal(headers.get("Authorization", "").removeprefix("Bearer "), self.token):
            return "allowed"
        return "allowed" if _equal(cookie, self.cookie) else "no token"


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_loopback(host: str) -> bool:
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _equal(given: str, expected: str) -> bool:
    # in constant time, so that the time of an answer does not reveal a part of the token
    return secrets.compare_digest(given.encode(errors="surrogateescape"), expected.encode())


GRACE_S = 1
"""The seconds after which open requests are cut off when the server stops."""

_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    f"style-src 'self' {STYLE_SOURCE}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_STATIC = Path(__file__).with_name("static")
_PAGE_STYLE = Path(__file__).parents[1] / "page" / "templates" / "style.css"


class PageServer:
    """Server of the pages of a store. It raises OSError if the address is taken."""

    def __init__(self, store: Store, access: Access, port: int, look_s: float | None = None) -> None:
        """Listen on a port (0: any free one). Open pages check the store each `look_s` seconds."""
        self.site, self.access = Site(store, look_s), access
        family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
        # made here, not by uvicorn, so that a taken address raises an error at once
        self._socket = socket.create_server((access.host, port), family=family)
        self.port: int = self._socket.getsockname()[1]
        routes = [
            Route("/static/style.css", lambda _: Response(_PAGE_STYLE.read_bytes(), media_type="text/css")),
            Mount("/static", StaticFiles(directory=_STATIC)),
            Route("/events/{path:path}", self._events),
            Route("/{path:path}", self._page),
        ]
        guard = Middleware(BaseHTTPMiddleware, dispatch=self._guard)
        self._server = uvicorn.Server(
            uvicorn.Config(
                Starlette(routes=routes, middleware=[guard]),
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

    async def _guard(self, request: Request, answer: RequestResponseEndpoint) -> Response:
        query, cookie = request.query_params, request.cookies.get(self._cookie_name, "")
        match self.access.check(request.headers, query, cookie):
            case "wrong host":
                words = "Expected a name of this machine in the address, such as localhost.\n"
                return PlainTextResponse(words, 421)
            case "no token":
                return PlainTextResponse("Expected the token in the address, as in ?token=…\n", 401)
            case "allowed with a token":  # set a cookie, and redirect to the address without the token
                rest = urlencode({name: value for name, value in query.items() if name != "token"})
                # with two slashes at its start, the address would name another server
                where = "/" + request.url.path.lstrip("/") + (f"?{rest}" if rest else "")
                redirect = RedirectResponse(where, 303)
                redirect.set_cookie(self._cookie_name, self.access.cookie, httponly=True, samesite="strict")
                return redirect
            case "allowed":
                return await answer(request)

    async def _found(self, request: Request) -> tuple[SitePage, str]:
        """Return the page at an address, and a text that changes with it."""
        words = [word for word in request.path_params["path"].split("/") if word]
        page = await run_in_threadpool(self.site.page, words, request.query_params)
        # the time of reading, which is around the sections, is no change
        return page, f'"{sha256(repr(page).encode()).hexdigest()[:16]}"'

    async def _page(self, request: Request) -> Response:
        try:
            page, version = await self._found(request)
        except ActivememError as error:  # for example an unreadable store
            return PlainTextResponse(f"{error}\n", 500)
        if request.headers.get("If-None-Match") == version:
            return Response(status_code=304)
        return HTMLResponse(self.site.render(page), page.status, {"ETag": version})

    async def _events(self, request: Request) -> Response:
        async def versions() -> AsyncIterator[str]:
            told = ""
            while not self._server.should_exit:
                _, version = await self._found(request)
                # a comment in place of an event shows whether the browser is still there
                yield ":\n\n" if version == told else f"data: {version}\n\n"
                told = version
                await asyncio.sleep(self.site.look_s)

        return StreamingResponse(versions(), media_type="text/event-stream")
