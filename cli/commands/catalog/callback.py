"""`activemem callback`: what plug-ins do in a training."""

from __future__ import annotations

import typer

from ...options import JsonOption
from ...output import print_json, print_stdout
from ...plugin_loading import tell_broken

app = typer.Typer(help="List the loss terms and callbacks that a study can name.", no_args_is_help=True)


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List all loss terms and callbacks: each name, its description, its source, and who provides it.

    All of them come from plug-ins; plug-ins that cannot be used are listed on standard error.
    """
    from ....plugins import broken_plugins
    from ....studies.catalog.callbacks import CALLBACKS
    from ....studies.catalog.loss_terms import LOSS_TERMS
    from ...views import registries

    told = broken_plugins()
    listed = registries.registered({"[[train.loss_terms]]": LOSS_TERMS, "[[train.callbacks]]": CALLBACKS})
    if as_json:
        print_json({"callbacks": listed})
    else:
        lines = list(registries.format_registered(listed)) or ["no plug-in has registered any"]
        print_stdout("\n".join(lines))
    tell_broken(told)
