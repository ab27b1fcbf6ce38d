"""The HTTP server for the web pages of a store.

A connection has one request. Its number is limited, and so is the time of a request, so that clients that
send nothing keep no other from the pages.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ...errors import ActivememError
from ...storage import Store
from .pages import SCRIPT, Pages

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

    def check(self, *, host: str, token: str, bearer: str, cookie: str) -> Verdict:
        """Return whether a request is allowed, or the reason why it is not.

        `token` is from its address, and `bearer` from its header Authorization.
        """
        if self.token is None:
            return "allowed" if _is_loopback(_without_port(host)) else "wrong host"
        if _equal(token, self.token):
            return "allowed with a token"
        if _equal(bearer, self.token):
            return "allowed"
        return "allowed" if _equal(cookie, self.cookie) else "no token"


def _without_port(host: str) -> str:
    found = re.fullmatch(r"(?:\[([^\]]*)\]|([^:]*))(?::\d*)?", host)
    return (found[1] or found[2] or "") if found else ""


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


MAX_CONNECTIONS = 64
"""The maximum number of open connections. Further ones wait for one to end."""

PATIENCE_S = 0.5
"""The seconds after which a connection that has not sent its request makes room for one that waits."""

REQUEST_S, ANSWER_S = 10.0, 30.0
"""The seconds in which a client must send its request, and in which it must take the answer."""

_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class PageServer:
    """Server of the pages of a store. It raises OSError if the address is taken."""

    def __init__(
        self,
        store: Store,
        access: Access,
        port: int,
        look_s: float | None = None,
        report_fault: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Listen on a port (0: any free one). The store is read at most each `look_s` seconds.

        `report_fault` gets a line for each different fault of a page.
        """
        self.pages = Pages(store, look_s, report_fault)
        self._server = _Server(access, port, self.pages)
        self.port: int = self._server.server_address[1]

    def serve_forever(self) -> None:
        """Serve requests until `shutdown`. Raise KeyboardInterrupt after Ctrl-C."""
        with self._server:
            self._server.serve_forever()

    def shutdown(self) -> None:
        """Stop the server, from another thread."""
        self._server.shutdown()


class _Server(ThreadingHTTPServer):
    """Server with a thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, access: Access, port: int, pages: Pages) -> None:
        self.address_family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
        self.access, self.pages = access, pages
        self._changed = threading.Condition()
        self._open = 0
        self._waiting: dict[socket.socket, float] = {}  # when each was accepted, the oldest first
        super().__init__((access.host, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer would look up the name of this machine, which can take seconds
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(0.1)  # without free descriptors, the loop would call this again at once
            raise

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as in socketserver
        with self._changed:
            while self._open >= MAX_CONNECTIONS:
                self._cut_late(PATIENCE_S)
                self._changed.wait(PATIENCE_S / 10)
            self._open += 1
            self._waiting[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        with self._changed:
            self._cut_late(REQUEST_S)

    def _cut_late(self, seconds: float) -> None:
        """Cut off the connections that have not sent their request in this time."""
        latest = time.monotonic() - seconds
        for late in [each for each, since in self._waiting.items() if since < latest]:
            del self._waiting[late]
            with suppress(OSError):
                late.shutdown(socket.SHUT_RDWR)  # its thread reads an end, and closes it

    def begin_answer(self, request: socket.socket) -> None:
        """Note that a connection has sent its request."""
        with self._changed:
            self._waiting.pop(request, None)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 -- as in socketserver
        with self._changed:
            self._open -= 1
            self._waiting.pop(request, None)
            self._changed.notify()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as in socketserver
        """Report a fault of this program. The error of a connection is none: the client has gone."""
        if (error := sys.exception()) is not None and not isinstance(error, OSError):
            self.pages.report_fault(error)


class _Handler(BaseHTTPRequestHandler):
    """Handler of one connection with one request."""

    timeout = ANSWER_S

    @property
    def _server(self) -> _Server:
        return cast("_Server", self.server)

    def parse_request(self) -> bool:
        found = super().parse_request()
        self._server.begin_answer(self.connection)
        return found

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query))
        cookie = f"activemem-{self._server.server_address[1]}"  # all ports of a machine share cookies
        hosts = self.headers.get_all("Host", [])
        verdict = self._server.access.check(
            host=hosts[0] if len(hosts) == 1 else "",
            token=query.get("token", ""),
            bearer=self.headers.get("Authorization", "").removeprefix("Bearer "),
            cookie=self._cookie(cookie),
        )
        match verdict:
            case "wrong host":
                self.send_error(421, "Expected a name of this machine in the address, such as localhost.")
            case "no token":
                self.send_error(401, "Expected the token in the address, as in ?token=…")
            case "allowed with a token":  # set a cookie, and redirect to the address without the token
                rest = urlencode({name: value for name, value in query.items() if name != "token"})
                # with two slashes at its start, the address would name another server
                where = "/" + address.path.lstrip("/") + (f"?{rest}" if rest else "")
                value = f"{cookie}={self._server.access.cookie}; HttpOnly; Path=/; SameSite=strict"
                self._send(303, b"", {"Location": where, "Set-Cookie": value})
            case "allowed" if address.path == "/live.js":
                self._send(200, SCRIPT, {"Content-Type": "text/javascript; charset=utf-8"})
            case "allowed":
                self._send_page([unquote(word) for word in address.path.split("/") if word])

    do_HEAD = do_GET  # noqa: N815 -- as in the base class

    def _cookie(self, name: str) -> str:
        with suppress(CookieError):
            found = SimpleCookie(self.headers.get("Cookie", "")).get(name)
            return found.value if found else ""
        return ""

    def _send_page(self, words: list[str]) -> None:
        page = self._server.pages.page(words)
        headers = {"ETag": page.version, "Content-Type": "text/html; charset=utf-8"}
        if self.headers.get("If-None-Match") == page.version:
            self._send(304, b"", headers)
        else:
            self._send(page.status, self._server.pages.render(page).encode(), headers)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send one line of text. The base class calls this for requests that it cannot read."""
        words = message or HTTPStatus(code).phrase
        self._send(code, f"{words}\n".encode(), {"Content-Type": "text/plain; charset=utf-8"})

    def _send(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in (_HEADERS | headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "activemem"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: addresses may have a token."""
