"""The command `activemem`: its groups of commands, and how it starts."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import ActivememError
from ..plugins import broken_plugins
from .agent_guide import agent_guide
from .commands import GROUPS
from .output import (
    EXIT_INTERRUPTED,
    EXIT_WRONG_INPUT,
    LogHandler,
    print_stderr,
    print_stdout,
    replace_unencodable,
)
from .plugin_loading import load_configured, plugin_hint, plugin_option, tell_broken
from .serve import serve

_TOLD = "activemem.told"  # of a context: the broken plug-ins that are told already


class _CommandGroup(TyperGroup):
    """Commands of which each takes plug-ins."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 -- classes that Typer keeps to itself
        """Return the command with the option `--plugin`, which commands of a group have and groups lack."""
        command = super().get_command(ctx, cmd_name)
        is_group = isinstance(command, TyperGroup)
        if command and not is_group and all(parameter.name != "plugin" for parameter in command.params):
            command.params.append(plugin_option())
        return command


class _Program(_CommandGroup):
    """Ends a command with one message, without a traceback, for what its caller or the machine got wrong."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 -- a context that Typer keeps to itself
        ctx.meta[_TOLD] = broken_plugins()
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # whoever reads the output has read enough
            raise
        except (ActivememError, OSError) as error:
            print_stderr(message := _message(error))
            if hint := plugin_hint(message):
                print_stderr(hint)
            tell_broken(ctx.meta[_TOLD])
            raise typer.Exit(EXIT_WRONG_INPUT) from error


def _message(error: ActivememError | OSError) -> str:
    """Return an error's message; for a system error the file and its description, without the number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


app = typer.Typer(
    name="activemem",
    cls=_Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _group in GROUPS:
    app.add_typer(_group.app, cls=_CommandGroup, name=_group.__name__.rpartition(".")[2])
app.command()(serve)
app.command()(agent_guide)


def _print_version(requested: bool) -> None:
    if requested:
        print_stdout(f"activemem {__version__}")
        raise typer.Exit


@app.callback()
def activemem(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Architecture search and ablation studies of sequence models: from one line of text to a table."""
    load_configured()
    context.meta[_TOLD] = broken_plugins()


def main() -> None:
    """Run the command line."""
    replace_unencodable()
    logging.basicConfig(handlers=[LogHandler()], format="%(message)s")
    try:
        app()
    except KeyboardInterrupt:  # before the command has begun, which handles its own
        sys.exit(EXIT_INTERRUPTED)
