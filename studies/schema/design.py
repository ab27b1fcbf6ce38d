"""Cells of a study: the design that combines its factors, and explicitly listed cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..designs import Row, fractional_rows, latin_hypercube_rows, plackett_burman_rows, random_rows
from .factors import ABSENT, SEED, Conditions, TableLevels, settled
from .settings import DesignKind, Level, MatchedCost

STEPWISE = ("cumulative", "path")
"""The designs in which each cell builds on the previous one."""

MAX_TRIALS = 100_000
"""The maximum number of trials; a larger grid is a fault, reported before its trials are made."""


_MAX_DRAWN = 64  # times the cells that are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSize:
    """The size that is solved in each cell: its name, the baseline's, and the costs that become equal."""

    name: str
    size: int
    costs: tuple[MatchedCost, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The cells of a study; `seed` is a factor, too, and is crossed with the cells of every design.

    `combined_factors` has the factors of [factors], `listed_cells` the cells of [[cells]] with all their
    levels. `baseline` has the levels that [study] names, `matched_size` the only name there that is not a
    factor: the size to solve. `around` has the factors that are crossed with a design of the others. `target`
    has the levels of [study] at the end of the design. `metric` decides which change each round of a path
    keeps, in its `direction` if one is named, and `taken` are the changes kept so far. A fraction has a
    `resolution`; a sample has `sample_cells` and a `sample_seed`. `labels` fill no holes, and factors with
    `conditions` have the level ABSENT in some cells. `ladder` has the size factors of [ladder], from the
    smallest size on. `as_written` is the design of the file without its overrides, if there are any.
    `table_levels` has the tables behind level names. `factors` has every factor with all its levels: the
    levels of [factors], then the levels that only listed cells have.
    """

    kind: DesignKind
    combined_factors: Mapping[str, tuple[Level, ...]]
    listed_cells: Mapping[int, Mapping[str, Level]]  # by their place in the file
    baseline: Mapping[str, Level]
    matched_size: MatchedSize | None
    around: tuple[str, ...] = ()
    target: Mapping[str, Level] = field(default_factory=dict[str, Level])
    metric: str = ""
    direction: str = ""
    taken: tuple[str, ...] = ()
    resolution: int = 0
    sample_cells: int = 0
    sample_seed: int = 0
    labels: tuple[str, ...] = ()
    conditions: Conditions = field(default_factory=dict[str, Mapping[str, tuple[Level, ...]]])
    ladder: tuple[str, ...] = ()
    as_written: Design | None = None
    table_levels: TableLevels = field(default_factory=dict[str, Mapping[Level, Mapping[str, Any]]])
    factors: Mapping[str, tuple[Level, ...]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the levels of all factors once, since they are needed often."""
        factors = {
            name: list({level_key(level): level for level in levels}.values())
            for name, levels in self.combined_factors.items()
        }
        for cell in self.listed_cells.values():
            for name, level in cell.items():
                if level != ABSENT and not has_level(factors.setdefault(name, []), level):
                    factors[name].append(level)
        if list(self.combined_factors)[-1] == SEED:
            factors[SEED] = factors.pop(SEED)
        object.__setattr__(self, "factors", {name: tuple(levels) for name, levels in factors.items()})

    @property
    def known_levels(self) -> dict[str, tuple[Level, ...]]:
        """Every factor with its known levels: its own, then those that overrides have removed."""
        written = self.as_written.factors if self.as_written else {}
        return {
            name: (*levels, *(level for level in written.get(name, ()) if not has_level(levels, level)))
            for name, levels in self.factors.items()
        }

    @property
    def crossed(self) -> dict[str, tuple[Level, ...]]:
        """The factors that the design combines, without the seeds."""
        return {name: levels for name, levels in self.combined_factors.items() if name != SEED}

    def written_level(self, name: str, level: Level) -> Any:  # noqa: ANN401 -- TOML holds anything
        """Return a level of a factor in the file's notation: its table, with its label, if it names one."""
        table = self.table_levels.get(name, {}).get(level)
        if table is None:
            return level
        return dict(table) if table.get("name") == level else {"label": level, **table}

    def baseline_level(self, name: str) -> Level:
        """Return the level of a factor in the baseline: the named one, else the first."""
        return self.baseline[name] if name in self.baseline else self.factors[name][0]

    @property
    def inner(self) -> dict[str, tuple[Level, ...]]:
        """The factors that the design combines itself: all but the seeds and crossed ones."""
        return {name: levels for name, levels in self.crossed.items() if name not in self.around}

    def target_level(self, name: str) -> Level:
        """Return a factor's level at the end of the design: the named one, else the other one."""
        baseline = self.baseline_level(name)
        others = (level for level in self.factors[name] if level_key(level) != level_key(baseline))
        return self.target[name] if name in self.target else next(others, baseline)

    def settled(self, levels: Mapping[str, Level]) -> dict[str, Level]:
        """Return the levels with ABSENT for each factor whose condition they do not meet."""
        return settled(self.conditions, levels) if self.conditions else dict(levels)

    def baseline_of(self, levels: Mapping[str, Level]) -> dict[str, Level]:
        """Return the baseline's cell for these levels.

        It has the baseline's levels from [study], and these levels of all other factors.
        """
        found = {**levels, **self.baseline}
        for name in self.conditions:
            if found.get(name) == ABSENT:
                found[name] = self.baseline_level(name)
        return self.settled(found)

    def count(self) -> int:
        """Return an upper bound of cells times seeds.

        The cells of a grid without conditions are counted without making them.
        """
        if self.kind == "grid" and self.conditions:
            cells = sum(1 for _ in itertools.islice(self._nested_grid(), MAX_TRIALS + 1))
        elif self.kind == "grid":
            cells = math.prod(map(len, self.crossed.values()))
        else:
            cells = len(self.rows()) * math.prod(len(self.crossed[name]) for name in self.around)
        if self.listed_cells and not self.crossed:
            cells = 0
        return (cells + len(self.listed_cells)) * len(self.combined_factors[SEED])

    def rows(self) -> list[dict[str, Level]]:
        """Return the cells of a design other than a grid, without seeds and crossed factors."""
        inner = self.inner
        if not all(inner.values()):
            return []  # a factor without levels is a fault of its own
        start = {name: self.baseline_level(name) for name in inner}
        match self.kind:
            case "one_at_a_time":
                rows = [start, *({**start, name: level} for name in inner for level in inner[name])]
            case "cumulative":
                rows = self.way()
            case "path":
                # what each round has tried and tries now
                rounds = (replace(self, taken=self.taken[:count]) for count in range(len(self.taken) + 1))
                rows = [self.way()[0], *(row for each in rounds for row in each.tries().values())]
            case "fractional":
                rows = self._two_level_rows(fractional_rows(len(self.two_level), self.resolution))
            case "plackett_burman":
                rows = self._two_level_rows(plackett_burman_rows(len(self.two_level)))
            case "random":
                rows = self._random_rows()
            case "latin_hypercube":
                sizes = tuple((name, len(levels)) for name, levels in inner.items())
                drawn = latin_hypercube_rows(sizes, self.sample_cells, self.sample_seed) or ()
                rows = [_at(inner, row) for row in drawn]
            case _:
                count = len(next(iter(inner.values()), (0,)))
                rows = [{name: levels[number] for name, levels in inner.items()} for number in range(count)]
        return rows

    @property
    def steps(self) -> dict[str, Level]:
        """The factors that do not end at the baseline's level, in order, with their final levels."""
        ends = {name: self.target_level(name) for name in self.inner}
        return {
            name: level
            for name, level in ends.items()
            if level_key(level) != level_key(self.baseline_level(name))
        }

    def way(self) -> list[dict[str, Level]]:
        """Return the cells of a stepwise design; each has one more step than the previous one."""
        start = {name: self.baseline_level(name) for name in self.inner}
        order = self.taken if self.kind == "path" else tuple(self.steps)
        return [start | {name: self.steps[name] for name in order[:count]} for count in range(len(order) + 1)]

    def tries(self) -> dict[str, dict[str, Level]]:
        """Return the remaining changes of a path's current round, by factor."""
        base = self.way()[-1]
        left = {name: level for name, level in self.steps.items() if name not in self.taken}
        return {name: {**base, name: level} for name, level in left.items()}

    @property
    def two_level(self) -> list[str]:
        """The factors with two levels that the design combines itself."""
        return [name for name, levels in self.inner.items() if len(levels) == 2]

    def _two_level_rows(self, rows: Iterable[Row]) -> list[dict[str, Level]]:
        """Return runs of two-level factors, the baseline's level first; the others keep one level."""
        ends = {name: (self.baseline_level(name), self.target_level(name)) for name in self.two_level}
        constant = {name: levels[0] for name, levels in self.inner.items() if name not in ends}
        return [
            {**constant, **{name: ends[name][number] for name, number in zip(ends, row, strict=True)}}
            for row in rows
        ]

    def _random_rows(self) -> list[dict[str, Level]]:
        """Return random cells; fewer than requested if too many coincide except for absent levels."""
        sizes = tuple((name, len(levels)) for name, levels in self.inner.items())
        most = min(math.prod(count for _, count in sizes), _MAX_DRAWN * self.sample_cells)
        drawn, found = self.sample_cells, dict[object, dict[str, Level]]()
        while drawn:
            for row in random_rows(sizes, drawn, self.sample_seed):
                cell = self.settled(_at(self.inner, row))
                found.setdefault(tuple(map(level_key, cell.values())), cell)
            if len(found) >= self.sample_cells or drawn >= most:
                break
            drawn = min(2 * drawn, most)
        return list(found.values())[: self.sample_cells]

    def cells(self) -> Iterator[dict[str, Level]]:
        """Yield every cell with every seed once; a grid in file order, other cells seed by seed."""
        order, seen = list(self.factors), set[object]()
        is_plain = self.kind == "grid" and not self.conditions
        combined = self._seeded_grid() if is_plain else self._seeded(self.combined_cells())
        for cell in itertools.chain(combined, self._seeded(self.listed_cells.values())):
            key = tuple(level_key(cell[name]) for name in order)
            if key not in seen:
                seen.add(key)
                yield {name: cell[name] for name in order}

    def combined_cells(self) -> Iterator[dict[str, Level]]:
        """Yield the cells that the design makes, without seeds; none if a study lists all of its cells."""
        if self.listed_cells and not self.crossed:
            return
        if self.kind == "grid":
            yield from self._nested_grid()
            return
        rows = self.rows()
        for levels in itertools.product(*(self.crossed[name] for name in self.around)):
            around = dict(zip(self.around, levels, strict=True))
            yield from (self.settled({**row, **around}) for row in rows)

    def _nested_grid(self) -> Iterator[dict[str, Level]]:
        order = [*(name for name in self.crossed if name not in self.conditions), *self.conditions]

        def extend(cell: dict[str, Level], names: Sequence[str]) -> Iterator[dict[str, Level]]:
            if not names:
                yield cell
                return
            levels = self.crossed[names[0]]
            if levels and self.settled({**cell, names[0]: levels[0]})[names[0]] == ABSENT:
                levels = (ABSENT,)
            for level in levels:
                yield from extend({**cell, names[0]: level}, names[1:])

        return extend({}, order)

    def _seeded_grid(self) -> Iterator[dict[str, Level]]:
        if self.crossed or not self.listed_cells:
            for levels in itertools.product(*self.combined_factors.values()):
                yield dict(zip(self.combined_factors, levels, strict=True))

    def _seeded(self, cells: Iterable[Mapping[str, Level]]) -> Iterator[dict[str, Level]]:
        for cell in cells:
            yield from ({**cell, SEED: seed} for seed in self.combined_factors[SEED])


def _at(factors: Mapping[str, tuple[Level, ...]], row: Row) -> dict[str, Level]:
    return {name: factors[name][number] for name, number in zip(factors, row, strict=True)}


def level_key(level: Level) -> str:
    """Return a key that is equal for equal levels of the same type: `1` and `1.0` differ."""
    return repr(level)


def has_level(levels: Iterable[Level], level: Level) -> bool:
    """Return whether a level is one of these, of the same type."""
    return level_key(level) in map(level_key, levels)
