"""Commands: one file for each group, which parses arguments and delegates.

`catalog` lists what a study can name; then there are `recipe`, `study`, `probe`, `model`, `table`, `curve`,
`claim`, `report`, `store`, `data` and `config`; `study_points`, `study_search`, `study_noise` and
`study_coordinates` are more commands of `study`.
"""

from . import (
    claim,
    config,
    curve,
    data,
    model,
    probe,
    recipe,
    report,
    store,
    study,
    study_coordinates,
    study_noise,
    study_points,
    study_search,
    table,
)
from .catalog import block, callback, metric, norm, optimizer, sampler, task

__all__ = ["GROUPS", "study_coordinates", "study_noise", "study_points", "study_search"]

GROUPS = (
    recipe,
    block,
    norm,
    task,
    metric,
    optimizer,
    callback,
    sampler,
    study,
    probe,
    model,
    table,
    curve,
    claim,
    report,
    store,
    data,
    config,
)
"""The groups in the order in which help lists them; each has its commands in `app`, and its module's name."""
