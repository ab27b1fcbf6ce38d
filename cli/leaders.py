"""The best points of a search so far."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean

import polars as pl

from ..storage import Store
from ..studies.factors import SEED
from ..studies.metrics import METRICS
from ..studies.settings import Level
from ..studies.study import Study
from .drawing import short
from .figures import WIDTH, crop

MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """A point whose trials are all done: its values by dimension, and its metric's mean over the seeds."""

    values: dict[str, Level]
    mean: float


def leaders(study: Study, store: Store) -> list[Leader]:
    """The best few points of a search, the best first; none for a grid."""
    search = study.search
    if search is None:
        return []
    rows = store.trials().filter((pl.col("study") == study.name) & (pl.col("status") == "done"))
    points: dict[str, list[float]] = {}
    for factors, metrics in rows.select("factors", "metrics").iter_rows():
        values = {name: level for name, level in json.loads(factors).items() if name != SEED}
        found = [each["value"] for each in metrics if each["name"] == search.metric]
        points.setdefault(json.dumps(values), []).extend(value for value in found if isfinite(value))
    whole = [
        Leader(values=json.loads(point), mean=fmean(means))
        for point, means in points.items()
        if len(means) == len(study.seeds)
    ]
    return sorted(whole, key=lambda each: each.mean, reverse=search.direction == "max")[:MOST]


def lines(study: Study, found: Sequence[Leader]) -> list[str]:
    """A line for each point: its metric, and what it is."""
    if study.search is None:
        return []
    metric = METRICS[study.search.metric]
    means = [metric.show(each.mean) for each in found]
    width = max(map(len, means), default=0)
    texts = ["  ".join(f"{name}={short(each.values[name])}" for name in each.values) for each in found]
    return [
        crop(f"  {metric.name} {mean:>{width}}   {text}", WIDTH)
        for mean, text in zip(means, texts, strict=True)
    ]
