"""Answers requests over HTTP, each in a thread of its own; a page that is open gets what changes as events.

The standard library's server is enough for pages that a few people read, and adds nothing to install. A page
needs no script but for this: it is whole without, and its events (server-sent events) are parts of it, made
once for all who look.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ...errors import ActivememError
from ...storage import Store
from ..tables.render.html import STYLE_SOURCE
from .access import Access
from .site import Answer, Site

EVENTS = "/events"

PATIENCE_S = 30.0
"""A request must be there, and a browser must take what it gets, within this time."""

HEARTBEAT_S = 15.0
"""After so long without an event a comment is sent, which shows who has gone."""

MAX_STREAMS = 64
"""So many pages at most are told of changes."""

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
_REFUSALS = {
    "wrong host": (421, "Expected a name of this machine in the address, such as localhost."),
    "no token": (401, "Expected the token in the address, as in ?token=…"),
}

_log = logging.getLogger(__name__)


class PageServer(ThreadingHTTPServer):
    """Serves the pages of a store until it is shut down; raises OSError where the address is taken."""

    daemon_threads = True

    def __init__(self, store: Store, access: Access, port: int, look_s: float | None = None) -> None:
        """Listen at a port, 0 for any, and look at the store every `look_s` seconds while somebody looks."""
        self.site, self.access = Site(store, look_s), access
        self.streams = threading.BoundedSemaphore(MAX_STREAMS)
        self.ending = threading.Event()
        if ":" in access.host:
            self.address_family = socket.AF_INET6
        super().__init__((access.host, port), _Handler)

    @property
    def port(self) -> int:
        """Return the port that it listens to."""
        return self.socket.getsockname()[1]

    @property
    def cookie_name(self) -> str:
        """Return the cookie of this server: all ports of a machine share cookies."""
        return f"activemem-{self.port}"

    def shutdown(self) -> None:
        """End, and tell no page of anything more."""
        self.ending.set()
        super().shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as the base class has it
        """Ignore a browser that has disconnected."""
        _log.debug("a request of %s ended early", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "activemem", ""
    timeout = PATIENCE_S
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride] -- the only one that makes handlers

    def do_GET(self) -> None:
        """Answer a request that may be answered."""
        self._answer_request()

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self._answer_request()

    def _refuse(self) -> None:
        self._send_text(405, "Expected GET: nothing here can be changed.", {"Allow": "GET, HEAD"})

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse  # noqa: N815 -- the names of the base class

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing of a request, whose address may have a token."""

    def _answer_request(self) -> None:
        address = urlsplit(self.path)
        try:
            path, query = unquote(address.path), dict(parse_qsl(address.query, max_num_fields=32))
        except ValueError:
            self._send_text(400, "Expected an address with at most 32 parts in its query.")
            return
        verdict = self.server.access.judge(dict(self.headers), query, self.server.cookie_name)
        if verdict in _REFUSALS:
            self._send_text(*_REFUSALS[verdict])
            return
        if verdict == "welcome with a token":
            self._exchange_token(address.path, query)
            return
        try:
            if path == EVENTS or path.startswith(f"{EVENTS}/"):
                self._send_events(path.removeprefix(EVENTS) or "/", query)
            else:
                self._send(self.server.site.answer(path, query))
        except ActivememError as error:  # such as a store that cannot be read
            self._send_text(500, str(error))

    def _exchange_token(self, path: str, query: Mapping[str, str]) -> None:
        """Give a cookie for the token, and send the browser to the address without it."""
        rest = urlencode({name: value for name, value in query.items() if name != "token"})
        cookie = f"{self.server.cookie_name}={self.server.access.cookie}; HttpOnly; SameSite=Strict; Path=/"
        where = "/" + path.lstrip("/") + (f"?{rest}" if rest else "")
        self._send_text(303, "", {"Location": where, "Set-Cookie": cookie})

    def _send(self, answer: Answer) -> None:
        """Send an answer; a page goes piece by piece as it is made, and ends with the connection."""
        first = next(answer.content, b"")
        self._start(
            answer.status,
            {
                "Content-Type": answer.kind,
                "Cache-Control": "max-age=31536000, immutable" if answer.fixed else "no-store",
                "Connection": "close",
            },
        )
        if self.command == "HEAD":
            return
        self.wfile.write(first)
        for piece in answer.content:
            self.wfile.write(piece)

    def _send_text(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        data = f"{text}\n".encode(errors="replace")
        own = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(data))}
        self._start(status, {**own, "Connection": "close", **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **headers}.items():
            self.send_header(name, value)
        self.close_connection = True
        self.end_headers()

    def _send_events(self, path: str, query: dict[str, str]) -> None:
        """Send the parts of a page that differ from what its browser has, until it goes."""
        told = (each.partition(":") for each in query.pop("have", "").split(","))
        have = {name: version for name, _, version in told}
        if self.server.site.live_page(path, query) is None:
            self._send_text(404, "There is no such page.")
            return
        if not self.server.streams.acquire(blocking=False):
            self._send_text(503, f"Expected at most {MAX_STREAMS} open pages.")
            return
        try:
            self._start(200, {"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
            if self.command != "HEAD":
                self._follow(path, query, have)
        finally:
            self.server.streams.release()

    def _follow(self, path: str, query: Mapping[str, str], have: dict[str, str]) -> None:
        """Look again and again, and send what has changed."""
        spoken = 0.0
        while not self.server.ending.is_set():
            page = self.server.site.live_page(path, query)
            if page is None:  # the study is gone
                return
            for part in page.parts:
                version, markup = part.render()
                if have.get(part.id) != version:
                    have[part.id] = version
                    self._send_event("part", {"id": part.id, "markup": markup})
                    spoken = time.monotonic()
            if time.monotonic() - spoken > HEARTBEAT_S:
                self._send_event("beat", {})
                spoken = time.monotonic()
            self.server.ending.wait(self.server.site.look_s)

    def _send_event(self, name: str, data: object) -> None:
        self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
