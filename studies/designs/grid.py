"""The grid: all combinations of the factors' levels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from ..schema.design import MAX_TRIALS, Design, with_absent
from ..schema.factors import ABSENT, SEED
from ..schema.settings import Level


class Grid(Design):
    """A design with all combinations of levels. Without conditions, it counts cells without making them."""

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
        cells: Iterator[dict[str, Level]] = iter([{}])
        for name in order:
            cells = self._extend(cells, name, self.crossed[name])
        return cells

    def _extend(
        self, cells: Iterator[dict[str, Level]], name: str, levels: Sequence[Level]
    ) -> Iterator[dict[str, Level]]:
        conditions = {name: self.conditions[name]} if name in self.conditions else {}
        for cell in cells:
            is_absent = levels and with_absent(conditions, {**cell, name: levels[0]})[name] == ABSENT
            for level in (ABSENT,) if is_absent else levels:
                yield {**cell, name: level}


DESIGN = Grid
