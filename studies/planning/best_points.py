"""The best points of a search so far."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from ..schema.factors import SEED
from ..schema.settings import Level
from ..study import Study
from .status import study_outcomes
from .trial_values import ValueStatus, trial_values

MAX_POINTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BestPoint:
    """A point whose trials are all done: its values by dimension, and its metric's mean over the seeds."""

    values: dict[str, Level]
    mean: float


def best_points(study: Study, outcomes: pl.DataFrame) -> list[BestPoint]:
    """The best few points of a search in the store's latest attempts, best first; none for a grid.

    A point is none of them if one of its trainings diverged, where `outcomes` tell it.
    """
    search = study.search
    if search is None:
        return []
    tried = study_outcomes(study, outcomes)
    values = trial_values(study.name, tried["trial"], tried, search.metric)
    values = values.join(tried.select("trial", "factors"), on="trial", maintain_order="left")
    points: dict[str, list[float]] = {}
    for factors, value in values.filter(status=ValueStatus.DONE).select("factors", "value").iter_rows():
        levels = {name: level for name, level in json.loads(factors).items() if name != SEED}
        points.setdefault(json.dumps(levels), []).append(value)
    complete = [
        BestPoint(values=json.loads(point), mean=fmean(means))
        for point, means in points.items()
        if len(means) == len(study.seeds)
    ]
    return sorted(complete, key=lambda each: each.mean, reverse=search.direction == "max")[:MAX_POINTS]
