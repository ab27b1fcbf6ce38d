"""A local file server that can interrupt, reject ranges, and record requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class HttpHost:
    """The files of a server by path, and the number of bytes after which it ends a connection.

    `content_length` replaces the true length of a file in the header; an `endless` host repeats a file as
    long as a client reads.
    """

    files: dict[str, bytes]
    byte_limit: int | None = None
    supports_ranges: bool = True
    content_length: str | None = None
    endless: bool = False
    address: str = ""
    requests: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def serve(host: HttpHost) -> Iterator[HttpHost]:
    """Yield the host while its server answers requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            host.requests.append((self.path, wanted))
            data = host.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            start = (
                int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and host.supports_ranges else 0
            )
            if start >= len(data):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if not host.endless:
                self.send_header("Content-Length", host.content_length or str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start:][: host.byte_limit])
            with suppress(OSError):  # whoever reads has had enough
                while host.endless:
                    self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
