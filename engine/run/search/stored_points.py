"""The points of a search that this or any other driver has begun, read from the store."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import polars as pl
from optuna.trial import TrialState

from ....storage import Store
from ....storage.rows import KEY_COLUMNS, row_values
from ....studies.catalog.metrics import COSTS
from ....studies.planning.status import outcomes_elsewhere, tried_point
from ....studies.planning.trials_to_run import DEVICE_COLUMNS, Spent, unfinished_trials, was_trained
from ....studies.resolve.costs import model_cost
from ....studies.resolve.trial import Trial, changed_code
from ....studies.schema.limits import is_known_before
from ....studies.schema.search_settings import NONE
from ....studies.schema.settings import Level
from ....studies.study import Study
from ...trial.checkpoints import Checkpoint
from ...trial.failures import storing

COLUMNS = (
    *("trial", "attempt", "study", "task", "seed", "status", "reason", "factors", "settings"),
    *("metrics", "epochs", *COSTS, "continued_from", "started", "finished"),
)
"""The columns of stored rows that a search reads."""


@dataclass(frozen=True, slots=True)
class SearchPoint:
    """A search point: its values and its trials.

    The values are those of its active dimensions; the trials are ordered by seed. If the scheduler trains a
    point on several rungs, each with a larger budget, the trials belong to one `rung`, and `whole` is the id
    of the first trial of the last rung.
    """

    values: dict[str, Level]
    trials: tuple[Trial, ...]
    rung: int = 0
    whole: str = ""

    @property
    def name(self) -> str:
        """Return the id of the point on its rung. It is the id of the point's first trial there."""
        return self.trials[0].id

    @property
    def global_id(self) -> str:
        """Return the id of the point's first trial on the last rung, which is the same on every rung."""
        return self.whole or self.name


@dataclass(frozen=True, slots=True)
class PointEnd:
    """The end of a search point: its state, last epoch and objectives.

    A failed point has no values. `excess` is how far the point exceeds each limit on a trained value.
    """

    state: TrialState
    epoch: int
    values: tuple[float, ...] = ()
    excess: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def keeps_limits(self) -> bool:
        """Return whether the measured values of the point are within the search's limits."""
        return all(excess <= 0 for excess in self.excess.values())


class StoredPoints:
    """The points of a search, as last read from the store.

    Attempts of this search come before those of other studies. With `retry_failed`, failed trials count as
    missing. So do those that only other searches have pruned and, without a scheduler, all pruned ones.
    """

    def __init__(self, study: Study, store: Store, *, retry_failed: bool = False) -> None:
        assert study.search is not None
        self._study, self._store, self._search, self._name = study, store, study.search, study.name
        self._settings = self._search.settings
        self._objectives = self._settings.objectives
        self._metric = self._objectives[0].name
        self._known = {each.name for each in self._objectives if is_known_before(each.name)}
        self._alike = len(self._search.across)  # trials per seed; all seeds have equal costs
        self._learnt = [each for each in study.header.bounds if not is_known_before(each.name)]
        self._top, self._prunes = self._search.rungs.top, self._settings.scheduler.name != NONE
        self._again = ("incomplete", "failed") if retry_failed else ("incomplete",)
        self._last: SearchPoint | None = None
        needs_devices = self._settings.budget is not None and self._settings.budget.gpu_hours is not None
        columns = (*COLUMNS, *(DEVICE_COLUMNS if needs_devices else ()))
        self.attempts = store.follow(columns, first=self._name)

    def of_values(self, values: dict[str, Level], rung: int | None = None) -> SearchPoint:
        """Return the search point with these values, by default on the last rung."""
        # callers often ask twice in a row for the same point
        if self._last is None or self._last.values != values:
            trials = self._search.trials_of(values)
            self._last = SearchPoint(values, trials, self._top, trials[0].id)
        if rung is None or rung == self._top:
            return self._last
        return replace(self._last, trials=self._search.trials_of(values, rung), rung=rung)

    def of_levels(self, levels: Iterable[Mapping[str, Level]]) -> list[SearchPoint]:
        """Return each search point with these values of the dimensions once; skip values outside them."""
        found = ((self._search.read_point(each), self._search.rungs.rung_of(each)) for each in levels)
        points = [self.of_values(values, rung) for values, rung in found if values is not None]
        return list({point.name: point for point in points}.values())

    def missing(self, point: SearchPoint) -> list[Trial]:
        """Return those trials of a search point that a run must still train."""
        rows = ((trial, self.outcome(trial.id)) for trial in point.trials)
        return [trial for trial, row in rows if row is None or row["status"] in self._again]

    def outcome(self, trial: str) -> Mapping[str, Any] | None:
        """Return the stored row of a trial that counts for this search, or None."""
        row = self.attempts.get(trial)
        if row is None or row["status"] != "pruned":
            return row
        return row if self._prunes and row["study"] == self._name else None

    def copy_fitting(self) -> None:
        """Copy the outcomes of all points to this search that other studies have trained with all seeds."""
        stored = self._store.trials(first=[self._name])
        if len(found := outcomes_elsewhere(self._study, stored)):
            self._copy(found)

    def copy_from_others(self, point: SearchPoint) -> None:
        """Copy the outcomes of a search point that other studies have stored to this search."""
        rows = [
            {**row, "factors": json.dumps(dict(trial.levels))}
            for trial in point.trials
            if (row := self.outcome(trial.id)) is not None and not self._is_own(trial, row)
        ]
        if rows:
            self._copy(self.attempts.frame(rows).select(*KEY_COLUMNS, "factors"))

    def _is_own(self, trial: Trial, row: Mapping[str, Any]) -> bool:
        """Return whether a trial's row is of this search, with factors that its file still has."""
        factors = json.loads(row["factors"])
        return row["study"] == self._name and tried_point(self._study, trial.id, factors) is not None

    def _copy(self, attempts: pl.DataFrame) -> None:
        with storing():
            self._store.upkeep.copy_to_search(attempts, self._name)
        self.attempts.refresh()

    def outcomes(self, point: SearchPoint) -> list[Mapping[str, Any]]:
        """Return the stored rows of a search point's trials that count for this search."""
        return [row for trial in point.trials if (row := self.outcome(trial.id)) is not None]

    def courses(self, points: Sequence[SearchPoint]) -> dict[str, dict[int, float]]:
        """Return the first objective after each epoch, except NaN, by trial id and then by epoch."""
        courses: dict[str, dict[int, float]] = {}
        if points:
            rows = [row for point in points for row in self.outcomes(point)]
            course = self._store.metric_course(self._metric, self.attempts.frame(rows))
            course = course.select("trial", "epoch", "value")
            for trial, epoch, value in course.iter_rows():
                if not math.isnan(value):
                    courses.setdefault(trial, {})[epoch] = value
        return courses

    def reached(self, trial: Trial) -> int:
        """Return the number of epochs after which an unfinished trial resumes."""
        note = self._store.files.checkpoint_note(trial.id)
        return 0 if note is None else note.epoch

    def begun_course(self, point: SearchPoint) -> dict[int, float]:
        """Return the first objective after each epoch of an unfinished point, as the mean over its trials."""
        return mean_course(point, self._begun_courses(point))

    def value_at(self, point: SearchPoint, epoch: int) -> float:
        """Return the mean of the first objective over the trials of an unfinished point, after this epoch.

        A trial that has ended before counts with its last value. Return NaN if a trial has failed, or has no
        value yet.
        """
        if any(row["status"] == "failed" for row in self.outcomes(point)):
            return math.nan
        courses = self._begun_courses(point)
        reached = [max((each for each in course if each <= epoch), default=0) for course in courses.values()]
        return fmean(
            course.get(last, math.nan) for course, last in zip(courses.values(), reached, strict=True)
        )

    def _begun_courses(self, point: SearchPoint) -> dict[str, dict[int, float]]:
        """Return the first objective after each epoch, except NaN, of all trials of an unfinished point.

        The epochs are those of stored rows, and of the notes beside the checkpoints from which trials resume.
        A note keeps at most 200 epochs: of more, every n-th.
        """
        courses = self.courses([point])
        for trial in point.trials:
            if trial.id not in courses and (note := self._store.files.checkpoint_note(trial.id)) is not None:
                values = note.course.get(self._metric, [])
                courses[trial.id] = {epoch: value for epoch, value in values if not math.isnan(value)}
        return {trial.id: courses.get(trial.id, {}) for trial in point.trials}

    def end(self, point: SearchPoint) -> PointEnd:
        """Return how a search point has ended.

        Each objective is averaged over the point's trials. For a pruned point, these are the means at the
        last epoch that all trials have reached.
        """
        rows = self.outcomes(point)
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
            values = [self._mean(point, rows, each.name) for each in self._objectives]
            excess = {str(limit): limit.excess(self._mean(point, rows, limit.name)) for limit in self._learnt}
        # Optuna cannot compare values that are not finite
        if not all(map(math.isfinite, (*values, *excess.values()))):
            return PointEnd(TrialState.FAIL, epoch)
        state = TrialState.PRUNED if "pruned" in statuses else TrialState.COMPLETE
        return PointEnd(state, epoch, tuple(values), excess)

    def was_pruned(self, point: SearchPoint) -> bool:
        """Return whether a trial of a search point was pruned."""
        return any(row["status"] == "pruned" for row in self.outcomes(point))

    def _mean(self, point: SearchPoint, rows: Sequence[Mapping[str, Any]], name: str) -> float:
        if name in self._known:
            return fmean(model_cost(name, each.settings) for each in point.trials[: self._alike])
        return fmean(_value(row, name) for row in rows)

    def _mean_at(self, epoch: int, rows: Sequence[Mapping[str, Any]]) -> float:
        """Return the mean of the first objective after `epoch`; NaN if a trial has no value for it."""
        frame = self.attempts.frame(rows)
        values = self._store.metric_course(self._metric, frame).filter(epoch=epoch)["value"].to_list()
        return fmean(values) if len(values) == len(rows) else math.nan


def _value(row: Mapping[str, Any], name: str) -> float:
    """Return the final value of a metric or cost in one row of the store, or NaN."""
    if name in COSTS:
        return math.nan if row[name] is None else float(row[name])
    return row_values(row).get(name, math.nan)


def mean_course(point: SearchPoint, courses: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Return the mean of a metric over a point's trials, for each epoch that all of them have reached."""
    found = [courses.get(trial.id, {}) for trial in point.trials]
    shared = sorted(set.intersection(*(set(course) for course in found)))
    return {epoch: fmean(course[epoch] for course in found) for epoch in shared}


class BegunPoints:
    """The points of a search that any driver has begun.

    A driver is a process that runs the search. `spent` adds up the costs of the study's stored trainings.
    """

    def __init__(self, study: Study, store: Store, points: StoredPoints) -> None:
        assert study.search is not None
        self._study, self._name = study, study.name
        self._store, self._points = store, points
        self._read = 0  # the number of stored rows that were read
        self.spent = Spent()
        self._counted: dict[str, Mapping[str, Any]] = {}  # rows by trial

    def new(self, known: Collection[str] = ()) -> list[SearchPoint]:
        """Return the search points that have new rows or checkpoints since the last call.

        Points of which only the `known` trials have any are left out, as are rows of other studies.
        """
        stored, begun = self._points.attempts, dict[str, Mapping[str, Level]]()
        unfinished = self._unfinished(known)
        stored.refresh()  # only now, because a trial that ends has a row before it loses its checkpoint
        arrived = stored.since(self._read)
        self._read += len(arrived)
        # samplers depend on the order
        for trial in sorted(set(arrived), key=lambda each: (stored[each]["finished"], each)):
            row = stored[trial]
            if row["study"] != self._name:
                continue
            if trial in known:
                self._count(trial, row)
            elif self._is_own(trial, row):
                begun[trial] = json.loads(row["factors"])
                self._count(trial, row)
        begun |= {
            trial: levels for trial, levels in unfinished.items() if self._points.outcome(trial) is None
        }
        return self._points.of_levels(begun.values())

    def begin(self, first: Trial) -> None:
        """Record that this driver trains a new search point, of which `first` is the first trial to train.

        The trial gets an entry in the store at once, so that other drivers count the point.
        """
        with storing():
            Checkpoint(self._store, first.id).record_begun(first.to_json())

    def _count(self, trial: str, row: Mapping[str, Any]) -> None:
        if (before := self._counted.pop(trial, None)) is not None:
            self.spent.add(before, times=-1)
        if was_trained(row):
            if (earlier := self._points.attempts.get(row["continued_from"])) is not None:
                row = {**row, **{name: row[name] - earlier[name] for name in ("flops", "seconds")}}
            self.spent.add(row)
            self._counted[trial] = row

    def _unfinished(self, known: Collection[str]) -> dict[str, Mapping[str, Level]]:
        begun = unfinished_trials(self._store.files.checkpoints_folder(), self._name)
        return {
            trial.id: dict(trial.levels)
            for trial in begun
            if trial.id not in known and tried_point(self._study, trial.id, trial.levels) is not None
        }

    def _is_own(self, trial: str, row: Mapping[str, Any]) -> bool:
        """Return whether a row of this study belongs to a point of the search."""
        levels = json.loads(row["factors"])
        return tried_point(self._study, trial, levels) is not None or bool(changed_code(row["settings"]))
