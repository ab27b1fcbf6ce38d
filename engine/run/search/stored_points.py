"""The points of a search that a store holds: their trials, their values, and what Optuna is told of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import optuna
from optuna.trial import TrialState

from ....storage import Store
from ....studies.planning.trial_values import ValueStatus, trial_values
from ....studies.resolve.search_points import read_point
from ....studies.resolve.trial import Trial
from ....studies.schema.settings import Level
from ....studies.study import Study
from .optuna_space import distribution


@dataclass(frozen=True, slots=True)
class SearchPoint:
    """The values of the dimensions that a point takes, and its trials, one for each seed."""

    values: dict[str, Level]
    trials: tuple[Trial, ...]

    @property
    def name(self) -> str:
        """What points that mean the same have in common."""
        return self.trials[0].id


class StoredPoints:
    """The points of a study's search, by the attempts at trials in the store as they were last read."""

    def __init__(self, study: Study, store: Store) -> None:
        assert study.search is not None
        self._study, self._store, self._metric = study, store, study.search.metric
        self.attempts = store.follow()

    def of_values(self, values: dict[str, Level]) -> SearchPoint:
        """The point of these values, with its trials."""
        return SearchPoint(values, self._study.point_trials(values))

    def of_levels(self, levels: Iterable[Mapping[str, Level]]) -> list[SearchPoint]:
        """The points that the levels of trials settle, each once; none of another space."""
        found = (read_point(self._study.choose, each) for each in levels)
        points = [self.of_values(values) for values in found if values is not None]
        return list({point.name: point for point in points}.values())

    def courses(self, points: Sequence[SearchPoint]) -> dict[str, dict[int, float]]:
        """The metric of the points' trials after each epoch."""
        courses: dict[str, dict[int, float]] = {}
        if points:
            rows = self.attempts.frame(trial.id for point in points for trial in point.trials)
            course = self._store.metric_course(self._metric, rows).select("trial", "epoch", "value")
            for trial, epoch, value in course.iter_rows():
                if not math.isnan(value):
                    courses.setdefault(trial, {})[epoch] = value
        return courses

    def frozen(
        self, point: SearchPoint, course: Mapping[int, float], notes: Mapping[str, object]
    ) -> optuna.trial.FrozenTrial:
        """A point that the store holds whole, as Optuna remembers it, with the dimensions that it takes."""
        value, epoch, state = self.value(point)
        return optuna.trial.create_trial(
            params=point.values,
            distributions={name: distribution(self._study.dimensions[name]) for name in point.values},
            state=state,
            value=value if state == TrialState.COMPLETE else None,
            intermediate_values={**course, **({} if value is None else {epoch: value})},
            user_attrs=dict(notes),
        )

    def value(self, point: SearchPoint) -> tuple[float | None, int, TrialState]:
        """The mean of the metric over a point's trials, their epochs, and how Optuna is to take it.

        Of a point that was given up, all are taken at the last epoch that all have reached.
        """
        rows = self.attempts.frame(trial.id for trial in point.trials)
        found = trial_values(self._study.name, rows["trial"], rows, self._metric)
        values, statuses = found["value"].fill_null(math.nan).to_list(), set(found["status"])
        epoch = max(rows["epochs"], default=0)
        if ValueStatus.PRUNED in statuses and rows["epochs"].n_unique() > 1:
            epoch = min(rows["epochs"])
            course = self._store.metric_course(self._metric, rows).filter(epoch=epoch)
            values = course["value"].to_list() if len(course) == len(rows) else []
        if not values or ValueStatus.FAILED in statuses or any(map(math.isnan, values)):
            return None, epoch, TrialState.FAIL
        state = TrialState.PRUNED if ValueStatus.PRUNED in statuses else TrialState.COMPLETE
        return fmean(values), epoch, state


def mean_course(point: SearchPoint, courses: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """The mean over a point's trials after each epoch that all of them have."""
    found = [courses.get(trial.id, {}) for trial in point.trials]
    shared = sorted(set.intersection(*(set(course) for course in found)))
    return {epoch: fmean(course[epoch] for course in found) for epoch in shared}
