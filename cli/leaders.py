"""The best points of a search, a line for each."""

from __future__ import annotations

from collections.abc import Sequence

from ..studies.leaders import Leader
from ..studies.metrics import METRICS
from ..studies.study import Study
from .columns import short
from .figures import WIDTH, crop


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
