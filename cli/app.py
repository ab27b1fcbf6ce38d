"""The command `activemem`: its groups of commands, and how it starts."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from .commands import block, claim, config, curve, data, probe, recipe, report, study, table, task
from .output import print_stdout, replace_unencodable

app = typer.Typer(
    name="activemem",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(recipe.app, name="recipe")
app.add_typer(block.app, name="block")
app.add_typer(task.app, name="task")
app.add_typer(study.app, name="study")
app.add_typer(probe.app, name="probe")
app.add_typer(table.app, name="table")
app.add_typer(curve.app, name="curve")
app.add_typer(claim.app, name="claim")
app.add_typer(report.app, name="report")
app.add_typer(data.app, name="data")
app.add_typer(config.app, name="config")


def _print_version(requested: bool) -> None:
    if requested:
        print_stdout(f"activemem {__version__}")
        raise typer.Exit


@app.callback()
def activemem(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Architecture search and ablation studies of sequence models: from one line of text to a table."""


def main() -> None:
    """Run the command line."""
    replace_unencodable()
    app()
