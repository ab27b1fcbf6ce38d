"""The points of a search that a store holds: their trials, their values, and what Optuna is told of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import optuna
from optuna.trial import TrialState

from ....storage import Store
from ....studies.catalog.metrics import COSTS
from ....studies.planning.trial_values import row_value
from ....studies.planning.trials_to_run import DEVICE_COLUMNS
from ....studies.resolve.costs import model_cost
from ....studies.resolve.search_points import read_point
from ....studies.resolve.trial import Trial
from ....studies.schema.objectives import is_known_before
from ....studies.schema.search_settings import RACE
from ....studies.schema.settings import Level
from ....studies.study import Study
from ...trial.outcome import Job
from .samplers.optuna_space import distribution

COLUMNS = (
    *("trial", "attempt", "study", "task", "seed", "status", "reason", "factors", "settings"),
    *("metrics", "epochs", *COSTS, "started", "finished"),
)
"""What a search reads of rows: what they cost to read, it pays at every point."""


@dataclass(frozen=True, slots=True)
class SearchPoint:
    """The values of the dimensions that a point takes, and its trials, those of the first seed first.

    With rungs the trials are those of one `rung`, and `whole` has the id of the first trial of the last rung,
    by which the point is known.
    """

    values: dict[str, Level]
    trials: tuple[Trial, ...]
    rung: int = 0
    whole: str = ""

    @property
    def name(self) -> str:
        """What points that mean the same have in common, on the same rung."""
        return self.trials[0].id

    @property
    def known_by(self) -> str:
        """The same on whichever rung."""
        return self.whole or self.name


@dataclass(frozen=True, slots=True)
class PointEnd:
    """How Optuna is to take a point: its objectives, none if it failed, after so many epochs.

    `excess` says how far it is beyond each limit that is known after training alone.
    """

    state: TrialState
    epoch: int
    values: tuple[float, ...] = ()
    excess: Mapping[str, float] = field(default_factory=dict[str, float])


class StoredPoints:
    """The points of a study's search, by the attempts at trials in the store as they were last read."""

    def __init__(self, study: Study, store: Store) -> None:
        assert study.search is not None
        self._study, self._store, self._search = study, store, study.search
        self._metric = study.search.objectives[0].name
        self._alike = len(study.point_levels)  # the trials of the first seed, as costly as those of any other
        self._learnt = [each for each in study.search.bounds if not is_known_before(each.name)]
        self._top = 0 if study.fidelity is None else study.fidelity.top
        self._last: SearchPoint | None = None
        needs_devices = study.search.budget is not None and study.search.budget.gpu_hours is not None
        self.attempts = store.follow((*COLUMNS, *(DEVICE_COLUMNS if needs_devices else ())))

    def read_ends(self, jobs: Iterable[Job]) -> None:
        """Read how these trials have ended; where that is not in files of their own, all that is new."""
        if not all(self.attempts.find(job.trial.study, job.trial.id, job.attempt) for job in jobs):
            self.attempts.refresh()

    def of_values(self, values: dict[str, Level], rung: int | None = None) -> SearchPoint:
        """The point of these values, with its trials, of the last rung by default."""
        if self._last is None or self._last.values != values:  # a point is often asked for twice in a row
            trials = self._study.point_trials(values)
            self._last = SearchPoint(values, trials, self._top, trials[0].id)
        if rung is None or rung == self._top:
            return self._last
        return replace(self._last, trials=self._study.point_trials(values, rung), rung=rung)

    def of_levels(self, levels: Iterable[Mapping[str, Level]]) -> list[SearchPoint]:
        """The points that the levels of trials settle, each once on a rung; none of another space."""
        fidelity = self._study.fidelity
        found = (
            (read_point(self._study.choose, each), fidelity.rung_of(each) if fidelity else None)
            for each in levels
        )
        points = [self.of_values(values, rung) for values, rung in found if values is not None]
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
        self,
        point: SearchPoint,
        course: Mapping[int, float],
        notes: Mapping[str, object],
        attributes: Mapping[str, object] | None = None,
    ) -> optuna.trial.FrozenTrial:
        """A point that the store holds whole, as Optuna remembers it, with the dimensions that it takes."""
        end = self.end(point)
        reported = {end.epoch: end.values[0]} if len(end.values) == 1 else {}
        found = optuna.trial.create_trial(
            params=point.values,
            distributions={name: distribution(self._study.dimensions[name]) for name in point.values},
            state=end.state,
            values=end.values if end.state == TrialState.COMPLETE else None,
            intermediate_values={**course, **reported},
            user_attrs=dict(notes),
            system_attrs=dict(attributes or {}),
        )
        for limit, excess in end.excess.items():
            found.set_constraint(limit, excess)
        return found

    def end(self, point: SearchPoint) -> PointEnd:
        """How a point has ended, by the means over its trials.

        Of a point that was given up, all are taken at the last epoch that all have reached.
        """
        rows = [self.attempts[trial.id] for trial in point.trials if trial.id in self.attempts]
        if self._search.scheduler == RACE:  # it stands for what its seeds have come to
            rows = [row for row in rows if row["status"] != "pruned"]
        statuses, epochs = {row["status"] for row in rows}, [row["epochs"] for row in rows]
        epoch = max(epochs, default=0)
        if not rows or "failed" in statuses:
            return PointEnd(TrialState.FAIL, epoch)
        if "pruned" in statuses:
            epoch = min(epochs)
            same = len(set(epochs)) == 1
            values = [self._mean(point, rows, self._metric) if same else self._mean_at(epoch, rows)]
            excess: dict[str, float] = {}
        else:
            values = [self._mean(point, rows, each.name) for each in self._search.objectives]
            excess = {str(limit): limit.excess(self._mean(point, rows, limit.name)) for limit in self._learnt}
        if not all(map(math.isfinite, (*values, *excess.values()))):
            return PointEnd(TrialState.FAIL, epoch)
        state = TrialState.PRUNED if "pruned" in statuses else TrialState.COMPLETE
        return PointEnd(state, epoch, tuple(values), excess)

    def is_given_up(self, point: SearchPoint) -> bool:
        """Whether one of its trials has been."""
        rows = (self.attempts[trial.id] for trial in point.trials if trial.id in self.attempts)
        return any(row["status"] == "pruned" for row in rows)

    def losses(self, point: SearchPoint) -> dict[int, float]:
        """The first objective of each seed whose trials have ended, less being better; NaN for none."""
        objective = self._search.objectives[0]
        losses: dict[int, list[float | None]] = {}
        for trial in point.trials:
            row = self.attempts.get(trial.id)
            found: float | None = None
            if row is not None and row["status"] in ("done", "failed"):
                is_done = row["status"] == "done"
                found = objective.loss(row_value(row, objective.name)) if is_done else math.nan
            losses.setdefault(trial.settings.seed, []).append(found)
        whole = {seed: [each for each in of if each is not None] for seed, of in losses.items()}
        return {seed: fmean(whole[seed]) for seed, of in losses.items() if None not in of}

    def rung_loss(self, point: SearchPoint) -> float:
        """The first objective of a point that has ended on a rung, less being better; infinity for none."""
        end = self.end(point)
        if end.state != TrialState.COMPLETE or any(excess > 0 for excess in end.excess.values()):
            return math.inf
        return self._search.objectives[0].loss(end.values[0])

    def keeps_limits(self, point: SearchPoint) -> bool:
        """Whether a point that has ended is within the limits that training tells."""
        return all(excess <= 0 for excess in self.end(point).excess.values())

    def _mean(self, point: SearchPoint, rows: Sequence[Mapping[str, Any]], name: str) -> float:
        """The mean of an objective or of what is limited over rows; NaN if one of them has none."""
        if is_known_before(name):
            return fmean(model_cost(name, each.settings) for each in point.trials[: self._alike])
        return fmean(row_value(row, name) for row in rows)

    def _mean_at(self, epoch: int, rows: Sequence[Mapping[str, Any]]) -> float:
        """The mean of the metric over rows after an epoch; NaN if one of them has none."""
        frame = self.attempts.frame(row["trial"] for row in rows)
        values = self._store.metric_course(self._metric, frame).filter(epoch=epoch)["value"].to_list()
        return fmean(values) if len(values) == len(rows) else math.nan


def mean_course(point: SearchPoint, courses: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """The mean over a point's trials after each epoch that all of them have."""
    found = [courses.get(trial.id, {}) for trial in point.trials]
    shared = sorted(set.intersection(*(set(course) for course in found)))
    return {epoch: fmean(course[epoch] for course in found) for epoch in shared}
