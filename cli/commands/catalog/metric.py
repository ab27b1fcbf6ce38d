"""`activemem metric`: what is measured."""

from __future__ import annotations

import typer

from ...options import JsonOption
from ...output import print_json, print_stdout
from ...plugin_loading import tell_broken

app = typer.Typer(help="List the metrics that a study can name.", no_args_is_help=True)


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List every metric: its name, which direction is better, whose it is, and what it is.

    Plug-ins that cannot be used are listed on standard error.
    """
    from ....plugins import broken_plugins
    from ....studies.catalog.metrics import METRICS
    from ...views import registries

    told = broken_plugins()
    found = list(METRICS.values())
    if as_json:
        print_json({"metrics": [registries.metric_to_dict(metric) for metric in found]})
    else:
        print_stdout("\n".join(registries.format_metrics(found)))
    tell_broken(told)
