"""The command `activemem`: its groups of commands, and how it starts."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from dataclasses import asdict
from errno import EACCES
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__
from ..errors import ActivememError
from ..plugins import broken_plugins
from ..storage.files import closed_folder
from ..studies.text.errors import StudyError
from .commands import PANELS
from .help_panels import PanelGroup
from .json_output import print_json
from .output import (
    EXIT_INTERRUPTED,
    EXIT_WRONG_INPUT,
    LogHandler,
    print_stderr,
    print_stdout,
    replace_unencodable,
)
from .plugin_loading import load_configured, plugin_hint, plugin_option, report_broken_plugins

_REPORTED = "activemem.reported_plugins"  # the broken plug-ins that a context has reported
_AS_JSON = "activemem.as_json"  # whether a context's command has the option --json


class _CommandGroup(PanelGroup):
    """A group of commands with the option `--plugin`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 -- classes that Typer keeps to itself
        """Return the named command with the option `--plugin`, and a group of commands without it."""
        command = super().get_command(ctx, cmd_name)
        is_group = isinstance(command, PanelGroup)
        if command and not is_group and all(parameter.name != "plugin" for parameter in command.params):
            command.params.append(plugin_option())
        return command


class _Program(_CommandGroup):
    """The program `activemem`. For wrong input and system errors it prints a message, not a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 -- a context that Typer keeps to itself
        return [name for entries in PANELS.values() for name in entries]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 -- classes that Typer keeps to itself
        """Return the command that the first argument names.

        If the name is unknown, the error lists groups that have such a command. A second `--results` is an
        error too, since only the last one would be read.
        """
        ctx.meta[_AS_JSON] = "--json" in args
        if sum(each.partition("=")[0] == "--results" for each in args) > 1:
            ctx.fail("Option '--results' is given more than once, but a command uses one store.")
        if self.get_command(ctx, args[0]) is None:
            groups = {each: self.get_command(ctx, each) for each in self.list_commands(ctx)}
            found = ", ".join(
                f"activemem {each} {args[0]}"
                for each, group in groups.items()
                if isinstance(group, PanelGroup) and args[0] in group.list_commands(ctx)
            )
            if found:
                ctx.fail(f"No such command {args[0]!r}. Use: {found}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 -- a context that Typer keeps to itself
        ctx.meta[_REPORTED] = broken_plugins()
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of the output has closed the pipe
            raise
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except (MemoryError, ImportError) as error:
            if isinstance(error, ImportError) and (error.name or "").startswith("activemem"):
                raise  # a fault of this package
            print_stderr(_loading_fault(error))
            raise typer.Exit(EXIT_WRONG_INPUT) from error
        except (ActivememError, OSError) as error:
            message = str(error)
            if isinstance(error, FileNotFoundError) and error.filename is None and not _has_working_folder():
                message = "the working folder of this terminal was removed; go to another one: cd ~"
            if isinstance(error, OSError) and error.filename is not None and error.strerror:
                message = f"{error.filename}: {error.strerror}"
                if error.errno == EACCES and (closed := closed_folder(Path(error.filename))):
                    message = (
                        f"{closed}: no permission to enter this folder; its owner can grant it (chmod g+rx)"
                    )
            if isinstance(error, StudyError) and ctx.meta.get(_AS_JSON):
                print_json(faults=[{"file": error.source, **asdict(each)} for each in error.faults])
            print_stderr(message)
            if hint := plugin_hint(message):
                print_stderr(hint)
            report_broken_plugins(ctx.meta[_REPORTED])
            raise typer.Exit(EXIT_WRONG_INPUT) from error


def _loading_fault(error: MemoryError | ImportError) -> str:
    """Return what stands in the way of a command that cannot load what it needs."""
    if isinstance(error, MemoryError):
        return str(error) or "this process has no memory left; give it more (ulimit -v shows its limit)"
    if isinstance(error, ModuleNotFoundError):
        return f"the module {error.name} is missing: pip install {(error.name or '').partition('.')[0]}"
    return f"a library cannot be loaded ({error}); if memory is limited, raise the limit (ulimit -v shows it)"


def _has_working_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


command_line = typer.Typer(
    name="activemem",
    cls=_Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _panel, _entries in PANELS.items():
    for _name, _entry in _entries.items():
        if isinstance(_entry, typer.Typer):
            command_line.add_typer(_entry, cls=_CommandGroup, name=_name, rich_help_panel=_panel)
        else:
            command_line.command(_name, rich_help_panel=_panel, no_args_is_help=_name in ("list", "show"))(
                _entry
            )


def _print_version(requested: bool) -> None:
    if requested:
        print_stdout(f"activemem {__version__}")
        raise typer.Exit


@command_line.callback()
def activemem(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Architecture search and ablation studies of sequence models: from one line of text to a table.

    For a study of your own, begin with: activemem study new mine.toml
    """
    load_configured()
    context.meta[_REPORTED] = broken_plugins()


_TRAINING = "activemem.engine.run.driver"
_NEEDED_GB = {"numpy": 1.5, "polars": 1.5, "pyarrow": 1.5, "torch": 2.0, _TRAINING: 3.5}
"""The address space that libraries need before anything is read, and that a training needs."""


class _LimitedImports:
    """An importer that refuses libraries that would end the process in their own words.

    They do so where they get no more address space. `limit` is the number of bytes that the process may use.
    """

    def __init__(self, limit: int) -> None:
        self._gb = limit / (1 << 30)

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return a specification that cannot be loaded, or None for a library that has enough memory."""
        return ModuleSpec(name, self) if _NEEDED_GB.get(name, 0.0) > self._gb else None  # pyright: ignore[reportArgumentType]

    def create_module(self, spec: ModuleSpec) -> None:
        """Raise MemoryError. Other libraries may ask whether this one exists, but not load it."""
        what = "training" if spec.name == _TRAINING else spec.name
        raise MemoryError(
            f"this process may use {self._gb:.1f} GB of address space, and this command needs "
            f"{_NEEDED_GB[spec.name]:g} GB for {what}: raise the limit (ulimit -v unlimited)"
        )

    def exec_module(self, _: object) -> None:
        """Do nothing, since no module was created."""


def _refuse_large_libraries() -> None:
    """Let commands end with a message where the address space is too small for a library."""
    with suppress(ImportError):  # of Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            sys.meta_path.insert(0, _LimitedImports(limit))  # pyright: ignore[reportArgumentType]


def main() -> None:
    """Run the command line."""
    replace_unencodable()
    logging.basicConfig(handlers=[LogHandler()], format="%(message)s")
    _refuse_large_libraries()
    try:
        command_line()
    except KeyboardInterrupt:  # Ctrl-C before the command begins, which handles its own
        sys.exit(EXIT_INTERRUPTED)
