"""The variance of a comparison by all cells that are comparable with those that it names.

Comparable are the cells of the same task that differ from the compared ones in no factor but those that are
compared; in a design that is no grid, all cells of the task. A comparison that is a sum of differences,
within a task or over several, has the sum of their variances. Of minima, maxima, quotients, and of what is
compared with a number, nothing is pooled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from ...studies.claims.comparisons import Comparison, Constant, Number, Quantity, Reduction, SignedSum
from ...studies.claims.scope import CellKey, cell_key
from ..statistics.pooled_differences import Pool, Values, pooled_variance

if TYPE_CHECKING:
    from ...studies.resolve.trial import Trial
    from ...studies.study import Study

_Group = tuple[str, str, CellKey]
"""A metric, a task with all its settings, and the levels that comparable cells share."""


class ComparableCells:
    """The cells of a study by what they can be compared with.

    `trials` has those of each cell by seed, `value` is a metric of one of them.
    """

    def __init__(
        self,
        study: Study,
        trials: Mapping[CellKey, Mapping[int, Trial]],
        value: Callable[[str, Trial], float | None],
    ) -> None:
        self._trials, self._value = trials, value
        self._tasks: dict[CellKey, str] = {}
        self._is_grid = study.design.kind == "grid" and not study.design.listed_cells
        self._pools: dict[tuple[_Group, tuple[int, ...]], Pool | None] = {}

    def pool(self, comparison: Comparison, seeds: tuple[int, ...]) -> Pool | None:
        """Return the variance of left minus right for one seed, by these; None where nothing can be pooled.

        The degrees of freedom of a sum of variances are Satterthwaite's (1946).
        """
        weights = _linear(comparison.left, 1.0, {})
        weights = None if weights is None else _linear(comparison.right, -1.0, weights)
        groups = self._groups(weights) if weights else None
        if not groups:
            return None
        parts: list[tuple[float, Pool]] = []
        for group, squares in groups.items():
            if (group, seeds) not in self._pools:
                self._pools[group, seeds] = pooled_variance(self._values(group, seeds))
            pool = self._pools[group, seeds]
            if pool is None:
                return None
            parts.append((squares / 2 * pool.variance, pool))  # that of a difference is of two cells
        variance = math.fsum(each for each, _ in parts)
        if not variance:
            return None
        weight = math.fsum(each**2 / pool.degrees for each, pool in parts)
        return Pool(variance=variance, degrees=int(variance**2 / weight))

    def _groups(self, weights: Mapping[Quantity, float]) -> dict[_Group, float] | None:
        """Return the sum of squared weights of each group; None if the weights of one do not cancel.

        What all cells of a seed have in common is part of a difference only if they cancel.
        """

        def task(quantity: Quantity) -> tuple[str, str]:
            return quantity.metric, self._task(cell_key(quantity.cell))

        found: dict[_Group, float] = {}
        for (metric, settings), members in groupby(sorted(weights, key=task), key=task):
            quantities = list(members)
            if not settings or abs(math.fsum(weights[each] for each in quantities)) > 1e-9:
                return None
            shared = frozenset[tuple[str, object]]()
            if self._is_grid:
                shared = frozenset.intersection(*(cell_key(each.cell) for each in quantities))
            found[metric, settings, shared] = math.fsum(weights[each] ** 2 for each in quantities)
        return found

    def _values(self, group: _Group, seeds: tuple[int, ...]) -> list[Values]:
        metric, settings, shared = group
        return [
            {
                seed: found
                for seed in seeds
                if seed in trials and (found := self._value(metric, trials[seed])) is not None
            }
            for place, trials in self._trials.items()
            if shared <= place and self._task(place) == settings
        ]

    def _task(self, place: CellKey) -> str:
        if place not in self._tasks:
            first = next(iter(self._trials.get(place, {}).values()), None)
            self._tasks[place] = "" if first is None else first.settings.task.model_dump_json()
        return self._tasks[place]


def _linear(number: Number, factor: float, found: dict[Quantity, float]) -> dict[Quantity, float] | None:
    """Weights of quantities, to which those of a number are added; None if it is no weighted sum."""
    match number:
        case Constant():
            return found
        case Quantity():
            found[number] = found.get(number, 0.0) + factor
            return found
        case SignedSum():
            terms = [(sign * factor, term) for sign, term in number.terms]
        case Reduction() if number.function == "mean" or len(number.parts) == 1:
            terms = [(factor / len(number.parts), part) for part in number.parts]
        case _:
            return None
    for weight, term in terms:
        if _linear(term, weight, found) is None:
            return None
    return found
