"""`activemem sampler`: how the points of a search are chosen."""

from __future__ import annotations

import typer

from ...options import JsonOption
from ...output import print_json, print_stdout
from ...plugin_loading import tell_broken

app = typer.Typer(help="List the samplers and schedulers that a search can name.", no_args_is_help=True)


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List all samplers and schedulers: each name, who has thought of it, and whose it is.

    Plug-ins that cannot be used are listed on standard error.
    """
    from ....plugins import broken_plugins
    from ....studies.catalog.samplers import SAMPLERS, SCHEDULERS
    from ...views import registries

    told = broken_plugins()
    listed = registries.registered({"[search] sampler": SAMPLERS, "[search] scheduler": SCHEDULERS})
    if as_json:
        print_json({"samplers": listed})
    else:
        print_stdout("\n".join(registries.format_registered(listed)))
    tell_broken(told)
