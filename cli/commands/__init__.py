"""Commands, one file for each group.

A command parses its arguments and delegates. It takes what it needs from the names of folders, such as
`reporting.open_study`, so that it is loaded when the command runs.

`catalog` lists and shows all names for studies. The groups are `recipe`, `block`, `study`, `probe`,
`model`, `table`, `curve`, `claim`, `paper`, `report`, `store`, `data` and `config`; `study_search` has
more commands of `study`.
"""

from collections.abc import Callable, Mapping

import typer

from . import (
    block,
    catalog,
    claim,
    config,
    curve,
    data,
    judge,
    model,
    paper,
    probe,
    recipe,
    report,
    store,
    study,
    study_search,
    table,
)
from .report import serve

__all__ = ["PANELS", "study_search"]

PANELS: Mapping[str, Mapping[str, typer.Typer | Callable[..., None]]] = {
    "Recipes and studies": {"recipe": recipe.app, "block": block.app, "study": study.app},
    "Results": {
        "table": table.app,
        "curve": curve.app,
        "claim": claim.app,
        "judge": judge.judge,
        "paper": paper.app,
        "report": report.app,
        "serve": serve,
    },
    "Models and data": {"model": model.app, "probe": probe.app, "data": data.app},
    "Look things up": {"list": catalog.list_, "show": catalog.show, "agent-guide": catalog.agent_guide},
    "The machine": {"store": store.app, "config": config.app},
}
"""Groups and commands by name, under the headings of `activemem --help`."""
