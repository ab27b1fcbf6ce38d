"""`activemem config`: which settings are in force, and where they come from."""

from __future__ import annotations

import typer

from .options import AsJson
from .streams import give, give_json, wrong_input

app = typer.Typer(help="Look at the settings of this machine.", no_args_is_help=True)


@app.command()
def show(as_json: AsJson = False) -> None:
    """Show each setting's value and its source.

    A setting comes from the command line, else from the environment (ACTIVEMEM_RESULTS and the
    like), else from the nearest activemem.toml upward from the working directory, else it has its
    default.
    """
    from .settings import NAMES, SettingsError, settings

    with wrong_input(SettingsError, OSError):
        found = settings()
    folders = {"results": str(found.results.resolve()), "data": str(found.data.resolve())}
    values = found.values.model_dump() | folders
    if as_json:
        give_json({name: {"value": values[name], "source": found.sources[name]} for name in NAMES})
        return
    shown = {name: "–" if values[name] is None else _shown(values[name]) for name in NAMES}
    width = max(map(len, shown.values()))
    for name in NAMES:
        give(f"{name:<12}   {shown[name]:<{width}}   {found.sources[name]}")


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
