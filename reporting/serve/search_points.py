"""The points of a search in the order of time, each with its state and its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from ...studies.planning.trial_values import ValueStatus
from ...studies.schema.search_settings import SearchSettings, find_quantity
from ...studies.schema.settings import Level
from ...studies.searches.points import FoundPoint, PointKey, SearchPoints, point_key
from ..search.promotion import column_levels, column_names
from .learning import level_words
from .store_reader import StudyNow

MAX_POINTS = 100
"""The number of points on a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointLine:
    """A point of a search with its state.

    `number` is its place in the order of time, None before it has ended. `trial` is its first trial. `values`
    are its means of the objectives and of the limited quantities. `is_best` says whether it was better than
    all points before it.
    """

    number: int | None
    trial: str
    state: str
    levels: Mapping[str, Level]
    values: Sequence[float | None]
    seeds: int | None = None
    seconds: float | None = None
    finished: datetime | None = None
    is_best: bool = False


def point_lines(now: StudyNow, found: SearchPoints, quantities: Sequence[str]) -> list[PointLine]:
    """Return a line for each point with its means of `quantities`, in the order of time.

    Points that train for the first time come last.
    """
    training: dict[PointKey, PointLine] = {}
    for each in now.begun:
        levels = {name: level for name, level in each.trial.levels.items() if name in now.study.dimensions}
        line = PointLine(
            number=None,
            trial=each.trial.id,
            state="running" if each.held else "begun",
            levels=levels,
            values=[None] * len(quantities),
        )
        training.setdefault(point_key(levels), line)
    goal, best = found.goals[0], None
    ended: list[PointLine] = []
    for number, point in enumerate(found.points, 1):
        value = point.mean(goal.name) if point.is_comparable else None
        is_best = value is not None and (best is None or goal.sign * value > goal.sign * best)
        best = value if is_best else best
        again = training.pop(point.key, None)
        line = PointLine(
            number=number,
            trial=point.trials[0],
            state=again.state if again else _state(point),
            levels=point.values,
            values=[point.mean(name) for name in quantities],
            seeds=point.seeds,
            seconds=point.seconds,
            finished=point.finished,
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
    """Return the values of one page of the list; None without points.

    `order` is the name of a column that sorts the points, with a minus for descending numbers (default: the
    newest first). Points without a value in this column come last.
    """
    quantities = [each.name for each in (*search.objectives, *search.bounds)]
    keys: dict[str, Callable[[PointLine], Any]] = {
        "point": lambda line: math.inf if line.number is None else line.number,
        "state": lambda line: line.state,
        **{name: partial(_value, place) for place, name in enumerate(quantities)},
        "n": lambda line: line.seeds,
        "time": lambda line: line.seconds,
    }
    order = order if order and order.removeprefix("-") in keys else "-point"
    sorter, falls = order.removeprefix("-"), order.startswith("-")
    lines = point_lines(now, found, quantities)
    if not lines:
        return None
    known = [line for line in lines if keys[sorter](line) is not None]
    lacking = [line for line in lines if keys[sorter](line) is None]
    lines = [*sorted(known, key=keys[sorter], reverse=falls), *lacking]
    pages = -(-len(lines) // MAX_POINTS)
    number = min(page, pages)
    shown = lines[(number - 1) * MAX_POINTS : number * MAX_POINTS]
    metrics, names = [find_quantity(name) for name in quantities], column_names(now.study)
    best_first = {"point", *(each.name for each in search.objectives if each.maximise)}
    first = {name: f"-{name}" if name in best_first else name for name in keys}
    other = {name: name if name in best_first else f"-{name}" for name in keys}
    return {
        # what a click on a heading sorts by: the best first, and then the other way round
        "orders": {name: other[name] if order == first[name] else first[name] for name in keys},
        "sorter": sorter,
        "falls": falls,
        "dimensions": names,
        "lines": [
            (
                line,
                [
                    "" if value is None or metric is None else metric.format(value)
                    for metric, value in zip(metrics, line.values, strict=True)
                ],
                level_words(column_levels(now.study, line.levels), names),
            )
            for line in shown
        ],
        "study": now.study.name,
        "pages": pages,
        "page": number,
    }


def _value(place: int, line: PointLine) -> float | None:
    return line.values[place]
