"""`activemem report`: a study and all its results on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import print_json, print_stdout, print_waiting

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
            help="The output file (default: STUDY.html or STUDY.tex in this folder).",
        ),
    ] = None,
    report_format: Annotated[
        ReportFormat,
        typer.Option("--format", help="An HTML page or a LaTeX section; siunitx aligns numbers."),
    ] = "html",
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    r"""Write a self-contained HTML page, or a LaTeX section, and print the file names.

    The page has the study's question, recipes, tables, figures, claims, failures, settings and provenance,
    and the commands to reproduce it. The section has tables, figures (PDF files beside it), claims and
    provenance. A paper in the classes of NeurIPS, ICML and ACL includes it by \input. Exits with 1 if the
    store has no results.
    """
    from ..machine_settings import open_results
    from ..missing_results import require_results

    found = open_results(study, results)
    require_results(found)
    suffixes = ("", ".html", ".htm") if report_format == "html" else ("", ".tex")
    if out is not None and out.suffix.lower() not in suffixes:
        expected = f"expected a name in {suffixes[1]} for --format {report_format}"
        raise typer.BadParameter(f"--out: {expected}, got '{out}'")
    path = out or Path(f"{found.study.name}.{'html' if report_format == 'html' else 'tex'}")
    path.parent.mkdir(parents=True, exist_ok=True)  # now, so that a wrong path costs no drawing
    files: list[Path] = []
    print_waiting(f"making {path}")
    if report_format == "html":
        path.write_text(found.report(), encoding="utf-8")
    else:
        section = found.latex_section(report_format)
        path.write_text(section.text, encoding="utf-8")
        for name, drawn in section.figures.items():
            path.with_name(name).write_bytes(drawn)
            files.append(path.with_name(name))
    files.append(path)
    if as_json:
        from ..pages import ReportBuildPage

        print_json(ReportBuildPage(study=found.study.name, files=files))
    else:
        print_stdout("\n".join(map(str, files)))
