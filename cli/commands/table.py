"""`activemem table`: the tables of a study, as in a paper."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ... import cli, reporting
from ...reporting.tables.render import own_format_names
from ..help_panels import EVERY_DAY
from ..json_output import print_json
from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import has_styles, output_width, print_stderr, print_stdout

_FORMATS = "|".join(own_format_names())  # here, since annotations are evaluated several times

app = typer.Typer(help="Print the tables that a study file describes.", no_args_is_help=True)


@app.command(rich_help_panel=EVERY_DAY)
def render(
    study: LastRunStudy = None,
    *,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="The name of a table (default: all tables).")
    ] = None,
    table_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar=_FORMATS,
            help="The output format, or the name of a plug-in's format. rich is for terminals; siunitx is "
            "LaTeX that uses the package siunitx to align numbers.",
        ),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Show the paper's numbers next to the results.")
    ] = False,
    paper: Annotated[
        str | None,
        typer.Option(
            "--paper",
            metavar="PAPER",
            help="Without a STUDY: show all numbers of this paper, or of a CSV file of published "
            "numbers, next to the measured ones.",
        ),
    ] = None,
    notes: Annotated[
        bool, typer.Option("--notes", help="Say below each table how its numbers were computed and tested.")
    ] = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the tables of a study from its results in the store.

    If STUDY is a name, the command uses this study as it last ran, with its --set overrides. If STUDY is a
    path, it uses the file as it is now. With --paper, it prints the tables of a paper as they were published,
    with the measured numbers added.
    """
    from ...reporting.tables.render import render as render_table
    from ...reporting.tables.render import rich
    from ...reporting.tables.table import CellStatus, iter_records
    from ...studies.last_run import load_last_run
    from ..missing_results import note_missing_results, note_other_versions, require_readable

    found = cli.load_settings({"results": results, "format": table_format})
    chosen = None
    if paper is None:
        reads = ("table", "source") if published else ("table",)
        chosen = reporting.StudyResults(load_last_run(study, found.store, reads=reads), found.store)
        tables = chosen.tables(table, published=published)
        # a spread shows that trials have ended, without another reading of the store
        if not any(cell.spread for each in tables for row in each.cells for cell in row):
            note_missing_results(chosen)
    elif study is None:
        tables = reporting.tables_of_paper(paper, found.store, table)
    else:
        raise reporting.TableError(f"expected a study or a paper, got {study} and --paper {paper}")
    if as_json:
        if table_format is not None:
            raise typer.BadParameter(f"expected --json or --format {table_format}, got both")
        print_json(cells=[cell for each in tables for cell in iter_records(each)])
    else:
        form, ansi = found.values.format, has_styles(sys.stdout)
        shown = [
            rich.render(each, width=output_width(), ansi=ansi, notes=notes)
            if form == "rich"
            else render_table(each, form)
            for each in tables
        ]
        print_stdout("\n".join(shown), styled=True)
        if form in ("latex", "siunitx"):
            from ...reporting.tables.render.latex import unicode_note

            if needed := unicode_note("\n".join(shown)):
                print_stderr(f"this LaTeX code {needed}")
    gaps = {CellStatus.MISSING, CellStatus.PARTIAL}
    statuses = {cell.status for each in tables for row in each.cells for cell in row}
    if chosen is not None and statuses & gaps:  # otherwise the store need not be read again
        if not as_json:
            note_other_versions(chosen, where_missing=True)
        require_readable(chosen)
