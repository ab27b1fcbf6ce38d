"""The best level of the factors that a cell is picked from, by the table's first metric.

Where a table says what stands in a cell without that metric, a level of which more trials have it is better,
and among levels without it the other metric decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...studies.catalog.metrics import find_metric
from ...studies.schema.table import TableSpec
from .table import CellStatus
from .tally import CellKey, Tally

_WHY_EMPTY: Mapping[CellStatus | None, str] = {CellStatus.MISSING: "not run", CellStatus.DIVERGED: "diverged"}


def pick_best(
    spec: TableSpec, found: Mapping[CellKey, tuple[Tally, ...]]
) -> tuple[dict[CellKey, Tally], dict[CellKey, str]]:
    """The tally of the best levels at each place, and a remark on those without a value that could be better.

    Of levels with equal centres the first is taken. Where none has a value, all of their trials are together.
    """
    taken: dict[CellKey, Tally] = {}
    lost: dict[CellKey, str] = {}
    for (row, column, metric), tallies in found.items():
        ranked = [found[row, column, name] for name in (spec.value[0], spec.otherwise) if name]
        number = _best(spec, ranked)
        taken[row, column, metric] = _merge_tallies(tallies) if number is None else tallies[number]
        levels = list(zip(*ranked, strict=True))
        empty = [level[0].status for level in levels if not any(tally.values for tally in level)]
        if number is not None and empty:
            alike = empty[0] if len(set(empty)) == 1 else None
            why = _WHY_EMPTY.get(alike, "gave no value")
            lost[row, column, metric] = (
                f"{len(empty)} of {len(levels)} levels of {' and '.join(spec.over)} {why}"
            )
    return taken, lost


def _best(spec: TableSpec, ranked: Sequence[tuple[Tally, ...]]) -> int | None:
    """The number of the level with the best centre, None where none has a value of any metric."""
    for name, tallies in zip((spec.value[0], spec.otherwise), ranked, strict=False):
        sign = 1 if name and find_metric(name).higher_is_better else -1
        counts = spec.otherwise is not None and name != spec.otherwise
        known: dict[int, tuple[int, float]] = {}
        for number, tally in enumerate(tallies):
            if (center := tally.estimate(spec.center)) is not None:
                known[number] = len(tally.values) if counts else 0, sign * center.value
        if known:
            return max(known, key=lambda number: known[number])
    return None


def _merge_tallies(tallies: tuple[Tally, ...]) -> Tally:
    """All trials of several tallies in one, without values."""
    return Tally(
        trials=sum(tally.trials for tally in tallies),
        values=(),
        gaps=tuple(gap for tally in tallies for gap in tally.gaps),
    )
