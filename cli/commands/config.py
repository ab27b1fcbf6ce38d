"""`activemem config`: the settings of this machine, and where they are set."""

from __future__ import annotations

import typer

from ... import cli
from ...storage.place import absolute_place
from ..json_output import print_json
from ..options import JsonOption
from ..output import print_stdout

app = typer.Typer(help="Show the settings of this machine.", no_args_is_help=True)


@app.command()
def show(as_json: JsonOption = False) -> None:
    """Show the value of each setting of this machine, and where it is set.

    A setting is looked up on the command line, then in the environment (for example ACTIVEMEM_RESULTS), then
    in the nearest activemem.toml, in the working directory or above it. The first value that is found
    applies, else the default.
    """
    found = cli.load_settings()
    folders = {
        "results": absolute_place(found.results),
        "data": str(found.data.resolve()),
        "track": {name: absolute_place(place) for name, place in found.track.items()},
        "plugins": [each if isinstance(each, str) else str(each.resolve()) for each in found.plugins],
    }
    values = found.values.model_dump() | folders
    if as_json:
        settings = {
            name: {"value": values[name], "source": found.sources[name]} for name in cli.SETTING_NAMES
        }
        print_json(settings=settings)
        return
    shown = {name: "–" if values[name] is None else _format_value(values[name]) for name in cli.SETTING_NAMES}
    names, width = max(map(len, cli.SETTING_NAMES)), max(map(len, shown.values()))
    for name in cli.SETTING_NAMES:
        print_stdout(f"{name:<{names}}   {shown[name]:<{width}}   {found.sources[name]}")


def _format_value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case dict():
            return ", ".join(f"{name}={text}" for name, text in value.items()) or "–"
        case list():
            return ", ".join(map(str, value)) or "–"
        case _:
            return str(value)
