"""The metrics, factors and cells to which the claims of a study may refer.

A quantity stands for the cells with the levels in its brackets. Factors that are not named are left open.
That is valid if exactly one cell has the named levels. Each other factor then has only one level, or follows
from the named ones as in a zip. In a design of one at a time it keeps its baseline level. The seed is never
named: a quantity has a value for each seed, and is compared seed by seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from ..catalog.metrics import Metric
from ..resolve.trial import CellKey, cell_key
from ..schema.design import Design
from ..schema.factors import SEED, NamedLevels, level_key
from ..schema.settings import Level
from .comparisons import Cell


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The metrics, factors and cells of a design to which claims may refer; `factors` has no seed."""

    design: Design
    metrics: Mapping[str, Metric]
    factors: Mapping[str, tuple[Level, ...]]
    cells: tuple[Cell, ...]

    @cached_property
    def names(self) -> Mapping[str, NamedLevels]:
        """The names of each factor's levels."""
        return {factor: NamedLevels(levels, f"of {factor}") for factor, levels in self.factors.items()}

    @cached_property
    def _cells_by_key(self) -> Mapping[CellKey, Cell]:
        return {cell_key(cell): cell for cell in self.cells}

    @cached_property
    def _cells_with(self) -> Mapping[tuple[str, object], list[CellKey]]:
        """The keys of the cells that have each level, in the order of the cells."""
        found: dict[tuple[str, object], list[CellKey]] = {}
        for place in self._cells_by_key:
            for each in place:
                found.setdefault(each, []).append(place)
        return found

    def at_level(self, factor: str, level: Level) -> Scope:
        """Return a scope with only the cells that have this level of a factor."""
        wanted = cell_key({factor: level})
        cells = tuple(cell for key, cell in self._cells_by_key.items() if wanted <= key)
        return replace(self, factors={**self.factors, factor: (level,)}, cells=cells)

    def select(self, named: Mapping[str, Level]) -> tuple[Cell, ...]:
        """Return the cells that have the levels in `named`.

        If several cells match, and one of them has the baseline's levels of all other factors, return only
        that cell.
        """
        wanted = cell_key(named)
        if wanted in self._cells_by_key:
            return (self._cells_by_key[wanted],)
        among = min(
            (self._cells_with[each] for each in wanted if each in self._cells_with), key=len, default=()
        )
        if not wanted:
            among = tuple(self._cells_by_key)
        found = tuple(self._cells_by_key[place] for place in among if wanted <= place)
        if len(found) > 1 and self.design.kind == "one_at_a_time":
            baseline = {name: self.design.baseline_level(name) for name in self.factors}
            base = self._cells_by_key.get(cell_key(self.design.with_absent({**baseline, **named})))
            return (base,) if base in found else found
        return found

    def varying_factors(self, cells: Iterable[Cell]) -> dict[str, tuple[Level, ...]]:
        """Return the factors that vary among these cells, in the order of the study, with their levels."""
        held = [dict(cell) for cell in cells]
        met = {factor: {level_key(cell[factor]) for cell in held} for factor in self.factors}
        return {
            factor: tuple(level for level in levels if level_key(level) in met[factor])
            for factor, levels in self.factors.items()
            if len(met[factor]) > 1
        }

    @cached_property
    def dependent_factors(self) -> frozenset[str]:
        """Return the factors whose level follows from the level of another factor in every cell.

        If two factors determine each other, return the second. A number, such as a learning rate, may also
        follow from the levels of all factors that are texts.
        """
        cells = [{name: level_key(level) for name, level in cell} for cell in self.cells]
        varying = self.varying_factors(self.cells)
        texts = [name for name, levels in varying.items() if all(isinstance(each, str) for each in levels)]
        found = {name for name in varying if name not in texts and _determine(cells, texts, name)}
        for at, name in enumerate(varying):
            for before, other in enumerate(varying):
                if name == other or other in found or not _determine(cells, [other], name):
                    continue
                if before < at or not _determine(cells, [name], other):
                    found.add(name)
        return frozenset(found)


def claim_scope(design: Design, metrics: Mapping[str, Metric]) -> Scope:
    """Return the metrics, factors and cells to which claims of a design may refer."""
    factors = {name: levels for name, levels in design.factors.items() if name != SEED}
    planned = chain.from_iterable(design.blocks())
    cells = tuple(tuple((name, cell[name]) for name in factors) for cell in planned)
    return Scope(design=design, metrics=metrics, factors=factors, cells=cells)


def _determine(cells: Iterable[Mapping[str, str]], names: Sequence[str], other: str) -> bool:
    """Return whether the levels of `names` determine the level of `other` in all cells."""
    pairs = {(tuple(cell[name] for name in names), cell[other]) for cell in cells}
    return len({place for place, _ in pairs}) == len(pairs)
