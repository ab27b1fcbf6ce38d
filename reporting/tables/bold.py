"""The best cells of a column: those printed like the best, or beside which none is significantly better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import Metric
from ..statistics.decided_differences import (
    SIGNIFICANCE_LEVEL,
    DecidedDifference,
    decide,
    differences_at_looks,
)
from ..statistics.estimates import Estimate
from ..statistics.paired_tests import detectable
from ..statistics.pooled_differences import Difference, all_pairs
from ..statistics.sequential import look_level
from .tally import CellKey, Grown

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfColumn:
    """The best places of a column, and the tests that found them.

    `pairs` is for how many pairs p is corrected, 0 without a test. `tested` are the differences of pairs.
    `detectable` is the difference that is found with a chance of 80 %; None where a permutation test decided.
    `worse` counts the values that are significantly worse than another. Where a table says which difference
    matters, `rivals` has the difference of the first of the best from each other one.
    """

    metric: Metric
    places: frozenset[CellKey] = frozenset()
    pairs: int = 0
    tested: tuple[Difference, ...] = ()
    detectable: float | None = None
    worse: int = 0
    rivals: Mapping[tuple[CellKey, CellKey], DecidedDifference] = field(
        default_factory=dict[tuple[CellKey, CellKey], DecidedDifference]
    )


def best_of_column(
    column: Sequence[CellKey],
    grown: Grown,
    estimates: Mapping[CellKey, Estimate],
    *,
    metric: Metric,
    spec: CellsTable,
    counts: Sequence[int],
) -> BestOfColumn:
    """Return the best places of a column.

    There are none with fewer than two values, if all values are equal, or if neither direction is better.

    A place with an infinite value is worse than every other one, and never best. With `best = "shown"` the
    printed digits decide, so that two equal numbers are both bold or both plain. `counts` are the numbers of
    seeds at which the table looks.
    """
    known = [place for place in column if place in estimates]
    is_infinite = any(place in grown and grown[place][-1].is_infinite for place in column)
    if len(known) < (1 if is_infinite else 2) or metric.higher_is_better is None:
        return BestOfColumn(metric=metric)
    if len(known) == 1:
        return BestOfColumn(metric=metric, places=frozenset(known))
    sign = 1 if metric.higher_is_better else -1
    ranked = sorted(known, key=lambda place: -sign * estimates[place].value)
    shown = metric.format(estimates[ranked[0]].value)
    places = [place for place in known if metric.format(estimates[place].value) == shown]
    if len(places) == len(known) and not is_infinite:  # nothing is best where all are equal
        return BestOfColumn(metric=metric)
    if spec.best == "shown":
        return BestOfColumn(metric=metric, places=frozenset(places))
    pairs, margin = all_pairs(len(ranked)), spec.margin(metric.name)
    cells = [[tally.values_by_unit for tally in grown[place]] for place in ranked]
    found = differences_at_looks(cells, pairs, counts, margin)
    decided = dict(zip(pairs, decide(found.each, counts), strict=True))
    known_pairs = {pair: each for pair, each in decided.items() if each is not None and each.p is not None}
    worse = {
        ranked[two if sign * each.shown.mean > 0 else one]
        for (one, two), each in known_pairs.items()
        if each.differs
    }
    limit, error = None, found.last.error
    if found.last.degrees is not None and error is not None and known_pairs:
        level = look_level(tuple(counts), SIGNIFICANCE_LEVEL / len(known_pairs))
        limit = detectable(error, found.last.degrees, level)
    best = [at for at, place in enumerate(ranked) if place not in worse]
    rivals = {} if margin is None else {(best[0], at): decided[best[0], at] for at in best[1:]}
    return BestOfColumn(
        metric=metric,
        places=frozenset(ranked[at] for at in best),
        pairs=len(known_pairs),
        worse=len(worse),
        tested=tuple(each.shown for each in known_pairs.values()),
        detectable=limit,
        rivals={(ranked[one], ranked[at]): each for (one, at), each in rivals.items() if each is not None},
    )
