"""`activemem serve`: the studies of a store as pages in a browser, while they run."""

from __future__ import annotations

import contextlib
import errno
from typing import Annotated

import typer

from .options import ResultsOption
from .output import print_piece, print_stderr
from .settings_file import TOKEN_VARIABLE

DEFAULT_PORT = 8765


def serve(
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="N", help="The port; 0 takes any free port.")
    ] = DEFAULT_PORT,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDR", help="The address to listen on; any other than localhost needs a token."
        ),
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            envvar=TOKEN_VARIABLE,
            help="The secret that a browser must send to see the pages.",
        ),
    ] = None,
    results: ResultsOption = None,
) -> None:
    """Show studies in a browser while they run, until Ctrl-C.

    Progress, learning curves, tables, figures, claims and failures are updated as rows arrive. Pages are
    read-only. Only this machine has access, unless --host allows others.
    """
    from ..reporting.serve.http_server import Access, PageServer, ServeError
    from .machine_settings import load_settings

    store = load_settings({"results": results}).store
    access = Access(host=host, token=token or None)
    try:
        server = PageServer(store, access, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ServeError(f"port {port}: expected a free one, got one that is in use; see --port") from error
    shown = f"[{host}]" if ":" in host else host
    print_piece(f"{store.place} at http://{shown}:{server.port}/{'?token=…' if access.token else ''}\n")
    if not store.state().studies:
        print_stderr(f"there is no store in {store.absolute_place} yet; studies appear once they run")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
