"""`activemem table`: what a study found, as a paper prints it."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from .figures import WIDTH
from .options import Results
from .streams import give, wrong_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ..storage import Store
    from ..studies.study import Study
    from ..studies.table import Table
    from ..studies.table_spec import TableSpec

app = typer.Typer(help="Make the tables of a paper from a study's results.", no_args_is_help=True)


class Format(StrEnum):
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
    form: Annotated[
        Format | None, typer.Option("--format", help="How to write it; rich is for eyes.")
    ] = None,
    published: Annotated[bool, typer.Option("--published", help="Put the paper's numbers beside.")] = False,
    paper: Annotated[
        str | None,
        typer.Option("--paper", metavar="PAPER", help="All that a paper printed, ours beside; no STUDY."),
    ] = None,
    results: Results = None,
) -> None:
    """Print a study's tables from what the store holds of it, or a paper's from what is published.

    A name means the study as it was last run, with its overrides; a path means the file.
    """
    from ..storage import Store, StoreError
    from ..studies.faults import StudyError
    from ..studies.table import TableError
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, StoreError, StudyError, TableError, OSError):
        found = settings({"results": results, "format": form and form.value})
        store = Store(found.results)
        if paper is None:
            tables = _of_study(study, table, store, published=published)
        elif study is None:
            tables = _of_paper(paper, table, store)
        else:
            raise TableError(f"expected a study or a paper, got {study} and --paper {paper}")
    give("\n".join(_rendered(each, Format(found.values.format)) for each in tables))


def _of_study(what: str | None, name: str | None, store: Store, *, published: bool) -> Sequence[Table]:
    """The tables of a study, or the one of that name."""
    from ..studies.tables import table
    from ..studies.wanted import wanted
    from .finding import as_last_run

    study = as_last_run(what, store)
    outcomes = store.trials(wanted([study]))
    begun = _begun([study], store, outcomes)
    return [table(study, spec, outcomes, published=published, begun=begun) for spec in _specs(study, name)]


def _of_paper(paper: str, name: str | None, store: Store) -> Sequence[Table]:
    """The tables of a paper, or the one of that name, with the studies of it that come along or ran here."""
    from ..studies.papers import of_paper, paper_tables, published_by
    from ..studies.wanted import wanted

    printed, studies = published_by(paper, name), of_paper(paper, store)
    outcomes = store.trials(wanted(studies))
    return paper_tables(printed, studies, outcomes, _begun(studies, store, outcomes))


def _begun(studies: Sequence[Study], store: Store, outcomes: pl.DataFrame) -> set[str]:
    """The trials that have a checkpoint and no outcome."""
    from ..studies.standing import begun

    held = set(outcomes["trial"])
    return {trial for study in studies for trial in begun(study, store, held)}


def _specs(study: Study, name: str | None) -> list[TableSpec]:
    """The tables that are asked for; TableError if there are none."""
    from ..studies.faults import nearest
    from ..studies.table import TableError

    if not study.tables:
        raise TableError(f"study {study.name} asks for no table: it has no [[table]]")
    names = [spec.name for spec in study.tables]
    if name is not None and name not in names:
        raise TableError(f"study {study.name} has no table '{name}'{nearest(name, names)}")
    return [spec for spec in study.tables if name in (None, spec.name)]


def _rendered(table: Table, form: Format) -> str:
    from ..studies import render as renderers

    match form:
        case Format.RICH:
            at_terminal = sys.stdout.isatty()
            width = shutil.get_terminal_size((WIDTH, 24)).columns if at_terminal else WIDTH
            return renderers.to_terminal(
                table, width=width, ansi=at_terminal and "NO_COLOR" not in os.environ
            )
        case Format.MARKDOWN:
            return renderers.to_markdown(table)
        case Format.LATEX:
            return renderers.to_latex(table)
        case Format.HTML:
            return renderers.to_html(table)
        case Format.CSV:
            return renderers.to_csv(table)
