"""The best cells of a column: those printed like the best, or beside which none is significantly better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...studies.catalog.metrics import Metric
from ...studies.presentation.table import TableSpec
from ..statistics.corrections import holm_adjusted
from ..statistics.estimates import Estimate
from ..statistics.pooled_differences import compare_all
from ..statistics.power import detectable
from .tally import CellKey, Tally

SIGNIFICANCE_LEVEL = 0.05
"""A corrected p below this is significant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfColumn:
    """The best places of a column, and what decided: for how many pairs p is corrected, 0 without a test.

    `degrees` are those of the pooled variance, `detectable` the difference that is found with a chance of
    80 %; None where a permutation test decided.
    """

    metric: Metric
    places: frozenset[CellKey] = frozenset()
    pairs: int = 0
    degrees: int | None = None
    detectable: float | None = None


def best_of_column(
    column: Sequence[CellKey],
    tallies: Mapping[CellKey, Tally],
    estimates: Mapping[CellKey, Estimate],
    *,
    metric: Metric,
    spec: TableSpec,
) -> BestOfColumn:
    """The best places of a column; none with fewer than two values, or if neither direction is better.

    With `best = "shown"` the printed digits decide, so that of two equal numbers never just one is bold.
    """
    known = [place for place in column if place in estimates]
    if len(known) < 2 or metric.higher_is_better is None:
        return BestOfColumn(metric=metric)
    sign = 1 if metric.higher_is_better else -1
    if spec.best == "shown":
        first = max(known, key=lambda place: sign * estimates[place].value)
        shown = metric.format(estimates[first].value)
        places = [place for place in known if metric.format(estimates[place].value) == shown]
        return BestOfColumn(metric=metric, places=frozenset(places))
    comparisons = compare_all([tallies[place].values_by_unit for place in known])
    p_values = dict(
        zip(comparisons.p_values, holm_adjusted(list(comparisons.p_values.values())), strict=True)
    )
    worse: set[CellKey] = set()
    for (one, two), p in p_values.items():
        if p < SIGNIFICANCE_LEVEL:
            worse.add(min(known[one], known[two], key=lambda place: sign * estimates[place].value))
    limit = None
    if comparisons.degrees is not None and comparisons.error is not None:
        limit = detectable(comparisons.error, comparisons.degrees, SIGNIFICANCE_LEVEL / len(p_values))
    return BestOfColumn(
        metric=metric,
        places=frozenset(known) - worse,
        pairs=len(p_values),
        degrees=comparisons.degrees,
        detectable=limit,
    )
