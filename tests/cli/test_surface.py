"""The command-line interface, which changes only on purpose."""

from pathlib import Path

import pytest
import typer

from activemem.cli import command_line

SURFACE = Path(__file__).with_name("surface.txt")
REGENERATE = "python tests/cli/test_surface.py"


def commands(command, path="activemem"):
    """Return a command and all commands below it, with full names."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


def described(parameter):
    """Return an argument or option in the form of the surface file."""
    if parameter.param_type_name == "argument":
        return parameter.metavar
    value = "" if parameter.is_flag else f" {parameter.metavar or '|'.join(choices(parameter))}"
    return "/".join(parameter.opts) + value + (" (required)" if parameter.required else "")


def choices(parameter):
    kind = (
        parameter.type_descriptor if hasattr(parameter, "type_descriptor") else parameter.type
    )  # by typer's age
    return getattr(kind, "choices", None) or ()


def surface():
    """Return every command with its arguments and options."""
    lines = []
    for name, command in commands(typer.main.get_command(command_line)):
        lines += [name, *(f"    {described(each)}" for each in command.params)]
    return "\n".join(lines) + "\n"


ALL = list(commands(typer.main.get_command(command_line)))


def test_the_surface_is_the_one_that_was_agreed_on():
    assert surface() == SURFACE.read_text(encoding="utf-8"), f"if this is meant: {REGENERATE}"


@pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])
def test_every_command_and_every_option_has_help(name, command):
    assert command.help
    assert all(parameter.help for parameter in command.params), name


def panels(help_text):
    """Return the first words of each row of a help text, by heading."""
    found = {}
    for line in help_text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            rows = found[line[:-1]] = []
        elif found and line.startswith("  ") and line[2] != " ":
            rows.append(line[2:].partition("  ")[0])
    return found


def test_the_first_help_begins_with_the_commands_of_every_day_and_has_every_group_once(run):
    found = panels(run("--help").stdout)
    every_day = ["recipe show", "study plan", "study run", "study status", "table render"]
    assert next(iter(found.items())) == ("Every day", every_day)
    listed = [
        name for heading, rows in found.items() if heading not in ("Every day", "Options") for name in rows
    ]
    assert sorted(listed) == sorted(typer.main.get_command(command_line).commands)
    assert "..." not in run("--help").stdout.partition("\n")[2]


def test_a_command_with_many_options_has_few_in_its_first_panel(run):
    found = panels(run("study", "run", "--help").stdout)
    assert len(found["Options"]) <= 10
    shown = [row.split()[0] for heading, rows in found.items() if heading != "Arguments" for row in rows]
    command = dict(ALL)["activemem study run"]
    options = {each.opts[0] for each in command.params if each.param_type_name == "option"}
    assert set(shown) == options | {"--plugin", "--help"}


if __name__ == "__main__":
    SURFACE.write_text(surface(), encoding="utf-8")
