"""Help pages as plain text, with options and commands under headings (panels)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

EVERY_DAY = "Every day"
"""The panel of the commands that `activemem --help` lists first, with their groups' names."""

_MAX_SHORT_HELP = 1000  # the whole first sentence, which is wrapped


class PanelCommand(TyperCommand):
    """A command whose help shows options below headings, which are their attribute `rich_help_panel`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- classes that Typer keeps to itself
        """Write the arguments, the plain options, and then the options below each heading."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if (row := parameter.get_help_record(ctx)) is not None:
                usual = f"{parameter.param_type_name.title()}s"
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(row)
        _write_panels(formatter, panels)


class PanelGroup(TyperGroup):
    """A group whose help shows commands under headings.

    The heading of a command is its attribute `rich_help_panel`. Options come last.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- classes that Typer keeps to itself
        """Write the commands, then the options."""
        panels: dict[str, list[tuple[str, str]]] = {EVERY_DAY: []} if ctx.parent is None else {}
        for name, command in self._visible(ctx):
            if isinstance(command, PanelGroup):
                panels[EVERY_DAY] += [
                    (f"{name} {inner}", each.get_short_help_str(_MAX_SHORT_HELP))
                    for inner, each in command._visible(ctx)
                    if each.rich_help_panel == EVERY_DAY
                ]
            row = (name, command.get_short_help_str(_MAX_SHORT_HELP))
            panels.setdefault(command.rich_help_panel or "Commands", []).append(row)
        _write_panels(formatter, panels)
        options = (parameter.get_help_record(ctx) for parameter in self.get_params(ctx))
        _write_panels(formatter, {"Options": [row for row in options if row is not None]})

    def _visible(self, ctx: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- a class that Typer keeps to itself
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return ((name, command) for name, command in commands if command and not command.hidden)


def _write_panels(formatter: Any, panels: Mapping[str, Sequence[tuple[str, str]]]) -> None:  # noqa: ANN401 -- as above
    width = max((len(name) for rows in panels.values() for name, _ in rows), default=0)
    for heading, rows in panels.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in rows])
