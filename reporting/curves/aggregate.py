"""The content of a figure's panel: values grouped by place, as lines, bars, boxes, a matrix or a cloud."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import polars as pl

from ...studies.catalog.metrics import Metric
from ...studies.presentation.curve import Band
from ..statistics.estimates import estimate, mean
from .curve import MIN_BOX_VALUES, Bar, Box, Boxes, Cloud, Line, Matrix, Point

_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisLabels:
    """The names of the levels that the frame numbers, for x and series, and the number that is accented."""

    x: Sequence[str] = ()
    series: Sequence[str] = ()
    accent: int | None = None


def mean_interval(
    values: Sequence[float], band: Band, metric: Metric
) -> tuple[float, float | None, float | None]:
    """Return the mean of a metric's values with its interval, None for a single value.

    It is the same in any order of the values. The interval of a share stays between 0 and 1.
    """
    if band == "minmax":
        low, high = (min(values), max(values)) if len(values) > 1 else (None, None)
        return mean(sorted(values)), low, high
    found = estimate(values, spread=band)
    found = found.within_share() if metric.is_share else found
    return found.value, found.low, found.high


def build_lines(
    frame: pl.DataFrame, level_names: AxisLabels, at: Mapping[object, float], band: Band, metric: Metric
) -> tuple[Line, ...]:
    """The lines of a panel, one for each series, from left to right; `at` gives the position of each x.

    A series without values has no line; a place without a value has no point, and the line passes over it.
    """
    found: dict[int, list[Point]] = {}
    for series, x, values in _groups(frame, "series", "x"):
        low_to_high = mean_interval(values, band, metric)
        found.setdefault(series, []).append(_point(at[x], low_to_high, len(values)))
    return tuple(
        Line(
            name=level_names.series[series] if level_names.series else "",
            number=series - (level_names.accent is not None and level_names.accent < series),
            points=tuple(sorted(points, key=lambda point: point.x)),
            accent=level_names.accent == series,
        )
        for series, points in sorted(found.items())
    )


def build_bars(
    frame: pl.DataFrame, level_names: AxisLabels, band: Band, metric: Metric, placeholders: Mapping[int, str]
) -> tuple[Bar, ...]:
    """A bar for every level of x; without a value it has only a word."""
    values = dict(_groups(frame, "x"))
    found = []
    for number, name in enumerate(level_names.x):
        accent = level_names.accent == number
        if number in values:
            value, low, high = mean_interval(values[number], band, metric)
            text = metric.format(value)
            found.append(Bar(name=name, text=text, value=value, low=low, high=high, accent=accent))
        else:
            found.append(Bar(name=name, text=placeholders.get(number, "–"), accent=accent))
    return tuple(found)


def build_boxes(
    frame: pl.DataFrame, level_names: AxisLabels, at: Mapping[object, float], placeholders: Mapping[int, str]
) -> Boxes:
    """A box for each place along x that has values, or for every level, with a word if it has none."""
    values = dict(_groups(frame, "x"))
    if not level_names.x:
        found = [_box(str(x), at[x], sorted(each), accent=False) for x, each in values.items()]
        return Boxes(boxes=tuple(sorted(found, key=lambda box: box.at)), rows=False)
    levels = [
        _box(name, at[number], sorted(values[number]), accent=level_names.accent == number)
        if number in values
        else Box(
            name=name,
            at=at[number],
            n=0,
            text=placeholders.get(number, "–"),
            accent=level_names.accent == number,
        )
        for number, name in enumerate(level_names.x)
    ]
    return Boxes(boxes=tuple(levels), rows=True)


def build_matrix(
    frame: pl.DataFrame,
    rows: tuple[Sequence[object], Sequence[str]],
    columns: tuple[Sequence[object], Sequence[str]],
    metric: Metric,
    placeholders: Mapping[tuple[object, object], str],
) -> Matrix:
    """The mean at every row and column; both are given as the frame has them, and by name."""
    means = {(y, x): mean(sorted(values)) for y, x, values in _groups(frame, "y", "x")}
    places = [[(y, x) for x in columns[0]] for y in rows[0]]
    return Matrix(
        rows=tuple(rows[1]),
        columns=tuple(columns[1]),
        values=tuple(tuple(means.get(place) for place in row) for row in places),
        texts=tuple(
            tuple(
                metric.format(means[place]) if place in means else placeholders.get(place, "–")
                for place in row
            )
            for row in places
        ),
        ends=((0.0, ""), (0.0, "")),
    )


def build_cloud(
    frame: pl.DataFrame,
    names: Callable[[int, int], str],
    accent: int | None,
    *,
    band: Band,
    metric: Metric,
    signs: tuple[int, int],
) -> Cloud:
    """Every cell by its cost and its result; `signs` are −1 where lower is better.

    `names` gives the name of a series and a cell; cells of the same name are joined by a line.
    """
    found: dict[str, list[Point]] = {}
    accented = set()
    for series, cell, values in _groups(frame, "series", "cell", of=("x", "value")):
        name = names(series, cell)
        xs, ys = zip(*values, strict=True)
        found.setdefault(name, []).append(_point(mean(sorted(xs)), mean_interval(ys, band, metric), len(ys)))
        if accent == series:
            accented.add(name)
    every = [point for points in found.values() for point in points]
    return Cloud(
        lines=tuple(
            Line(
                name=name,
                points=tuple(sorted(points, key=lambda point: point.x)),
                accent=name in accented,
            )
            for name, points in found.items()
        ),
        front=pareto_front(every, signs),
        steps="post" if signs[0] < 0 else "pre",
    )


def pareto_front(points: Sequence[Point], signs: tuple[int, int]) -> tuple[Point, ...]:
    """The points that no other surpasses in both directions, from left to right."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (-signs[0] * point.x, -signs[1] * point.y)):
        if not kept or signs[1] * point.y > signs[1] * kept[-1].y:
            kept.append(point)
    return tuple(sorted(kept, key=lambda point: point.x))


def index_positions(indices: Sequence[str]) -> tuple[dict[object, float], tuple[tuple[float, str], ...]]:
    """The position of each index of a metric, with ticks; no ticks if all are plain numbers.

    A range such as `10-20` stands in its middle. Words stand side by side, in alphabetical order.
    """
    ranges = {index: _RANGE.fullmatch(index) for index in indices}
    if all(_number(index) is not None for index in indices):
        return dict(zip(indices, map(float, indices), strict=True)), ()
    if all(ranges.values()):
        at: dict[object, float] = {
            index: (float(found[1]) + float(found[2])) / 2 for index, found in ranges.items() if found
        }
        return at, tuple(
            (at[index], index.replace("-", "–")) for index in sorted(indices, key=at.__getitem__)
        )
    words = sorted(indices)
    return {word: float(n) for n, word in enumerate(words)}, tuple(enumerate(words))


def _number(text: str) -> float | None:
    """An index as a number, None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def _groups(frame: pl.DataFrame, *keys: str, of: tuple[str, ...] = ("value",)) -> list[tuple]:
    """The keys of each group and its sorted values, the same whatever order the frame has."""
    rows = frame.select(*keys, *of).sort(*keys, *of).iter_rows()
    count = len(keys)
    return [
        (*key, [row[count] if len(of) == 1 else row[count:] for row in group])
        for key, group in groupby(rows, key=lambda row: row[:count])
    ]


def _point(x: float, found: tuple[float, float | None, float | None], n: int) -> Point:
    """A point from a centre and its interval, as `mean_interval` gives them."""
    value, low, high = found
    return Point(x=float(x), y=value, low=low, high=high, n=n)


def _box(name: str, at: float, ordered: Sequence[float], *, accent: bool) -> Box:
    """The box of sorted values, quartiles interpolated between the two nearest."""
    if len(ordered) < MIN_BOX_VALUES:
        return Box(name=name, at=at, n=len(ordered), values=tuple(ordered), accent=accent)
    low, middle, high = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    reach = 1.5 * (high - low)
    inside = [value for value in ordered if low - reach <= value <= high + reach]
    return Box(
        name=name,
        at=at,
        n=len(ordered),
        quartiles=(low, middle, high),
        whiskers=(inside[0], inside[-1]),
        values=tuple(value for value in ordered if not inside[0] <= value <= inside[-1]),
        accent=accent,
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile of sorted values, interpolated between the two nearest."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
