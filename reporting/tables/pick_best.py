"""The best level of the factors that a cell is picked from, by the table's first metric.

If the table names a metric to show in its place, a level with more values of the first metric is better, and
among levels without any the other metric decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import find_metric
from .table import CellStatus
from .tally import CellKey, Tally

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable

_WHY_EMPTY: Mapping[CellStatus | None, str] = {CellStatus.MISSING: "not run", CellStatus.DIVERGED: "diverged"}


def pick_best(
    spec: CellsTable, tallies_by_place: Mapping[CellKey, tuple[Tally, ...]]
) -> tuple[dict[CellKey, Tally], dict[CellKey, str]]:
    """Return the tally of the best level at each place, and a remark on levels without a value.

    The first of several equal levels counts. If none has a value, their trials are merged.
    """
    best: dict[CellKey, Tally] = {}
    remarks: dict[CellKey, str] = {}
    for (row, column, metric), tallies in tallies_by_place.items():
        ranked = [tallies_by_place[row, column, name] for name in (spec.value[0], spec.otherwise) if name]
        number = _best(spec, ranked)
        best[row, column, metric] = _merge_tallies(tallies) if number is None else tallies[number]
        levels = list(zip(*ranked, strict=True))
        empty = [level[0].status for level in levels if not any(tally.values for tally in level)]
        if number is not None and empty:
            status = empty[0] if len(set(empty)) == 1 else None
            why = _WHY_EMPTY.get(status, "gave no value")
            remarks[row, column, metric] = (
                f"{len(empty)} of {len(levels)} levels of {' and '.join(spec.over)} {why}"
            )
    return best, remarks


def _best(spec: CellsTable, ranked: Sequence[tuple[Tally, ...]]) -> int | None:
    """Return the number of the level with the best centre; None if none has a value of either metric."""
    for name, tallies in zip((spec.value[0], spec.otherwise), ranked, strict=False):
        sign = 1 if name and find_metric(name).higher_is_better else -1
        counts = spec.otherwise is not None and name != spec.otherwise
        scores: dict[int, tuple[int, float]] = {}
        for number, tally in enumerate(tallies):
            if (center := tally.estimate(spec.center)) is not None:
                scores[number] = len(tally.values) if counts else 0, sign * center.value
        if scores:
            return max(scores, key=scores.__getitem__)
    return None


def _merge_tallies(tallies: tuple[Tally, ...]) -> Tally:
    """Return all trials of several tallies in one, without values."""
    return Tally(
        trials=sum(tally.trials for tally in tallies),
        values=(),
        gaps=tuple(gap for tally in tallies for gap in tally.gaps),
    )
