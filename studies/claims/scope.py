"""Names that a claim can use: a study's metrics, factors, and cells by their levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..catalog.metrics import Metric
from ..schema.design import Design, level_key
from ..schema.factors import SEED, Conditions, settled
from ..schema.level_names import NamedLevels
from ..schema.settings import Level

Cell = tuple[tuple[str, Level], ...]
"""Every factor except the seed with its level, in the order of the study."""

CellKey = frozenset[tuple[str, object]]
"""A cell without an order of its factors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Names that a claim may use: `factors` without the seed, and `ladder`, the size factors."""

    metrics: Mapping[str, Metric]
    factors: Mapping[str, tuple[Level, ...]]
    cells: tuple[Cell, ...]
    baseline_level: (
        Callable[[str], Level] | None
    )  # of each factor the baseline's level; None where there is none
    ladder: Mapping[str, tuple[Level, ...]] = field(default_factory=dict[str, tuple[Level, ...]])
    conditions: Conditions = field(default_factory=dict[str, Mapping[str, tuple[Level, ...]]])
    _names: Mapping[str, NamedLevels] = field(init=False, compare=False, repr=False)
    _cells_by_key: Mapping[CellKey, Cell] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Build the index of cells by their levels."""
        names = {factor: NamedLevels(levels, f"of {factor}") for factor, levels in self.factors.items()}
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_cells_by_key", {cell_key(cell): cell for cell in self.cells})

    def at_level(self, factor: str, level: Level) -> Scope:
        """Return the scope of the cells with this level of a factor."""
        wanted = cell_key([(factor, level)])
        cells = tuple(cell for key, cell in self._cells_by_key.items() if wanted <= key)
        return replace(self, factors={**self.factors, factor: (level,)}, cells=cells)

    def level(self, factor: str, name: str) -> Level:
        """Return a factor's level by name; raise ValueError unless exactly one matches."""
        return self._names[factor].find(name)

    def select(self, named: Mapping[str, Level]) -> tuple[Cell, ...]:
        """Return the cells with these levels.

        If several match, only the one whose other levels are the baseline's, if there is one.
        """
        wanted = cell_key(named.items())
        if wanted in self._cells_by_key:
            return (self._cells_by_key[wanted],)
        found = tuple(cell for place, cell in self._cells_by_key.items() if wanted <= place)
        if len(found) > 1 and self.baseline_level is not None:
            first = {factor: named.get(factor, self.baseline_level(factor)) for factor in self.factors}
            base = self._cells_by_key.get(cell_key(settled(self.conditions, first).items()))
            return (base,) if base in found else found
        return found

    def varying_factors(self, cells: Iterable[Cell]) -> dict[str, tuple[Level, ...]]:
        """Return the factors that vary among these cells, with their levels, in the order of the study."""
        held = [dict(cell) for cell in cells]
        met = {factor: {level_key(cell[factor]) for cell in held} for factor in self.factors}
        return {
            factor: tuple(level for level in levels if level_key(level) in met[factor])
            for factor, levels in self.factors.items()
            if len(met[factor]) > 1
        }

    def dependent_factors(self) -> frozenset[str]:
        """Return the factors whose level is determined by another factor.

        If two determine each other, it is the second.
        """
        cells = [{name: level_key(level) for name, level in cell} for cell in self.cells]
        order, found = list(self.varying_factors(self.cells)), set[str]()
        for at, name in enumerate(order):
            for before, other in enumerate(order):
                if name == other or other in found or not _determines(cells, other, name):
                    continue
                if before < at or not _determines(cells, name, other):
                    found.add(name)
        return frozenset(found)


def claim_scope(design: Design, metrics: Mapping[str, Metric]) -> Scope:
    """Return the scope of claims in a study of this design."""
    factors = {name: levels for name, levels in design.factors.items() if name != SEED}
    seeds = design.factors[SEED]
    return Scope(
        metrics=metrics,
        factors=factors,
        cells=tuple(
            tuple((name, cell[name]) for name in factors)
            for cell in design.cells()
            if level_key(cell[SEED]) == level_key(seeds[0])
        ),
        baseline_level=design.baseline_level if design.kind == "one_at_a_time" else None,
        ladder={name: design.combined_factors[name] for name in design.ladder},
        conditions=design.conditions,
    )


def _determines(cells: Iterable[Mapping[str, str]], one: str, other: str) -> bool:
    met: dict[str, str] = {}
    return all(met.setdefault(cell[one], cell[other]) == cell[other] for cell in cells)


def cell_key(cell: Iterable[tuple[str, Level]]) -> CellKey:
    """Return a key of a cell that does not depend on the order of its factors."""
    return frozenset([(factor, level_key(level)) for factor, level in cell])
