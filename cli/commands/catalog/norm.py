"""`activemem norm`: norms and position encodings."""

from __future__ import annotations

import typer

from ...options import JsonOption
from ...output import print_json, print_stdout
from ...plugin_loading import tell_broken

app = typer.Typer(help="List the norms and positions that a model can name.", no_args_is_help=True)


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List all norms and positions: each name, who has thought of it, and whose it is.

    Plug-ins that cannot be used are listed on standard error.
    """
    from ....grammar.norms import NORMS
    from ....grammar.positions import POSITIONS
    from ....plugins import broken_plugins
    from ...views import registries

    told = broken_plugins()
    listed = registries.registered({"[model] norm_kind": NORMS, "[model] position": POSITIONS})
    if as_json:
        print_json({"norms": listed})
    else:
        print_stdout("\n".join(registries.format_registered(listed)))
    tell_broken(told)
