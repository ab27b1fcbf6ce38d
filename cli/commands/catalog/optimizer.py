"""`activemem optimizer`: what moves the weights."""

from __future__ import annotations

import typer

from ...options import JsonOption
from ...output import print_json, print_stdout
from ...plugin_loading import tell_broken

app = typer.Typer(
    help="List the optimizers and learning-rate schedules that a study can name.", no_args_is_help=True
)


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List all optimizers and learning-rate schedules: each name, who has thought of it, and whose it is.

    Plug-ins that cannot be used are listed on standard error.
    """
    from ....plugins import broken_plugins
    from ....studies.catalog.optimisers import OPTIMIZERS
    from ....studies.catalog.schedules import SCHEDULES
    from ...views import registries

    told = broken_plugins()
    listed = registries.registered({"[train] optimizer": OPTIMIZERS, "[train] schedule": SCHEDULES})
    if as_json:
        print_json({"optimizers": listed})
    else:
        print_stdout("\n".join(registries.format_registered(listed)))
    tell_broken(told)
