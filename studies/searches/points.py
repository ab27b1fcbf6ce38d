"""The points of a search with stored results.

All views of points read them here: status, tables, figures, the report and promotion.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import fsum
from statistics import fmean
from typing import Any

import polars as pl

from ..catalog.metrics import COSTS, METRICS, Metric
from ..catalog.tasks import AlgorithmicSettings
from ..planning.final_values import ValueStatus, combined_status, trial_values
from ..planning.status import count_other_points, rungs_of, study_outcomes, tried_trial
from ..planning.trials_to_run import own_costs
from ..resolve.costs import model_cost
from ..resolve.search_source import SearchSource
from ..resolve.trial import Trial
from ..schema.factors import level_key
from ..schema.limits import Limit, is_known_before
from ..schema.search_settings import SearchObjective
from ..schema.settings import Level, TrialSettings
from ..study import Study
from ..text.units import plural

_Rows = list[Mapping[str, Any]]

PointKey = tuple[tuple[str, str], ...]
"""A point's values by dimension; equal points have equal keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPoint:
    """A search point with its results.

    `measured` has the values of each metric by seed, averaged over the levels of `across`; `seeds` is the
    number of seeds. `status` is "done" if every seed has a value of each objective, otherwise the reason; it
    is "pruned" for a point that only reached lower rungs. `seconds` is the total training time. `feasible`
    says whether the means respect the limits of the search; None if unknown.
    """

    values: Mapping[str, Level]
    trials: tuple[str, ...]
    seeds: int
    measured: Mapping[str, Mapping[int, float]]
    status: ValueStatus
    seconds: float
    finished: datetime
    feasible: bool | None = True

    @property
    def key(self) -> PointKey:
        """A key that identifies the point by its values."""
        return point_key(self.values)

    @property
    def is_comparable(self) -> bool:
        """True if the point has all values of the objectives, and respects all limits."""
        return self.status == ValueStatus.DONE and self.feasible is True

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over the seeds, or None if a seed has no value."""
        found = self.measured.get(metric, {})
        return fmean(found.values()) if found and len(found) == self.seeds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPoints:
    """The points of a search that have no unfinished trials, sorted by time.

    `gaps` counts the trials without a value of the objectives, by status; `trained` are the trials that were
    trained. `outside` counts the search's other stored trials, as of points outside the present space.
    """

    goals: tuple[SearchObjective, ...]
    bounds: tuple[Limit, ...]
    points: tuple[FoundPoint, ...]
    gaps: Counter[str]
    trained: tuple[Trial, ...]
    outside: int

    def __repr__(self) -> str:
        return f"<SearchPoints: {plural(len(self.points), 'point')}, {len(self.complete):,} ranked>"

    @property
    def complete(self) -> tuple[FoundPoint, ...]:
        """The points with all values of the objectives and within all limits."""
        return tuple(point for point in self.points if point.is_comparable)

    @property
    def num_infeasible(self) -> int:
        """The number of points that violate a limit of the search."""
        return sum(point.feasible is False for point in self.points)

    @property
    def num_undetermined(self) -> int:
        """The number of trained points that may violate a limit. Some of their values are missing."""
        return sum(point.status == ValueStatus.DONE and point.feasible is None for point in self.points)

    def sign(self, metric: Metric) -> int:
        """Return 1 if higher values of a metric are better, else -1.

        The direction is that of the search's objective. For other metrics, it is the metric's own.
        """
        own = {goal.name: goal.sign for goal in self.goals}
        return own.get(metric.name, 1 if metric.higher_is_better else -1)

    def ranked(self) -> tuple[FoundPoint, ...]:
        """Return the complete points, the best first.

        They are sorted by the first objective. Points with equal values are in order of time. With several
        objectives, undominated points come before all others.
        """
        points, losses = self.complete, self._losses()
        best = set(front(losses)) if len(self.goals) > 1 else set(range(len(points)))
        order = sorted(range(len(points)), key=lambda number: (number not in best, losses[number][0]))
        return tuple(points[number] for number in order)

    def front(self) -> tuple[FoundPoint, ...]:
        """Return the complete points on the Pareto front, sorted by the first objective.

        No other complete point is better in one objective without being worse in another. Points with equal
        objectives are all returned.
        """
        points = self.complete
        return tuple(points[place] for place in front(self._losses()))

    def best(self) -> list[BestPoint]:
        """Return the first few points by a single objective, or the Pareto front of several objectives.

        Points that exceed a limit, and points with a diverged training, are left out.
        """
        chosen = self.front() if len(self.goals) > 1 else self.ranked()[:MAX_POINTS]
        return [
            BestPoint(
                values=dict(each.values),
                means=tuple(_known(each.mean(goal.name)) for goal in self.goals),
                limited=tuple(_known(each.mean(limit.name)) for limit in self.bounds),
            )
            for each in chosen
        ]

    def _losses(self) -> list[list[float]]:
        """Return each complete point's objectives, negated if the search maximises them: lower is better."""
        return [
            [-goal.sign * (point.mean(goal.name) or 0.0) for goal in self.goals] for point in self.complete
        ]


def find_points(study: Study, outcomes: pl.DataFrame, metrics: Iterable[str] = ()) -> SearchPoints:
    """Return the points of a search, with their values of the objectives, the limits and `metrics`."""
    search = study.search
    assert search is not None, "only a search has points"
    goals, bounds = search.settings.objectives, study.header.bounds
    tried = study_outcomes(study, outcomes, all_seeds=True)
    names = list(dict.fromkeys([*(each.name for each in goals), *metrics, *(each.name for each in bounds)]))
    values = {name: _values(study, tried, name) for name in names}
    tried = tried.with_columns(own_seconds=own_costs(tried)["seconds"])
    points: dict[PointKey, tuple[dict[str, Level], _Rows, _Rows]] = {}
    trained: list[Trial] = []
    for row, rung in zip(tried.iter_rows(named=True), rungs_of(study, tried), strict=True):
        is_whole = rung == search.rungs.top  # only the last rung gives a point its result
        trial = tried_trial(study, row["trial"], json.loads(row["factors"]))
        assert trial is not None, "the outcome belongs to the search"
        trained += [trial] if is_whole else []
        point = search.values_of(trial.levels)
        _, whole, lower = points.setdefault(point_key(point), (point, [], []))
        (whole if is_whole else lower).append(row)
    found = [_found(*each, values, search) for each in points.values()]
    if bounds:
        found = [replace(point, feasible=_is_feasible(point, bounds, goals)) for point in found]
    first = values[goals[0].name]
    statuses = [first[trial.id][1] for trial in trained]
    return SearchPoints(
        goals=goals,
        bounds=bounds,
        points=tuple(sorted(found, key=lambda point: (point.finished, point.trials))),
        gaps=Counter(status for status in statuses if status != ValueStatus.DONE),
        trained=tuple(trained),
        outside=_count_outside(study, outcomes, search),
    )


def _count_outside(study: Study, outcomes: pl.DataFrame, search: SearchSource) -> int:
    """Count a search's own trials that its present file excludes, without those of a grid of its name.

    The file may have lost dimensions since, or got new ones.
    """
    known = {*study.dimensions, *study.factors, search.settings.fidelity}
    needed = set.intersection(*({*search.values_of(trial.levels)} for trial in study.examples))
    own = outcomes.filter(study=study.name)
    names = (json.loads(each).keys() for each in own["factors"])
    return count_other_points(study, own.filter([each <= known or each >= needed for each in names]))


def point_key(values: Mapping[str, Level]) -> PointKey:
    """Return a key that identifies a point by its values."""
    return tuple(sorted((name, level_key(level)) for name, level in values.items()))


def _is_feasible(point: FoundPoint, bounds: Sequence[Limit], goals: Sequence[SearchObjective]) -> bool | None:
    seeds = set.intersection(*(set(point.measured[goal.name]) for goal in goals))
    known = [(bound, point.measured[bound.name]) for bound in bounds]
    if not seeds or any(seeds - values.keys() for _, values in known):
        return None
    return all(bound.holds(fmean(values[seed] for seed in seeds)) for bound, values in known)


def _found(
    values: Mapping[str, Level],
    whole: _Rows,
    lower: _Rows,
    measured: Mapping[str, Mapping[str, tuple[float, ValueStatus]]],
    search: SearchSource,
) -> FoundPoint:
    """Return a search point, given its rows on the last rung (`whole`) and on lower ones."""
    rows = whole or lower
    goals = search.settings.objectives
    statuses = [measured[each.name][row["trial"]][1] for each in goals for row in whole]
    if len(whole) < search.count_trials(values):
        statuses.append(ValueStatus.MISSING)
    lacking = [status for status in statuses if status != ValueStatus.DONE]
    status = combined_status(lacking) if lacking else ValueStatus.DONE
    return FoundPoint(
        values=values,
        trials=tuple(row["trial"] for row in rows),
        seeds=len({int(row["seed"]) for row in rows}),
        measured={name: _by_seed(found, whole, len(search.across)) for name, found in measured.items()},
        status=status if whole else ValueStatus.PRUNED,
        seconds=fsum(row["own_seconds"] for row in (*whole, *lower)),
        finished=max(row["finished"] for row in rows),
    )


def _by_seed(
    found: Mapping[str, tuple[float, ValueStatus]], rows: Sequence[Mapping[str, Any]], across: int
) -> dict[int, float]:
    done: dict[int, list[float]] = {}
    for row in rows:
        value, status = found[row["trial"]]
        if status == ValueStatus.DONE:
            done.setdefault(int(row["seed"]), []).append(value)
    return {seed: fmean(values) for seed, values in done.items() if len(values) == across}


def _values(study: Study, tried: pl.DataFrame, metric: str) -> dict[str, tuple[float, ValueStatus]]:
    """Return a metric's value in each trial, or why it is missing; known costs count once a trial is done."""
    if metric not in COSTS and is_known_before(metric):
        costs: dict[str, tuple[float, ValueStatus]] = {}
        for trial, status, factors in tried.select("trial", "status", "factors").iter_rows():
            own = tried_trial(study, trial, json.loads(factors))
            assert own is not None, "the outcome belongs to the search"
            costs[trial] = model_cost(metric, own.settings), ValueStatus(status)
        return costs
    found = trial_values(study.name, tried["trial"], tried, metric)
    return {trial: (value, ValueStatus(status)) for trial, _, value, status, _ in found.iter_rows()}


MAX_POINTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BestPoint:
    """A complete search point, with the mean of each objective over seeds.

    `limited` has the means of limited quantities, all within their limits.
    """

    values: dict[str, Level]
    means: tuple[float, ...]
    limited: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """The mean of the first objective over seeds."""
        return self.means[0]


def comparison_note(study: Study) -> str:
    """Return a note if values of an objective were measured at different sequence lengths.

    This happens if the curricula of points reach different lengths. Return "" otherwise.
    """
    search = study.search
    ends = [trial.settings for trial in study.examples] if search else []
    names = [each.name for each in search.settings.objectives] if search else []
    growing = next((name for name in names if any(_grows(settings, name) for settings in ends)), None)
    if growing is None:
        return ""
    return (
        f"{growing} is measured at the length that each point's curriculum has reached, so that points at "
        "greater lengths may be worse; compare by max_length, or draw lengths with [train] lengths"
    )


def _grows(settings: TrialSettings, metric: str) -> bool:
    task = settings.task
    return (
        isinstance(task, AlgorithmicSettings)
        and settings.train.lengths is None
        and metric not in ("length", "max_length")
        and not metric.startswith("test_")
        and metric in METRICS
        and METRICS[metric].higher_is_better is not None
    )


def _known(value: float | None) -> float:
    assert value is not None, "every seed of the point has a value"
    return value


Losses = Sequence[float]
"""A point's loss for each objective; lower is better."""


def dominates(first: Losses, second: Losses) -> bool:
    """Return whether `first` is nowhere worse than `second`, and better in at least one objective."""
    return all(a <= b for a, b in zip(first, second, strict=True)) and tuple(first) != tuple(second)


def front(points: Sequence[Losses]) -> list[int]:
    """Return the indices of the points on the Pareto front, sorted by the first objective.

    No other point is better in one objective without being worse in another. Equal points are all included.
    """
    order = sorted(range(len(points)), key=lambda place: tuple(points[place]))
    found: list[int] = []
    for place in order:  # sorted, so that no point dominates an earlier one and the front only grows
        # of two objectives, the last point of the front has the lowest second one (Kung et al. 1975)
        rivals = found[-1:] if len(points[place]) == 2 else found
        if not any(dominates(points[other], points[place]) for other in rivals):
            found.append(place)
    return found


def ranks(points: Sequence[Losses]) -> list[int]:
    """Return the rank of each point: 0 for the Pareto front, 1 for the front of the others, and so on."""
    left, found, rank = list(range(len(points))), [0] * len(points), 0
    while left:
        first = {left[place] for place in front([points[each] for each in left])}
        for place in first:
            found[place] = rank
        left, rank = [place for place in left if place not in first], rank + 1
    return found


def crowding(points: Sequence[Losses]) -> list[float]:
    """Return the crowding distance of each point.

    It is the distance between the point's neighbours, over all objectives. Distances are relative to the
    range of each objective. They are ∞ for the points at the ends of an objective (Deb et al. 2002).
    """
    found = [0.0] * len(points)
    for axis in range(len(points[0]) if points else 0):
        order = sorted(range(len(points)), key=lambda place: points[place][axis])
        low, high = points[order[0]][axis], points[order[-1]][axis]
        found[order[0]] = found[order[-1]] = math.inf
        if not (math.isfinite(high - low) and high > low):
            continue
        for before, place, after in zip(order, order[1:], order[2:], strict=False):
            found[place] += (points[after][axis] - points[before][axis]) / (high - low)
    return found
