"""The best points of a search so far."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from statistics import fmean

import polars as pl

from ..schema.factors import SEED
from ..schema.settings import Level
from ..study import Study

MAX_POINTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BestPoint:
    """A point whose trials are all done: its values by dimension, and its metric's mean over the seeds."""

    values: dict[str, Level]
    mean: float


def best_points(study: Study, outcomes: pl.DataFrame) -> list[BestPoint]:
    """The best few points of a search in the store's latest attempts, the best first; none for a grid."""
    search = study.search
    if search is None:
        return []
    rows = outcomes.filter((pl.col("study") == study.name) & (pl.col("status") == "done"))
    points: dict[str, list[float]] = {}
    for factors, metrics in rows.select("factors", "metrics").iter_rows():
        values = {name: level for name, level in json.loads(factors).items() if name != SEED}
        found = [each["value"] for each in metrics if each["name"] == search.metric]
        points.setdefault(json.dumps(values), []).extend(value for value in found if isfinite(value))
    whole = [
        BestPoint(values=json.loads(point), mean=fmean(means))
        for point, means in points.items()
        if len(means) == len(study.seeds)
    ]
    return sorted(whole, key=lambda each: each.mean, reverse=search.direction == "max")[:MAX_POINTS]
