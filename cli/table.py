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
    results: Results = None,
) -> None:
    """Print a study's tables from what the store holds of it.

    A name means the study as it was last run, with its overrides; a path means the file.
    """
    from ..storage import Store, StoreError
    from ..studies.faults import StudyError
    from ..studies.table import TableError
    from ..studies.tables import table as made
    from .finding import as_last_run
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, StoreError, StudyError, TableError, OSError):
        found = settings({"results": results, "format": form and form.value})
        store = Store(found.results)
        wanted = as_last_run(study, store)
        specs = _specs(wanted, table)
        outcomes = store.trials()
        tables = [made(wanted, spec, outcomes, published=published) for spec in specs]
    give("\n".join(_rendered(each, Format(found.values.format)) for each in tables))


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
