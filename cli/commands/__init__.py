"""A command parses its arguments and delegates: one file a group of commands.

`recipe`, `block`, `task`, `metric`, `study`, `probe`, `model`, `table`, `curve`, `claim`, `report`, `store`,
`data` and `config`.
"""

from . import (
    block,
    claim,
    config,
    curve,
    data,
    metric,
    model,
    probe,
    recipe,
    report,
    store,
    study,
    table,
    task,
)

GROUPS = (recipe, block, task, metric, study, probe, model, table, curve, claim, report, store, data, config)
"""The groups in the order in which help lists them; each has its commands in `app`, and its module's name."""
