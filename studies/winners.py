"""The best cells of a column: those that print like the best, or that a test cannot tell apart from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .metrics import Metric
from .statistics import Estimate, holm, paired
from .table_spec import TableSpec
from .tally import Place, Tally

LEVEL = 0.05
"""Cells of which a test gives a corrected p below this are told apart."""


def winners(
    column: Sequence[Place],
    tallies: Mapping[Place, Tally],
    estimates: Mapping[Place, Estimate],
    *,
    metric: Metric,
    spec: TableSpec,
) -> list[Place]:
    """The best places of a column; none where there is nothing to beat, or neither side is better.

    Cells without a value are no candidates. With `best = "shown"` digits decide, so that a table never prints
    one of two equal numbers bold.
    """
    known = [place for place in column if place in estimates]
    if len(known) < 2 or metric.higher is None:
        return []
    sign = 1 if metric.higher else -1
    first = max(known, key=lambda place: sign * estimates[place].value)
    if spec.best == "shown":
        shown = metric.show(estimates[first].value)
        return [place for place in known if metric.show(estimates[place].value) == shown]
    apart = _apart(first, [place for place in known if place != first], tallies, spec)
    return [place for place in known if place not in apart]


def _apart(
    first: Place, others: Sequence[Place], tallies: Mapping[Place, Tally], spec: TableSpec
) -> set[Place]:
    """Those that the test tells apart from the first, corrected for how many they are.

    A place that shares no seed with the first cannot be told apart from it.
    """
    own = tallies[first].by_unit
    met = [place for place in others if own.keys() & tallies[place].by_unit.keys()]
    p_values = holm([paired(own, tallies[place].by_unit, test=spec.test).p for place in met])
    return {place for place, p in zip(met, p_values, strict=True) if p < LEVEL}
