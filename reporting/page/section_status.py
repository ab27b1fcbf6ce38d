"""How far the study is, and what a search has found so far.

A page may be built at any time; this says whether more is to come.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from ...studies.catalog.metrics import METRICS
from ...studies.planning.best_points import best_points
from ...studies.schema.level_names import level_text
from .inputs import PageInputs


def values(inputs: PageInputs) -> Mapping[str, object]:
    """The counts, the time that training took, the best points of a search, the best first."""
    study, found = inputs.study, []
    metric = METRICS[study.search.metric] if study.search else None
    if metric:
        found = [
            (metric.format(each.mean), [level_text(each.values[name]) for name in study.dimensions])
            for each in best_points(study, inputs.outcomes)
        ]
    return {
        "summary": inputs.status.summary(),
        "seconds": fsum(inputs.own_outcomes["seconds"]) if len(inputs.own_outcomes) else None,
        "metric": metric,
        "dimensions": list(study.dimensions),
        "best_points": found,
    }
