"""How a search came to what it found: the best after each point, and the front of two metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from ....studies.catalog.metrics import Metric
from ....studies.searches.points import FoundPoint, SearchPoints
from ....studies.study import Study
from ...search.fronts import Signs, best_so_far, front_of
from ...search.noise import find_baseline, lead_by_chance, measure_noise
from ..curve import Cloud, Line, Panel, Point, PointTrace

_SECONDS_PER_HOUR = 3600.0


def trace_panel(study: Study, found: SearchPoints, metric: Metric, *, hours: bool) -> Panel:
    """Every point in the order in which they ended, and the best so far."""
    sign = found.sign(metric)
    places = hours_of(found) if hours else list(range(1, len(found.points) + 1))
    shown = [
        (place, point, value)
        for place, point in zip(places, found.points, strict=True)
        if (value := point.mean(metric.name)) is not None and point in found.complete
    ]
    best = best_so_far([value for _, _, value in shown], sign)
    start = find_baseline(study, found)
    return Panel(
        title="",
        content=PointTrace(
            points=tuple(Point(x=place, y=value, n=point.seeds) for place, point, value in shown),
            best=tuple(_steps([place for place, _, _ in shown], best)),
            baseline=None if start is None else _baseline(found, metric, start),
        ),
    )


def _baseline(found: SearchPoints, metric: Metric, start: FoundPoint) -> Point | None:
    """The baseline, and up to where the best of the other points would come by chance."""
    value, noise = start.mean(metric.name), measure_noise(found, metric.name)
    if value is None:
        return None
    limit = lead_by_chance(found, start, noise) if noise else None
    ends = sorted((value, value + found.sign(metric) * limit)) if limit is not None else (None, None)
    return Point(x=0.0, y=value, low=ends[0], high=ends[1], n=start.seeds)


def front_panel(found: SearchPoints, up: Metric, across: Metric) -> Panel:
    """Every point by two metrics, and the front."""
    points, pairs = known_pairs(found, up, across)
    signs = signs_of(found, up, across)
    dots = tuple(Point(x=x, y=y, n=point.seeds) for point, (x, y) in zip(points, pairs, strict=True))
    front = [dots[number] for number in front_of(pairs, signs)]
    return Panel(
        title="",
        content=Cloud(
            lines=tuple(Line(name="", points=(dot,)) for dot in dots),
            front=tuple(front),
            steps="pre" if signs[0] > 0 else "post",
        ),
    )


def known_pairs(
    found: SearchPoints, up: Metric, across: Metric
) -> tuple[list[FoundPoint], list[tuple[float, float]]]:
    """The complete points that have both numbers, with that of the bottom first."""
    points: list[FoundPoint] = []
    pairs: list[tuple[float, float]] = []
    for point in found.complete:
        x, y = point.mean(across.name), point.mean(up.name)
        if x is not None and y is not None:
            points.append(point)
            pairs.append((x, y))
    return points, pairs


def hours_of(found: SearchPoints) -> list[float]:
    """The hours of training after each point, whatever became of it."""
    return list(accumulate(point.seconds / _SECONDS_PER_HOUR for point in found.points))


def signs_of(found: SearchPoints, up: Metric, across: Metric) -> Signs:
    """The signs of the number of the bottom and of that of the height."""
    return found.sign(across), found.sign(up)


def _steps(places: Sequence[float], values: Sequence[float]) -> Iterator[Point]:
    """A line that keeps its height until the next place, as long as it goes on."""
    for number, (place, value) in enumerate(zip(places, values, strict=True)):
        if number and value != values[number - 1]:
            yield Point(x=place, y=values[number - 1])
        if not number or value != values[number - 1] or number == len(places) - 1:
            yield Point(x=place, y=value)
