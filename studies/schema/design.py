"""Which cells a study has: the design that combines its factors, and the cells that it lists itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..designs.fractions import Row, fractional_rows
from ..designs.hadamard import plackett_burman_rows
from ..designs.samples import latin_hypercube_rows, random_rows
from .factors import SEED
from .settings import DesignKind, Level

STEPWISE = ("cumulative",)
"""The designs each of whose cells goes on from the one before."""

MAX_TRIALS = 100_000
"""More trials than these are a fault, reported before they are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How cells are made of factors; `seed` is a factor too, and crosses the cells of every design.

    `combined_factors` has the factors of [factors], `listed_cells` the cells of [[cells]] with all their
    levels. `baseline` has the levels that [study] names, `matched_size` the one name there that is not a
    factor, with its value: the size that is solved. `around` has the factors that are crossed with a design
    of the others. `target` has the levels that [study] names for the end of the design, `resolution` is that
    of a fraction, `sample_cells` and `sample_seed` are those of a sample, `labels` fill no holes.
    `as_written` is the design of the file without its overrides, if there are any.
    """

    kind: DesignKind
    combined_factors: Mapping[str, tuple[Level, ...]]
    listed_cells: Mapping[int, Mapping[str, Level]]  # by their place in the file
    baseline: Mapping[str, Level]
    matched_size: tuple[str, int] | None
    around: tuple[str, ...] = ()
    target: Mapping[str, Level] = field(default_factory=dict[str, Level])
    resolution: int = 0
    sample_cells: int = 0
    sample_seed: int = 0
    labels: tuple[str, ...] = ()
    as_written: Design | None = None

    @property
    def factors(self) -> dict[str, tuple[Level, ...]]:
        """Every factor with all its levels: those of [factors], then those that only listed cells have."""
        factors = {
            name: list({level_key(level): level for level in levels}.values())
            for name, levels in self.combined_factors.items()
        }
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

    @property
    def inner(self) -> dict[str, tuple[Level, ...]]:
        """The factors that the design combines in its own way: all but the seeds and those that cross it."""
        return {name: levels for name, levels in self.crossed.items() if name not in self.around}

    def target_level(self, name: str) -> Level:
        """The level of a factor at the end of the design: the named one, else the other one."""
        baseline = self.baseline_level(name)
        others = (level for level in self.factors[name] if level_key(level) != level_key(baseline))
        return self.target[name] if name in self.target else next(others, baseline)

    def count(self) -> int:
        """An upper bound of the cells times seeds, without making those of a grid."""
        if self.kind == "grid":
            cells = math.prod(map(len, self.crossed.values()))
        else:
            cells = len(self.rows()) * math.prod(len(self.crossed[name]) for name in self.around)
        if self.listed_cells and not self.crossed:
            cells = 0
        return (cells + len(self.listed_cells)) * len(self.combined_factors[SEED])

    def rows(self) -> list[dict[str, Level]]:
        """The cells of a design that is no grid, without the factors that cross it and the seeds."""
        inner = self.inner
        match self.kind:
            case "one_at_a_time":
                first = {name: self.baseline_level(name) for name in inner}
                return [first, *({**first, name: level} for name in inner for level in inner[name])]
            case "cumulative":
                start = {name: self.baseline_level(name) for name in inner}
                end = {name: self.target_level(name) for name in inner}
                steps = [name for name in inner if level_key(start[name]) != level_key(end[name])]
                return [
                    {**start, **{name: end[name] for name in steps[:count]}}
                    for count in range(len(steps) + 1)
                ]
            case "fractional":
                return self._two_level_rows(fractional_rows(len(self.two_level), self.resolution))
            case "plackett_burman":
                return self._two_level_rows(plackett_burman_rows(len(self.two_level)))
            case "random" | "latin_hypercube":
                draw = random_rows if self.kind == "random" else latin_hypercube_rows
                sizes = {name: len(levels) for name, levels in inner.items()}
                drawn = draw(sizes, self.sample_cells, self.sample_seed) or ()
                return [
                    {name: inner[name][number] for name, number in zip(inner, row, strict=True)}
                    for row in drawn
                ]
            case _:
                rows = zip(*inner.values(), strict=True) if inner else [()]
                return [dict(zip(inner, row, strict=True)) for row in rows]

    @property
    def two_level(self) -> list[str]:
        """The factors with two levels that the design combines in its own way."""
        return [name for name, levels in self.inner.items() if len(levels) == 2]

    def _two_level_rows(self, rows: Iterable[Row]) -> list[dict[str, Level]]:
        """Runs of the factors with two levels, of which the baseline's are first; the others have one."""
        ends = {name: (self.baseline_level(name), self.target_level(name)) for name in self.two_level}
        constant = {name: levels[0] for name, levels in self.inner.items() if name not in ends}
        return [
            {**constant, **{name: ends[name][number] for name, number in zip(ends, row, strict=True)}}
            for row in rows
        ]

    def cells(self) -> Iterator[dict[str, Level]]:
        """Every cell with every seed, once; a grid in the order of the file, other cells seed by seed."""
        order, seen = list(self.factors), set[object]()
        combined = self._seeded_grid() if self.kind == "grid" else self._seeded(self.combined_cells())
        for cell in itertools.chain(combined, self._seeded(self.listed_cells.values())):
            key = tuple(level_key(cell[name]) for name in order)
            if key not in seen:
                seen.add(key)
                yield {name: cell[name] for name in order}

    def combined_cells(self) -> Iterator[dict[str, Level]]:
        """The cells that the design makes, without seeds; none if a study lists all of its cells."""
        if self.listed_cells and not self.crossed:
            return
        if self.kind == "grid":
            for levels in itertools.product(*self.crossed.values()):
                yield dict(zip(self.crossed, levels, strict=True))
            return
        rows = self.rows()
        for levels in itertools.product(*(self.crossed[name] for name in self.around)):
            around = dict(zip(self.around, levels, strict=True))
            yield from ({**row, **around} for row in rows)

    def _seeded_grid(self) -> Iterator[dict[str, Level]]:
        """The cells of a grid, where seeds stand among the factors as in the file."""
        if self.crossed or not self.listed_cells:
            for levels in itertools.product(*self.combined_factors.values()):
                yield dict(zip(self.combined_factors, levels, strict=True))

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
