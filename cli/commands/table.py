"""`activemem table`: what a study found, as a paper prints it."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ...studies.text.units import WIDTH
from ..options import ResultsOption
from ..output import exit_on_error, print_stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ...reporting.tables.table import Table
    from ...storage import Store
    from ...studies.schema.table import TableSpec
    from ...studies.study import Study

app = typer.Typer(help="Make the tables of a paper from a study's results.", no_args_is_help=True)


class TableFormat(StrEnum):
    """What a table can be rendered as."""

    RICH = "rich"
    MARKDOWN = "markdown"
    LATEX = "latex"
    HTML = "html"
    CSV = "csv"


@app.command()
def render(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="A study by its name or file; else the last one.")
    ] = None,
    *,
    table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="One table; else all.")] = None,
    table_format: Annotated[
        TableFormat | None, typer.Option("--format", help="How to write it; rich is for eyes.")
    ] = None,
    published: Annotated[bool, typer.Option("--published", help="Put the paper's numbers beside.")] = False,
    paper: Annotated[
        str | None,
        typer.Option("--paper", metavar="PAPER", help="All that a paper printed, ours beside; no STUDY."),
    ] = None,
    results: ResultsOption = None,
) -> None:
    """Print a study's tables from what the store holds of it, or a paper's from what is published.

    A name means the study as it was last run, with its overrides; a path means the file.
    """
    from ...reporting.tables.table import TableError
    from ...storage import Store, StoreError
    from ...studies.text.errors import StudyError
    from ..machine_settings import SettingsError, load_settings

    with exit_on_error(SettingsError, StoreError, StudyError, TableError, OSError):
        found = load_settings({"results": results, "format": table_format and table_format.value})
        store = Store(found.results)
        if paper is None:
            tables = _study_tables(study, table, store, published=published)
        elif study is None:
            tables = _tables_of_paper(paper, table, store)
        else:
            raise TableError(f"expected a study or a paper, got {study} and --paper {paper}")
    print_stdout("\n".join(_render_table(each, TableFormat(found.values.format)) for each in tables))


def _study_tables(
    study_argument: str | None, name: str | None, store: Store, *, published: bool
) -> Sequence[Table]:
    """The tables of a study, or the one of that name."""
    from ...reporting.probe_metrics import displayed_metrics
    from ...reporting.tables.build import build_table
    from ...studies.lookup import load_last_run

    study = load_last_run(study_argument, store)
    outcomes = store.trials(displayed_metrics([study]))
    begun = _begun([study], store, outcomes)
    return [
        build_table(study, spec, outcomes, published=published, begun=begun)
        for spec in _select_tables(study, name)
    ]


def _tables_of_paper(paper: str, name: str | None, store: Store) -> Sequence[Table]:
    """The tables of a paper, or the one of that name, with the studies of it that come along or ran here."""
    from ...reporting.probe_metrics import displayed_metrics
    from ...reporting.tables.paper_tables import paper_tables, published_tables_of, studies_of_paper

    printed, studies = published_tables_of(paper, name), studies_of_paper(paper, store)
    outcomes = store.trials(displayed_metrics(studies))
    return paper_tables(printed, studies, outcomes, _begun(studies, store, outcomes))


def _begun(studies: Sequence[Study], store: Store, outcomes: pl.DataFrame) -> set[str]:
    """The trials that have a checkpoint and no outcome."""
    from ...studies.planning.status import started_trials

    held = set(outcomes["trial"])
    return {trial for study in studies for trial in started_trials(study, store, held)}


def _select_tables(study: Study, name: str | None) -> list[TableSpec]:
    """The tables that are asked for; TableError if there are none."""
    from ...reporting.tables.table import TableError
    from ...studies.text.errors import nearest_hint

    if not study.tables:
        raise TableError(f"study {study.name} asks for no table: it has no [[table]]")
    names = [spec.name for spec in study.tables]
    if name is not None and name not in names:
        raise TableError(f"study {study.name} has no table '{name}'{nearest_hint(name, names)}")
    return [spec for spec in study.tables if name in (None, spec.name)]


def _render_table(table: Table, table_format: TableFormat) -> str:
    from ...reporting.tables import render as renderers

    match table_format:
        case TableFormat.RICH:
            at_terminal = sys.stdout.isatty()
            width = shutil.get_terminal_size((WIDTH, 24)).columns if at_terminal else WIDTH
            return renderers.to_terminal(
                table, width=width, ansi=at_terminal and "NO_COLOR" not in os.environ
            )
        case TableFormat.MARKDOWN:
            return renderers.to_markdown(table)
        case TableFormat.LATEX:
            return renderers.to_latex(table)
        case TableFormat.HTML:
            return renderers.to_html(table)
        case TableFormat.CSV:
            return renderers.to_csv(table)
