"""Every point of a search by its values: over one dimension after the other, or as a line over all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....grammar.nodes import ChoiceDimension, Dimension
from ....studies.catalog.metrics import Metric
from ....studies.schema.level_names import one_line, option_names, value_name
from ....studies.schema.search import representative_values
from ....studies.schema.settings import Level
from ....studies.searches.points import FoundPoint, SearchPoints
from ....studies.study import Study
from ..curve import Axis, Coordinate, Panel, Parallel, Point, PointLine, Slice

ABSENT_HEIGHT = -0.12
"""Where lines of points pass an axis whose dimension they do not take."""

_GOOD = 0.1  # the share of points that are dark


def slice_panels(
    study: Study, found: SearchPoints, metric: Metric, names: Sequence[str]
) -> tuple[Panel, ...]:
    """A panel for each dimension; an empty one where there is nothing."""
    panels = [Panel(title=one_line(name), content=_slice(study, found, metric, name)) for name in names]
    return tuple(panels) or (Panel(title="", content=Slice(axis=Axis(title=""), points=(), best=None)),)


def _slice(study: Study, found: SearchPoints, metric: Metric, name: str) -> Slice:
    """The points that take a dimension, by its values."""
    dimension, sign = study.dimensions[name], found.sign(metric)
    dots = tuple(
        Point(x=place_of(dimension, point.values[name]), y=value, n=point.seeds)
        for point, value in known_points(found, metric)
        if name in point.values
    )
    return Slice(
        axis=axis_of(dimension),
        points=dots,
        best=max(dots, key=lambda dot: sign * dot.y, default=None),
    )


def parallel_panel(study: Study, found: SearchPoints, metric: Metric, names: Sequence[str]) -> Panel:
    """An axis for each dimension and one for the metric, and a line for each point."""
    sign, known = found.sign(metric), known_points(found, metric)
    ranked = sorted(known, key=lambda each: sign * each[1])
    good = len(ranked) - max(1, math.floor(_GOOD * len(ranked)))
    values = [value for _, value in ranked] or [0.0]
    low, high = min(values), max(values)
    lines = [
        PointLine(
            heights=(
                *(_height(study.dimensions[name], point.values.get(name)) for name in names),
                (value - low) / (high - low) if high > low else 0.5,
            ),
            is_good=number >= good,
            is_best=number == len(ranked) - 1,
        )
        for number, (point, value) in enumerate(ranked)
    ]
    ends = (
        ((0.0, metric.format(low)), (1.0, metric.format(high)))
        if high > low
        else ((0.5, metric.format(low)),)
    )
    axes = [
        Coordinate(title=one_line(name), ticks=_coordinate_ticks(study.dimensions[name])) for name in names
    ]
    return Panel(
        title="",
        content=Parallel(axes=(*axes, Coordinate(title=metric.name, ticks=ends)), lines=tuple(lines)),
    )


def known_points(found: SearchPoints, metric: Metric) -> list[tuple[FoundPoint, float]]:
    """The complete points with their means."""
    means = [(point, point.mean(metric.name)) for point in found.complete]
    return [(point, value) for point, value in means if value is not None]


def axis_of(dimension: Dimension) -> Axis:
    """The axis of a dimension: numbers, or the options of a choice in their order."""
    if isinstance(dimension, ChoiceDimension):
        options = representative_values(dimension)
        return Axis(title="", ticks=tuple(enumerate(option_names(options))))
    return Axis(title="", log=dimension.log)


def place_of(dimension: Dimension, value: Level) -> float:
    """Where a value stands on the axis of its dimension."""
    if isinstance(dimension, ChoiceDimension):
        return float(representative_values(dimension).index(value))
    return float(value)


def _height(dimension: Dimension, value: Level | None) -> float | None:
    """The height of a value on a parallel axis; None without one."""
    if value is None:
        return None
    if isinstance(dimension, ChoiceDimension):
        return (place_of(dimension, value) + 0.5) / len(dimension.options)
    low, high, at = (scaled(dimension, number) for number in (dimension.low, dimension.high, float(value)))
    return (at - low) / (high - low) if high > low else 0.5


def scaled(dimension: Dimension, number: float) -> float:
    """A number, or its logarithm where the dimension is searched by that."""
    return math.log(number) if not isinstance(dimension, ChoiceDimension) and dimension.log else number


def _coordinate_ticks(dimension: Dimension) -> tuple[tuple[float, str], ...]:
    """The options of a choice, or both ends of a range."""
    if isinstance(dimension, ChoiceDimension):
        options = representative_values(dimension)
        return tuple(((at + 0.5) / len(options), name) for at, name in enumerate(option_names(options)))
    return ((0.0, value_name(dimension.low)), (1.0, value_name(dimension.high)))
