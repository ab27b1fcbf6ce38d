"""Loading of the plug-ins that a command's options, the environment or activemem.toml name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..plugins import (
    UNKNOWN_NAME,
    BrokenPlugin,
    PluginError,
    broken_plugins,
    find_settings_file,
    load_plugin,
    loaded_files,
    note_broken,
    unloaded_extra,
)
from .environment import PLUGINS_VARIABLE
from .output import print_stderr

_GIVEN = "activemem.plugins"
"""The key of the plug-ins from a command's options in its context."""


def plugin_option() -> Any:  # noqa: ANN401 -- a class that Typer keeps to itself
    """Return the option `--plugin`, which every command has."""
    # Typer (0.29) makes options only from the parameters of a command, so a command that never runs has it
    carrier = typer.Typer(add_completion=False)

    @carrier.command()
    def _(
        plugin: Annotated[
            list[str] | None,
            typer.Option(
                "--plugin",
                metavar="PLUGIN",
                help="A plug-in with blocks, tasks, metrics etc.: a Python file, or the name of a plug-in "
                "that is installed. Repeatable. See docs/how-to/plug-ins.md.",
                is_eager=True,
                expose_value=False,
                callback=_load_given,
            ),
        ] = None,
    ) -> None:
        """Declare the option `--plugin`. Its callback loads the plug-ins."""

    return next(option for option in typer.main.get_command(carrier).params if option.name == "plugin")


def load_configured() -> None:
    """Load the plug-ins that the environment names, else those in activemem.toml."""
    if find_settings_file(Path.cwd()) is None and not os.environ.get(PLUGINS_VARIABLE):
        return
    from .machine_settings import configured_plugins

    for plugin in configured_plugins():
        before = broken_plugins()
        try:
            load_plugin(plugin)
        except PluginError as error:
            source = f"{PLUGINS_VARIABLE}: " if os.environ.get(PLUGINS_VARIABLE) else ""
            note_broken(Path(plugin).name, f"{source}{error}")
        report_broken_plugins(before)


def given_plugins(context: typer.Context) -> list[str]:
    """Return the plug-ins in the options of the current command, for the command that continues a run."""
    return list(context.find_root().meta.get(_GIVEN, ()))


def plugin_hint(message: str) -> str:
    """Return a hint to the list of names and to plug-ins, after an error about an unknown name.

    After other errors it is "". If plug-in files are loaded, the hint lists them, because none of them
    registers the name.
    """
    if not UNKNOWN_NAME.search(message):
        return ""
    if extra := unloaded_extra(message):
        return f'It is a plug-in of activemem: add --plugin {extra}, or in [study] plugins = ["{extra}"]'
    if loaded := loaded_files():
        names = ", ".join(file.path.name for file in loaded)
        return f"All known names: activemem list KIND. No loaded plug-in registers this one: {names}"
    return "All known names: activemem list KIND. A name from a plug-in needs its file: --plugin FILE"


def report_broken_plugins(already: tuple[BrokenPlugin, ...]) -> None:
    """Print the plug-ins that cannot be used. Those that were reported before are left out."""
    for broken in broken_plugins():
        if broken not in already:
            print_stderr(f"plug-in that cannot be used: {broken}")


def _load_given(context: typer.Context, value: list[str] | None) -> None:
    context.find_root().meta[_GIVEN] = value or []
    faults: list[str] = []
    for plugin in value or []:
        try:
            load_plugin(plugin)
        except PluginError as error:
            faults.append(f"--plugin {plugin}: {error}")
    if faults:
        raise PluginError("\n".join(faults))
