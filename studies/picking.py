"""The best level of the factors that a cell is picked from, by the table's first metric."""

from __future__ import annotations

from collections.abc import Mapping

from .measures import measure
from .table_spec import TableSpec
from .tally import Place, Tally


def pick(
    spec: TableSpec, found: Mapping[Place, tuple[Tally, ...]]
) -> tuple[dict[Place, Tally], dict[Place, str]]:
    """The tally of the best levels at each place, and how many levels have no value that could be better.

    Of levels with equal centres the first is taken. Where none has a value, all of their trials are together.
    """
    first = spec.value[0]
    taken: dict[Place, Tally] = {}
    lost: dict[Place, str] = {}
    for (row, column, metric), tallies in found.items():
        ranked = found[row, column, first]
        number = _best(spec, ranked)
        taken[row, column, metric] = _together(tallies) if number is None else tallies[number]
        empty = sum(not tally.values for tally in ranked)
        if number is not None and empty:
            lost[row, column, metric] = f"{empty} of {len(ranked)} levels"
    return taken, lost


def _best(spec: TableSpec, tallies: tuple[Tally, ...]) -> int | None:
    """The number of the tally with the best centre, None where none has a value."""
    sign = 1 if measure(spec.value[0]).higher else -1
    centers = [tally.estimate(spec.center) for tally in tallies]
    known = {number: sign * center.value for number, center in enumerate(centers) if center is not None}
    return max(known, key=lambda number: known[number], default=None)


def _together(tallies: tuple[Tally, ...]) -> Tally:
    """All trials of several tallies in one; with values only where the first metric has none of them."""
    return Tally(
        trials=sum(tally.trials for tally in tallies),
        values=(),
        failed=tuple(reason for tally in tallies for reason in tally.failed),
        pruned=tuple(reason for tally in tallies for reason in tally.pruned),
        missing=sum(tally.missing for tally in tallies),
        begun=sum(tally.begun for tally in tallies),
    )
