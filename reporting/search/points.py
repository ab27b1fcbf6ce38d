"""The points of a search as the store has them: what was measured at each, and what it cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import fsum
from typing import Any

import polars as pl

from ...studies.catalog.metrics import COSTS, Metric
from ...studies.planning.status import outcome_trials, study_outcomes, tried_point, tried_trial
from ...studies.planning.trial_values import ValueStatus, combined_status, trial_values
from ...studies.resolve.costs import model_cost
from ...studies.resolve.trial import Trial
from ...studies.schema.design import level_key
from ...studies.schema.objectives import is_known_before
from ...studies.schema.settings import Level
from ...studies.searches.pareto import front
from ...studies.searches.points import search_points
from ...studies.study import Study
from ...studies.text.units import plural
from ..statistics.estimates import mean

PointKey = tuple[tuple[str, str], ...]
"""The values of a point by dimension, equal for equal points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGoal:
    """A metric or cost that a search optimises; `sign` is 1 where higher is better, else -1."""

    metric: str
    sign: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPoint:
    """A point by the values of the dimensions that it takes, in the order of the search.

    `measured` has the values of each metric by seed, of which there are `seeds`: each the mean over all that
    the search is across. `status` is "done" where every seed has a value of what
    is optimised, else why one has none. `seconds` are what its trainings took together. One that is not
    `allowed` is beyond a limit of the search.
    """

    values: Mapping[str, Level]
    trials: tuple[str, ...]
    seeds: int
    measured: Mapping[str, Mapping[int, float]]
    status: ValueStatus
    seconds: float
    finished: datetime
    allowed: bool = True

    @property
    def key(self) -> PointKey:
        """What it is known by."""
        return point_key(self.values)

    def mean(self, metric: str) -> float | None:
        """The mean of a metric over the seeds; None where a seed has no value, or none is done."""
        found = self.measured.get(metric, {})
        return mean(sorted(found.values())) if found and len(found) == self.seeds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPoints:
    """All points of a search that have ended, the earliest first.

    `gaps` counts the trials without a value of what is optimised, by status; `trained` are the trials.
    """

    goals: tuple[SearchGoal, ...]
    points: tuple[FoundPoint, ...]
    gaps: Counter[str]
    trained: tuple[Trial, ...]

    @property
    def complete(self) -> tuple[FoundPoint, ...]:
        """The points whose seeds all have a value of what is optimised, within the limits of the search."""
        return tuple(point for point in self.points if point.status == ValueStatus.DONE and point.allowed)

    @property
    def beyond(self) -> int:
        """How many points are beyond a limit of the search."""
        return sum(not point.allowed for point in self.points)

    def sign(self, metric: Metric) -> int:
        """1 where higher is better, as the search or the metric has it, else -1, as for costs."""
        own = {goal.metric: goal.sign for goal in self.goals}
        return own.get(metric.name, 1 if metric.higher_is_better else -1)

    def ranked(self) -> tuple[FoundPoint, ...]:
        """The complete points, the best first by what is optimised first; of equals the earlier one.

        Of several goals those come before all others that no other point surpasses in all.
        """
        points = self.complete
        losses = [[-goal.sign * (point.mean(goal.metric) or 0.0) for goal in self.goals] for point in points]
        best = set(front(losses)) if len(self.goals) > 1 else set(range(len(points)))
        order = sorted(range(len(points)), key=lambda number: (number not in best, losses[number][0]))
        return tuple(points[number] for number in order)


def beyond_sentence(found: SearchPoints) -> Iterator[str]:
    """How many points are left out since they are beyond a limit."""
    if found.beyond:
        yield f"Left out: {plural(found.beyond, 'point')} beyond a limit of the search."


def search_goals(study: Study) -> tuple[SearchGoal, ...]:
    """What a search optimises, the first thing first; nothing for a grid."""
    objectives = study.search.objectives if study.search else ()
    return tuple(SearchGoal(metric=each.name, sign=1 if each.maximise else -1) for each in objectives)


def find_points(study: Study, outcomes: pl.DataFrame, metrics: Iterable[str] = ()) -> SearchPoints:
    """The points of a search in the store's latest attempts, with what is optimised and further metrics."""
    goals = search_goals(study)
    tried = study_outcomes(study, outcomes)
    names = list(dict.fromkeys([*(each.metric for each in goals), *metrics]))
    values = {name: _values(study, tried, name) for name in names}
    rows: dict[PointKey, list[Mapping[str, Any]]] = {}
    points: dict[PointKey, dict[str, Level]] = {}
    for row in tried.select("trial", "factors", "seed", "seconds", "finished").iter_rows(named=True):
        point = tried_point(study, row["trial"], json.loads(row["factors"])) or {}
        points.setdefault(point_key(point), point)
        rows.setdefault(point_key(point), []).append(row)
    found = [_found(points[key], members, values, goals, study) for key, members in rows.items()]
    if study.search is not None and study.search.limits:
        beyond = {point_key(each.values) for each in search_points(study, outcomes) if each.feasible is False}
        found = [replace(point, allowed=point.key not in beyond) for point in found]
    statuses = [status for _, status in values[goals[0].metric].values()]
    return SearchPoints(
        goals=goals,
        points=tuple(sorted(found, key=lambda point: (point.finished, point.trials))),
        gaps=Counter(status for status in statuses if status != ValueStatus.DONE),
        trained=tuple(outcome_trials(study, tried.iter_rows(named=True))),
    )


def point_key(values: Mapping[str, Level]) -> PointKey:
    """The key of a point's values."""
    return tuple(sorted((name, level_key(level)) for name, level in values.items()))


def _found(
    values: Mapping[str, Level],
    rows: Sequence[Mapping[str, Any]],
    measured: Mapping[str, Mapping[str, tuple[float, ValueStatus]]],
    goals: Sequence[SearchGoal],
    study: Study,
) -> FoundPoint:
    """The point of these rows, which lacks some as long as it is not whole."""
    across, seeds = len(study.point_levels), {int(row["seed"]) for row in rows}
    statuses = [measured[each.metric][row["trial"]][1] for each in goals for row in rows]
    if len(rows) < across * len(study.point_seeds(values)):
        statuses.append(ValueStatus.MISSING)
    lacking = [status for status in statuses if status != ValueStatus.DONE]
    return FoundPoint(
        values=values,
        trials=tuple(row["trial"] for row in rows),
        seeds=len(seeds),
        measured={name: _by_seed(found, rows, across) for name, found in measured.items()},
        status=combined_status(lacking) if lacking else ValueStatus.DONE,
        seconds=fsum(row["seconds"] or 0.0 for row in rows),
        finished=max(row["finished"] for row in rows),
    )


def _by_seed(
    found: Mapping[str, tuple[float, ValueStatus]], rows: Sequence[Mapping[str, Any]], across: int
) -> dict[int, float]:
    """The value of each seed that is done at all that a point is trained at, the mean over these."""
    done: dict[int, list[float]] = {}
    for row in rows:
        value, status = found[row["trial"]]
        if status == ValueStatus.DONE:
            done.setdefault(int(row["seed"]), []).append(value)
    return {seed: mean(sorted(values)) for seed, values in done.items() if len(values) == across}


def _values(study: Study, tried: pl.DataFrame, metric: str) -> dict[str, tuple[float, ValueStatus]]:
    """The value and the status of each trial; what its text tells, a trial has once it is done."""
    if metric not in COSTS and is_known_before(metric):
        return _known_before(study, tried, metric)
    found = trial_values(study.name, tried["trial"], tried, metric)
    return {trial: (value, ValueStatus(status)) for trial, _, value, status, _ in found.iter_rows()}


def _known_before(study: Study, tried: pl.DataFrame, name: str) -> dict[str, tuple[float, ValueStatus]]:
    """The cost of each trial's model, and how it ended."""
    found: dict[str, tuple[float, ValueStatus]] = {}
    for trial, status, factors in tried.select("trial", "status", "factors").iter_rows():
        own = tried_trial(study, trial, json.loads(factors))
        assert own is not None, "an outcome of the search"
        found[trial] = model_cost(name, own.settings), ValueStatus(status)
    return found
