"""Which cells a study has: the design that combines its factors, and the cells that it lists itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from .factors import SEED
from .settings import Level

DesignKind = Literal["grid", "one_at_a_time", "zip"]

MAX_TRIALS = 100_000
"""More trials than these are a fault, reported before they are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How cells are made of factors; `seed` is a factor too, and crosses the cells of every design.

    `combined_factors` has the factors of [factors], `listed_cells` the cells of [[cells]] with all their
    levels. `baseline` has the levels that [study] names, `matched_size` the one name there that is not a
    factor, with its value: the size that is solved. `around` has the factors that are crossed
    with a design that changes one factor at a time. `as_written` is the design of the file without its
    overrides, if there are any.
    """

    kind: DesignKind
    combined_factors: Mapping[str, tuple[Level, ...]]
    listed_cells: Mapping[int, Mapping[str, Level]]  # by their place in the file
    baseline: Mapping[str, Level]
    matched_size: tuple[str, int] | None
    around: tuple[str, ...] = ()
    as_written: Design | None = None

    @property
    def factors(self) -> dict[str, tuple[Level, ...]]:
        """Every factor with all its levels: those of [factors], then those that only listed cells have."""
        factors = {name: list(levels) for name, levels in self.combined_factors.items()}
        for cell in self.listed_cells.values():
            for name, level in cell.items():
                if not has_level(factors.setdefault(name, []), level):
                    factors[name].append(level)
        if list(self.combined_factors)[-1] == SEED:
            factors[SEED] = factors.pop(SEED)
        return {name: tuple(levels) for name, levels in factors.items()}

    @property
    def known_levels(self) -> dict[str, tuple[Level, ...]]:
        """Every factor with the levels that can be named: its own, then those that overrides have removed."""
        written = self.as_written.factors if self.as_written else {}
        return {
            name: (*levels, *(level for level in written.get(name, ()) if not has_level(levels, level)))
            for name, levels in self.factors.items()
        }

    @property
    def crossed(self) -> dict[str, tuple[Level, ...]]:
        """The factors that the design combines, without the seeds."""
        return {name: levels for name, levels in self.combined_factors.items() if name != SEED}

    def baseline_level(self, name: str) -> Level:
        """The level of a factor in the baseline: the named one, else the first."""
        return self.baseline[name] if name in self.baseline else self.factors[name][0]

    def count(self) -> int:
        """An upper bound of the cells times seeds, without making them."""
        sizes = [len(levels) for levels in self.crossed.values()]
        match self.kind:
            case "grid":
                cells = math.prod(sizes)
            case "zip":
                cells = sizes[0] if sizes else 1
            case "one_at_a_time":
                changed = (
                    len(levels) - 1 for name, levels in self.crossed.items() if name not in self.around
                )
                cells = (1 + sum(changed)) * math.prod(len(self.crossed[name]) for name in self.around)
        if self.listed_cells and not sizes:
            cells = 0
        return (cells + len(self.listed_cells)) * len(self.combined_factors[SEED])

    def cells(self) -> Iterator[dict[str, Level]]:
        """Every cell with every seed, once; a grid in the order of the file, other cells seed by seed."""
        order, seen = list(self.factors), set[object]()
        for cell in itertools.chain(self._combined_cells(), self._seeded(self.listed_cells.values())):
            key = tuple(level_key(cell[name]) for name in order)
            if key not in seen:
                seen.add(key)
                yield {name: cell[name] for name in order}

    def _combined_cells(self) -> Iterator[dict[str, Level]]:
        """The cells of the design; none if a study lists all of its cells."""
        crossed = self.crossed
        if self.listed_cells and not crossed:
            return
        match self.kind:
            case "grid":
                for levels in itertools.product(*self.combined_factors.values()):
                    yield dict(zip(self.combined_factors, levels, strict=True))
            case "zip":
                rows = zip(*crossed.values(), strict=True) if crossed else [()]
                yield from self._seeded([dict(zip(crossed, row, strict=True)) for row in rows])
            case "one_at_a_time":
                for levels in itertools.product(*(crossed[name] for name in self.around)):
                    first = {name: self.baseline_level(name) for name in crossed}
                    first |= dict(zip(self.around, levels, strict=True))
                    others = [name for name in crossed if name not in self.around]
                    changed = [{**first, name: level} for name in others for level in crossed[name]]
                    yield from self._seeded([first, *changed])

    def _seeded(self, cells: Iterable[Mapping[str, Level]]) -> Iterator[dict[str, Level]]:
        """Each cell with each seed."""
        for cell in cells:
            yield from ({**cell, SEED: seed} for seed in self.combined_factors[SEED])


def level_key(level: Level) -> str:
    """The key of a level, equal for equal levels of one type: `1` and `1.0` differ."""
    return repr(level)


def has_level(levels: Iterable[Level], level: Level) -> bool:
    """Whether a level is one of these, of the same type."""
    return level_key(level) in map(level_key, levels)
