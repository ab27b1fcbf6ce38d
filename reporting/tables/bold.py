"""The best cells of a column: those that print like the best, or that a test cannot tell apart from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...studies.catalog.metrics import Metric
from ...studies.schema.table import TableSpec
from ..statistics.corrections import holm_adjusted
from ..statistics.estimates import Estimate
from ..statistics.paired_tests import paired_p
from .tally import CellKey, Tally

SIGNIFICANCE_LEVEL = 0.05
"""Cells of which a test gives a corrected p below this are told apart."""


def best_places(
    column: Sequence[CellKey],
    tallies: Mapping[CellKey, Tally],
    estimates: Mapping[CellKey, Estimate],
    *,
    metric: Metric,
    spec: TableSpec,
) -> list[CellKey]:
    """The best places of a column; none where there is nothing to beat, or neither side is better.

    Cells without a value are no candidates. With `best = "shown"` digits decide, so that a table never prints
    one of two equal numbers bold.
    """
    known = [place for place in column if place in estimates]
    if len(known) < 2 or metric.higher_is_better is None:
        return []
    sign = 1 if metric.higher_is_better else -1
    first = max(known, key=lambda place: sign * estimates[place].value)
    if spec.best == "shown":
        shown = metric.format(estimates[first].value)
        return [place for place in known if metric.format(estimates[place].value) == shown]
    apart = _significantly_different(first, [place for place in known if place != first], tallies, spec)
    return [place for place in known if place not in apart]


def _significantly_different(
    first: CellKey, others: Sequence[CellKey], tallies: Mapping[CellKey, Tally], spec: TableSpec
) -> set[CellKey]:
    """Those that the test tells apart from the first, corrected for how many they are.

    A place that shares no seed with the first cannot be told apart from it.
    """
    own = tallies[first].values_by_unit
    met = [place for place in others if own.keys() & tallies[place].values_by_unit.keys()]
    p_values = holm_adjusted([paired_p(own, tallies[place].values_by_unit, test=spec.test) for place in met])
    return {place for place, p in zip(met, p_values, strict=True) if p < SIGNIFICANCE_LEVEL}
