"""`activemem report` and `activemem serve`: a study's results as a file, or as live web pages."""

from __future__ import annotations

import contextlib
import errno
import socket
from pathlib import Path
from typing import Annotated

import typer

from ... import cli
from ...storage.files import write_file
from ..environment import TOKEN_VARIABLE
from ..json_output import print_json
from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import prepare_output, print_piece, print_stderr, print_stdout, waiting

app = typer.Typer(help="Write a report of a study as one page.", no_args_is_help=True)


@app.command()
def build(
    study: LastRunStudy = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="The output file (default: STUDY.html in the working directory).",
        ),
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a study and its results as an HTML page, and print the name of the file.

    The page begins with the study's question and the answer: claims, tables and figures. Then come its
    design, status, failures, recipes, provenance, the commands to reproduce the study, and the settings. The
    page includes the texts of the study file and of all loaded plug-in files. Exits with 1 if the store has
    no results.
    """
    from ...studies.sections import SECTIONS
    from ..machine_settings import open_results
    from ..missing_results import require_results

    found = open_results(study, results, reads=SECTIONS)
    require_results(found)
    if out is not None and out.suffix.lower() not in ("", ".html", ".htm"):
        raise typer.BadParameter(f"--out: expected a name in .html, got '{out}'")
    path = out or Path(f"{found.study.name}.html")
    prepare_output(path)  # before drawing, so that a wrong path fails early
    with waiting(f"making {path}"):
        write_file(path, found.report())
    if as_json:
        print_json(study=found.study.name, file=path)
    else:
        print_stdout(str(path))


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

    A list of all studies comes first. The page of a study is that of `report build`, with its progress and
    trials, and is renewed as results arrive. Pages are read-only. Only this machine has access, unless --host
    allows others.
    """
    from ...reporting.serve.http_server import Access, PageServer, ServeError

    store = cli.load_settings({"results": results}).store
    access = Access(host=host, token=token or None)
    try:
        server = PageServer(store, access, port, report_fault=print_stderr)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ServeError(
            f"port {port}: expected a free port, got one that is in use; choose another with --port"
        ) from error
    shown = f"[{host}]" if ":" in host else host
    if host in {"0.0.0.0", "::"}:  # every address of this machine
        shown = socket.gethostname()
    print_piece(f"{store.place} at http://{shown}:{server.port}/{'?token=…' if access.token else ''}\n")
    if not store.state().studies:
        print_stderr(f"there is no store in {store.absolute_place} yet; studies appear once they run")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
