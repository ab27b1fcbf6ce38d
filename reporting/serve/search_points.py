"""The points of a search in the order of time, each with its state and its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ...studies.planning.final_values import ValueStatus
from ...studies.schema.search_settings import SearchSettings, find_quantity
from ...studies.schema.settings import Level
from ...studies.searches.points import FoundPoint, PointKey, SearchPoints, point_key
from ..search.promotion import column_levels, column_names
from .learning import level_words
from .store_reader import StudyNow

MAX_POINTS = 100
"""The number of points on a page."""


_Line = TypeVar("_Line")


class Paged(NamedTuple):
    """One page of a long list: the slice of its items, and its own number with the number of pages."""

    places: slice
    numbers: Mapping[str, int]


def paged(count: int, size: int, page: int) -> Paged:
    """Split `count` items into pages of `size` items, and return the page `page`, or else the last."""
    pages = -(-count // size)
    number = min(page, max(pages, 1))
    return Paged(slice((number - 1) * size, number * size), {"pages": pages, "page": number})


def sort_lines(
    lines: Sequence[_Line],
    keys: Mapping[str, Callable[[_Line], Any]],
    best_first: Collection[str],
    order: str,
    *,
    default: str,
) -> tuple[list[_Line], Mapping[str, object]]:
    """Sort the lines of a table by one of its columns.

    `order` is the name of a column in `keys`, with a minus for descending values; an unknown name means
    `default`. Lines without a value in this column come last. The second result has the values for the links
    in the table's headings; columns in `best_first` are sorted in descending order at the first click.
    """
    order = order if order.removeprefix("-") in keys else default
    sorter, falls = order.removeprefix("-"), order.startswith("-")
    key = keys[sorter]
    known = sorted((line for line in lines if key(line) is not None), key=key, reverse=falls)
    first = {name: f"-{name}" if name in best_first else name for name in keys}
    other = {name: name if name in best_first else f"-{name}" for name in keys}
    return [*known, *(line for line in lines if key(line) is None)], {
        # what a click on a heading sorts by: the best first, and then the other way round
        "orders": {name: other[name] if order == first[name] else first[name] for name in keys},
        "sorter": sorter,
        "falls": falls,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PointLine:
    """A point of a search with its state.

    `found` has its results, and `number` is its place in the order of time; both are None before the point
    has ended. `trial` is its first trial. `is_best` says whether it was better than all points before it.
    """

    trial: str
    state: str
    levels: Mapping[str, Level]
    found: FoundPoint | None = None
    number: int | None = None
    is_best: bool = False

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over the seeds; None if it is unknown."""
        return self.found and self.found.mean(metric)


def point_lines(now: StudyNow, found: SearchPoints) -> list[PointLine]:
    """Return a line for each point in the order of time. Points that train for the first time come last."""
    training: dict[PointKey, PointLine] = {}
    for each in now.begun:
        levels = {name: level for name, level in each.trial.levels.items() if name in now.study.dimensions}
        state = "running" if each.held else "begun"
        training.setdefault(point_key(levels), PointLine(trial=each.trial.id, state=state, levels=levels))
    goal, best = found.goals[0], -math.inf
    ended: list[PointLine] = []
    for number, point in enumerate(found.points, 1):
        value = point.mean(goal.name) if point.is_comparable else None
        is_best = value is not None and goal.sign * value > best
        best = goal.sign * value if value is not None and is_best else best
        again = training.pop(point.key, None)
        line = PointLine(
            trial=point.trials[0],
            state=again.state if again else _state(point),
            levels=point.values,
            found=point,
            number=number,
            is_best=is_best,
        )
        ended.append(line)
    return [*ended, *training.values()]


def _state(point: FoundPoint) -> str:
    if point.status == ValueStatus.MISSING:
        return "seeds missing"
    if point.status != ValueStatus.DONE or point.feasible:
        return point.status.text
    return "limit unknown" if point.feasible is None else "outside a limit"


def points_page(
    now: StudyNow, search: SearchSettings, found: SearchPoints, *, order: str | None, page: int
) -> Mapping[str, object] | None:
    """Return the values for one page of the list of points; None without points.

    `order` is the name of a column that sorts the points, with a minus for descending numbers (default: the
    newest first). Points without a value in this column come last.
    """
    lines = point_lines(now, found)
    if not lines:
        return None
    metrics = {each.name: find_quantity(each.name) for each in (*search.objectives, *search.bounds)}
    keys: dict[str, Callable[[PointLine], Any]] = {
        "point": lambda line: line.number or math.inf,
        "state": lambda line: line.state,
        **{name: partial(PointLine.mean, metric=name) for name in metrics},
        "n": lambda line: line.found and line.found.seeds,
        "time": lambda line: line.found and line.found.seconds,
    }
    best_first = {"point", *(each.name for each in search.objectives if each.maximise)}
    lines, links = sort_lines(lines, keys, best_first, order or "-point", default="-point")
    pages = paged(len(lines), MAX_POINTS, page)
    names = column_names(now.study)

    def texts(line: PointLine) -> list[str]:
        means = ((metric, line.mean(name)) for name, metric in metrics.items())
        return ["" if mean is None or metric is None else metric.format(mean) for metric, mean in means]

    return {
        **links,
        "dimensions": names,
        "lines": [
            (line, texts(line), level_words(now.study, column_levels(now.study, line.levels), names))
            for line in lines[pages.places]
        ],
        "study": now.study.name,
        **pages.numbers,
    }
