"""`activemem report` and `activemem serve`: a study's results as a file, or as live web pages."""

from __future__ import annotations

import contextlib
import errno
import socket
from pathlib import Path
from typing import Annotated, Literal

import typer

from ... import cli, reporting
from ...storage.files import write_file
from ..environment import TOKEN_VARIABLE
from ..json_output import print_page
from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import prepare_output, print_piece, print_stderr, print_stdout, waiting

ReportFormat = Literal["html", "latex", "siunitx"]
"""The formats of a report."""

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
            help="The output file (default: STUDY.html or STUDY.tex in the working directory).",
        ),
    ] = None,
    report_format: Annotated[
        ReportFormat,
        typer.Option(
            "--format",
            help="html: an HTML page; latex: a LaTeX section; siunitx: a LaTeX section whose tables use "
            "the package siunitx to align numbers.",
        ),
    ] = "html",
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    r"""Write a study and its results as an HTML page or a LaTeX section, and print the file names.

    The page begins with the study's question and the answer: claims, tables and figures. Then come its
    design, status, failures, recipes, provenance, the commands to reproduce the study, and the settings. The
    page includes the texts of the study file and of all loaded plug-in files. The LaTeX section has tables,
    figures (PDF files next to it), claims and provenance. Include it with \input in a paper that uses the
    class of NeurIPS, ICML or ACL. Exits with 1 if the store has no results.
    """
    found = cli.open_results(study, results)
    cli.require_results(found, "report", "build")
    suffixes = ("", ".html", ".htm") if report_format == "html" else ("", ".tex")
    if out is not None and out.suffix.lower() not in suffixes:
        expected = f"expected a name in {suffixes[1]} for --format {report_format}"
        raise typer.BadParameter(f"--out: {expected}, got '{out}'")
    path = out or Path(f"{found.study.name}.{'html' if report_format == 'html' else 'tex'}")
    prepare_output(path)  # before drawing, so that a wrong path fails early
    files: list[Path] = []
    with waiting(f"making {path}"):
        if report_format == "html":
            write_file(path, found.report())
        else:
            section = found.latex_section(report_format)
            write_file(path, section.text)
            for name, drawn in section.figures.items():
                write_file(path.with_name(name), drawn)
                files.append(path.with_name(name))
    files.append(path)
    if as_json:
        print_page("report build", study=found.study.name, files=files)
    else:
        print_stdout("\n".join(map(str, files)))


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

    Claims, tables, figures, progress, learning curves and failures are updated as results arrive. Pages are
    read-only. Only this machine has access, unless --host allows others.
    """
    store = cli.load_settings({"results": results}).store
    access = reporting.Access(host=host, token=token or None)
    try:
        server = reporting.PageServer(store, access, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise reporting.ServeError(
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
