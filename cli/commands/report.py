"""`activemem report`: a study and all its results on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import LastRunStudy, ResultsOption
from ..output import print_stdout

app = typer.Typer(help="Write a study up as a page.", no_args_is_help=True)


@app.command()
def build(
    study: LastRunStudy = None,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page's file; else STUDY.html in this folder.")
    ] = None,
    results: ResultsOption = None,
) -> None:
    """Write one HTML page that needs nothing else, and print its name.

    It has the study's question, recipes, tables, figures, claims, failures, settings and provenance, and the
    commands that repeat it.
    """
    from ...reporting.results import open_study
    from ..machine_settings import load_settings

    found = open_study(study, load_settings({"results": results}).store)
    path = out or Path(f"{found.study.name}.html")
    path.write_text(found.report(), encoding="utf-8")
    print_stdout(str(path))
