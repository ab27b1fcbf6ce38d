"""The grid: all combinations of the factors' levels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from ..schema.design import MAX_TRIALS, Design
from ..schema.factors import ABSENT, SEED
from ..schema.settings import Level


class Grid(Design):
    """A design with all combinations of the factors' levels.

    Without conditions, it counts its cells without making them.
    """

    title = "all combinations of the factors' levels"

    def make_rows(self) -> Sequence[dict[str, Level]]:
        return list(self._combine())

    def explain_kind(self) -> str:
        return "every combination of levels" if self.conditions else ""

    def _count_combined(self) -> int:
        if self.conditions:
            return sum(1 for _ in itertools.islice(self._combine(), MAX_TRIALS + 1))
        return math.prod(map(len, self.crossed.values()))

    def _combined_blocks(self) -> Iterator[Sequence[Mapping[str, Level]]]:
        if self.conditions or not self.crossed:
            yield from super()._combined_blocks()
            return
        seed, levels = list(self.combined_factors).index(SEED), list(self.crossed.values())
        for before in itertools.product(*levels[:seed]):
            cells = ((*before, *after) for after in itertools.product(*levels[seed:]))
            yield [dict(zip(self.crossed, cell, strict=True)) for cell in cells]

    def _combine(self) -> Iterator[dict[str, Level]]:
        # conditional factors come last, because their condition needs the levels of the other factors
        order = [*(name for name in self.crossed if name not in self.conditions), *self.conditions]

        def extend(cell: dict[str, Level], names: Sequence[str]) -> Iterator[dict[str, Level]]:
            if not names:
                yield cell
                return
            levels = self.crossed[names[0]]
            if levels and self.with_absent({**cell, names[0]: levels[0]})[names[0]] == ABSENT:
                levels = (ABSENT,)
            for level in levels:
                yield from extend({**cell, names[0]: level}, names[1:])

        return extend({}, order)


DESIGN = Grid
