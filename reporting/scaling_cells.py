"""The cells that a law is fitted to: each by its cost and its result, one of those that differ in a rate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ..studies.catalog.metrics import find_metric
from ..studies.presentation.scaling import ScalingSpec, ScalingTableSpec
from ..studies.schema.design import level_key
from ..studies.schema.factors import SEED
from ..studies.study import Study
from .observations import Observation, Observations, observe
from .statistics.estimates import mean
from .statistics.power_law import MIN_OFFSET_CELLS, OffsetLaw, PowerLaw, fit_offset_law, fit_power_law

FittedLaw = PowerLaw | OffsetLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCell:
    """A cell at the geometric means of its seeds, whose values are in `results`, the lowest first."""

    series: str
    cost: float
    result: float
    results: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCells:
    """All cells from the cheapest on, what was observed, and how many trials have no logarithm."""

    cells: tuple[LawCell, ...]
    observations: Observations
    unfit: int

    def of(self, series: str) -> tuple[LawCell, ...]:
        """The cells of a series, by the key of its level."""
        return tuple(cell for cell in self.cells if cell.series == series)


def law_cells(study: Study, spec: ScalingSpec | ScalingTableSpec, outcomes: pl.DataFrame) -> LawCells:
    """The cells that a figure or a table of laws is over."""
    observations = observe(study, spec.select, spec.metric, outcomes)
    costs = {each.trial: each.value for each in observe(study, spec.select, spec.x, outcomes).values}
    found: dict[tuple[str, ...], list[Observation]] = {}
    unfit = 0
    for each in observations.values:
        if each.value > 0 and costs.get(each.trial, 0.0) > 0:
            key = tuple(level_key(level) for name, level in each.levels.items() if name != SEED)
            found.setdefault(key, []).append(each)
        else:
            unfit += 1
    cells = [(_place(spec, members[0]), _cell(spec, members, costs)) for members in found.values()]
    best = _best(cells, higher=bool(find_metric(spec.metric).higher_is_better)) if spec.over else cells
    shown = sorted((cell for _, cell in best), key=lambda cell: cell.cost)
    return LawCells(cells=tuple(shown), observations=observations, unfit=unfit)


def fit_law(spec: ScalingSpec | ScalingTableSpec, cells: Sequence[LawCell]) -> FittedLaw | None:
    """The law of a series' cells, from the cheapest on, without those that are held out."""
    points = [(cell.cost, cell.result) for cell in fitted_cells(spec, cells)]
    if spec.offset and len(points) >= MIN_OFFSET_CELLS:
        return fit_offset_law(points) or fit_power_law(points)
    return fit_power_law(points)


def fitted_cells(spec: ScalingSpec | ScalingTableSpec, cells: Sequence[LawCell]) -> Sequence[LawCell]:
    """The cells that are not held out."""
    return cells[: max(0, len(cells) - spec.held_out)]


def _place(spec: ScalingSpec | ScalingTableSpec, one: Observation) -> tuple[str, ...]:
    """What tells a cell from others but for the factors whose best level counts."""
    return tuple(
        level_key(level) for name, level in one.levels.items() if name != SEED and name not in spec.over
    )


def _cell(
    spec: ScalingSpec | ScalingTableSpec, members: Sequence[Observation], costs: Mapping[str, float]
) -> LawCell:
    results = tuple(sorted(each.value for each in members))
    return LawCell(
        series=level_key(members[0].levels[spec.series]) if spec.series else "",
        cost=math.exp(mean([math.log(costs[each.trial]) for each in members])),
        result=math.exp(mean([math.log(value) for value in results])),
        results=results,
    )


def _best(
    cells: Sequence[tuple[tuple[str, ...], LawCell]], *, higher: bool
) -> list[tuple[tuple[str, ...], LawCell]]:
    """Of the cells of each place the best."""
    found: dict[tuple[str, ...], LawCell] = {}
    for place, cell in cells:
        known = found.get(place)
        if known is None or (cell.result > known.result) == higher:
            found[place] = cell
    return list(found.items())
