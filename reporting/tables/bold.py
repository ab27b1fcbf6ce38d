"""The best cells of a column: those printed like the best, or not significantly different from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...studies.catalog.metrics import Metric
from ...studies.presentation.table import TableSpec
from ..statistics.corrections import holm_adjusted
from ..statistics.estimates import Estimate
from ..statistics.paired_tests import paired_p
from .tally import CellKey, Tally

SIGNIFICANCE_LEVEL = 0.05
"""A corrected p below this is significant."""


def best_places(
    column: Sequence[CellKey],
    tallies: Mapping[CellKey, Tally],
    estimates: Mapping[CellKey, Estimate],
    *,
    metric: Metric,
    spec: TableSpec,
) -> list[CellKey]:
    """The best places of a column; none with fewer than two values, or if neither direction is better.

    With `best = "shown"` the printed digits decide, so that of two equal numbers never just one is bold.
    """
    known = [place for place in column if place in estimates]
    if len(known) < 2 or metric.higher_is_better is None:
        return []
    sign = 1 if metric.higher_is_better else -1
    first = max(known, key=lambda place: sign * estimates[place].value)
    if spec.best == "shown":
        shown = metric.format(estimates[first].value)
        return [place for place in known if metric.format(estimates[place].value) == shown]
    different = _significantly_different(first, [place for place in known if place != first], tallies, spec)
    return [place for place in known if place not in different]


def _significantly_different(
    first: CellKey, others: Sequence[CellKey], tallies: Mapping[CellKey, Tally], spec: TableSpec
) -> set[CellKey]:
    """Those that differ significantly from the first, corrected for the number of tests.

    A place that shares no seed with the first cannot be tested.
    """
    own = tallies[first].values_by_unit
    paired = [place for place in others if own.keys() & tallies[place].values_by_unit.keys()]
    p_values = holm_adjusted(
        [paired_p(own, tallies[place].values_by_unit, test=spec.test) for place in paired]
    )
    return {place for place, p in zip(paired, p_values, strict=True) if p < SIGNIFICANCE_LEVEL}
