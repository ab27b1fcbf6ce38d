"""The points of a search over two dimensions at a time: how they rank, and what is expected between them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ....grammar.nodes import ChoiceDimension, Dimension, IntegerDimension
from ....studies.catalog.metrics import Metric
from ....studies.schema.level_names import one_line
from ....studies.schema.search import representative_values
from ....studies.schema.settings import Level
from ....studies.searches.points import FoundPoint, SearchPoints
from ....studies.study import Study
from ...search.importance import MIN_POINTS
from ...statistics.functional_anova import expected_values
from ..curve import Axis, Panel, Plane, Shaded
from .dimensions import axis_of, known_points, place_of, scaled

_TREES = 64
_BINS = 24  # of a range that has more values

Known = Sequence[tuple[FoundPoint, float]]
"""Points with what they measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planes:
    """The panels of a figure; `low` and `high` are what is expected at the lightest and the darkest place."""

    panels: tuple[Panel, ...]
    low: float | None = None
    high: float | None = None


def rank_planes(study: Study, found: SearchPoints, metric: Metric, names: Sequence[str]) -> Planes:
    """The points over the first dimension and each other, darker the better they rank among those shown."""
    return Planes(
        panels=tuple(
            _panel(study, names[0], across, _ranked(study, found, metric, (across, names[0])))
            for across in names[1:]
        )
        or (_empty(),)
    )


def contour_planes(study: Study, found: SearchPoints, metric: Metric, names: Sequence[str]) -> Planes:
    """What is expected over the first dimension and each other, with the points; darker is better."""
    pairs = [(across, names[0]) for across in names[1:]]
    surfaces = [_surface(study, found, metric, pair) for pair in pairs]
    every = [value for surface in surfaces for _, value in surface]
    if not every:
        return Planes(panels=rank_planes(study, found, metric, names).panels)
    sign = found.sign(metric)
    worst, best = min(every, key=lambda value: sign * value), max(every, key=lambda value: sign * value)
    panels = [
        _panel(
            study,
            pair[1],
            pair[0],
            _ranked(study, found, metric, pair),
            [
                Shaded(x=x, y=y, share=(value - worst) / (best - worst) if best != worst else 0.5)
                for (x, y), value in surface
            ],
        )
        for pair, surface in zip(pairs, surfaces, strict=True)
    ]
    return Planes(panels=tuple(panels), low=worst, high=best)


def _panel(
    study: Study, up: str, across: str, points: Sequence[Shaded], cells: Sequence[Shaded] = ()
) -> Panel:
    return Panel(
        title=f"{one_line(up)} over {one_line(across)}",
        content=Plane(
            x=axis_of(study.dimensions[across]),
            y=axis_of(study.dimensions[up]),
            cells=tuple(cells),
            points=tuple(points),
        ),
    )


def _empty() -> Panel:
    return Panel(title="", content=Plane(x=Axis(title=""), y=Axis(title=""), cells=(), points=()))


def _taking(found: SearchPoints, metric: Metric, pair: Sequence[str]) -> Known:
    """The complete points that take both dimensions."""
    return [(point, value) for point, value in known_points(found, metric) if {*pair} <= {*point.values}]


def _ranked(study: Study, found: SearchPoints, metric: Metric, pair: Sequence[str]) -> list[Shaded]:
    """The points that take both dimensions, the best last, which has 1; equal ones share the mean rank."""
    sign = found.sign(metric)
    points = sorted(_taking(found, metric, pair), key=lambda each: sign * each[1])
    values = [value for _, value in points]
    ranks = [
        values.index(value) + (values.count(value) - 1) / 2 if len(values) > 1 else 1.0 for value in values
    ]
    return [
        Shaded(
            x=(place := place_of(study.dimensions[pair[0]], point.values[pair[0]]), place),
            y=(place := place_of(study.dimensions[pair[1]], point.values[pair[1]]), place),
            share=rank / max(len(points) - 1, 1),
        )
        for (point, _), rank in zip(points, ranks, strict=True)
    ]


def _surface(
    study: Study, found: SearchPoints, metric: Metric, pair: Sequence[str]
) -> list[tuple[tuple[tuple[float, float], tuple[float, float]], float]]:
    """What a forest expects of each cell, on average over the other dimensions that all its points take."""
    points = _taking(found, metric, pair)
    if len(points) < MIN_POINTS:
        return []
    others = [
        name
        for name in study.dimensions
        if name not in pair and all(name in point.values for point, _ in points)
    ]
    names = [*pair, *others]
    places = np.array(
        [[_share(study.dimensions[each], point.values[each]) for each in names] for point, _ in points]
    )
    sides = [_cells(study.dimensions[name], {point.values[name] for point, _ in points}) for name in pair]
    cells = list(product(*sides))
    at = np.array([[middle for middle, _ in cell] for cell in cells])
    found_values = expected_values(
        places,
        np.array([value for _, value in points]),
        at,
        (0, 1),
        trees=_TREES,
        generator=np.random.default_rng(0),
    )
    return [((x[1], y[1]), float(value)) for (x, y), value in zip(cells, found_values, strict=True)]


def _cells(dimension: Dimension, taken: Collection[Level]) -> list[tuple[float, tuple[float, float]]]:
    """The cells of a dimension: the middle of each in the unit cube, and both its ends on the axis.

    Options that no point has taken have none.
    """
    if isinstance(dimension, ChoiceDimension):
        options = representative_values(dimension)
        return [
            (_share(dimension, each), (at - 0.5, at + 0.5))
            for at, each in enumerate(options)
            if each in taken
        ]
    if isinstance(dimension, IntegerDimension) and not dimension.log:
        values = range(dimension.low, dimension.high + 1, dimension.step)
        if len(values) <= _BINS:
            half = dimension.step / 2
            return [(_share(dimension, each), (each - half, each + half)) for each in values]
    low, high = _ends(dimension)
    edges = [low + (high - low) * number / _BINS for number in range(_BINS + 1)]
    back = math.exp if dimension.log else float
    return [
        ((number + 0.5) / _BINS, (back(edges[number]), back(edges[number + 1]))) for number in range(_BINS)
    ]


def _share(dimension: Dimension, value: Level) -> float:
    """Where a value stands in the unit cube, inside of it."""
    if isinstance(dimension, ChoiceDimension):
        return (place_of(dimension, value) + 0.5) / len(dimension.options)
    low, high = _ends(dimension)
    return (scaled(dimension, float(value)) - low) / (high - low)


def _ends(dimension: Dimension) -> tuple[float, float]:
    """Both ends of a range, as far around whole numbers as these reach."""
    assert not isinstance(dimension, ChoiceDimension)
    margin = dimension.step / 2 if isinstance(dimension, IntegerDimension) and not dimension.log else 0.0
    low, high = scaled(dimension, dimension.low) - margin, scaled(dimension, dimension.high) + margin
    return low, high if high > low else low + 1.0
