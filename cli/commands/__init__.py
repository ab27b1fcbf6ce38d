"""Commands: one file for each group, which parses arguments and delegates.

`catalog` lists and shows all names for studies. The groups are `recipe`, `block`, `study`, `probe`, `model`,
`table`, `curve`, `claim`, `paper`, `report`, `store`, `data` and `config`; `study_search` and
`study_coordinates` are more commands of `study`.
"""

from collections.abc import Callable, Mapping

import typer

from ..agent_guide import agent_guide
from ..serve import serve
from . import (
    block,
    catalog,
    claim,
    config,
    curve,
    data,
    model,
    paper,
    probe,
    recipe,
    report,
    store,
    study,
    study_coordinates,
    study_search,
    table,
)

__all__ = ["PANELS", "study_coordinates", "study_search"]

PANELS: Mapping[str, Mapping[str, typer.Typer | Callable[..., None]]] = {
    "Recipes and studies": {"recipe": recipe.app, "block": block.app, "study": study.app},
    "Results": {
        "table": table.app,
        "curve": curve.app,
        "claim": claim.app,
        "paper": paper.app,
        "report": report.app,
        "serve": serve,
    },
    "Models and data": {"model": model.app, "probe": probe.app, "data": data.app},
    "Look things up": {"list": catalog.list_, "show": catalog.show, "agent-guide": agent_guide},
    "The machine": {"store": store.app, "config": config.app},
}
"""Groups and commands by name, under the headings of `activemem --help`."""
