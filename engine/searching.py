"""A search: Optuna proposes points, each point is a cohort of trials, and the store is its only memory."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import optuna
import polars as pl
from optuna.trial import TrialState

from ..storage import Store
from ..studies.settings import Level
from ..studies.study import Study
from ..studies.trial import Trial
from .attempt import prune
from .checkpoints import unfinished
from .events import Event, Listener
from .outcome import Task
from .spaces import Point, contains, distribution, enumerated, pruner, sampler

REPEATS = 500
"""So many proposals in a row may repeat known points before the space counts as exhausted."""


class Search:
    """The points of a study's search; a source of cohorts.

    What the store holds of it is told to Optuna first, unfinished points are taken up before new ones are
    asked for, and a point that is already known is never trained again.
    """

    def __init__(
        self,
        study: Study,
        store: Store,
        run: str,
        listener: Listener,
        *,
        max_trials: int | None = None,
        retry_failed: bool = False,
    ) -> None:
        assert study.search is not None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study, self._store, self._run, self._settings = study, store, run, study.search
        self._listener, self._left, self._retry = listener, max_trials, retry_failed
        self._spaces = {name: distribution(dimension) for name, dimension in study.dimensions.items()}
        self._optuna = optuna.create_study(
            direction="maximize" if self._settings.direction == "max" else "minimize",
            sampler=sampler(self._settings),
            pruner=pruner(self._settings),
        )
        self._grid = enumerated(self._spaces) if self._settings.sampler == "grid" else None
        self._known: set[str] = set()
        self._open: dict[str, tuple[optuna.trial.Trial, list[Task]]] = {}
        self._judged: dict[str, int] = {}  # the last epoch that Optuna has heard of
        self._held = store.outcomes()
        self._waiting = self._recall()

    def next_cohort(self) -> tuple[str, list[Task]] | None:
        """The missing trials of the next point, unfinished points first; None when there are no more."""
        while (self._left is None or self._left > 0) and (asked := self._ask()) is not None:
            point, trial = asked
            name, tasks = _key(point), self._missing(point)
            self._known.add(name)
            if not tasks:  # another study has trained it
                self._tell(name, trial)
                continue
            self._open[name] = trial, tasks
            self._left = None if self._left is None else self._left - len(tasks)
            self._listener.announce([task.trial for task in tasks])
            return name, tasks
        return None

    def judge(self, name: str, epoch: int, value: float) -> bool:
        """Whether Optuna's pruner gives a point up; used where Tune's schedulers are not."""
        trial, _ = self._open[name]
        if not math.isnan(value) and epoch:
            trial.report(value, epoch)
            self._judged[name] = epoch
        return trial.should_prune()

    def cohort_ended(self, name: str, *, whole: bool) -> list[Event]:
        """Tell Optuna the point's value; trials that were given up are stored as pruned."""
        trial, tasks = self._open.pop(name)
        events: list[Event] = []
        if not whole:
            reason, held = f"given up by {self._settings.scheduler}", self._store.outcomes()
            ended = {task.trial.id for task in tasks if held.get(task.trial.id, ("", -1))[1] >= task.number}
            events = [prune(task, self._store, reason) for task in tasks if task.trial.id not in ended]
        self._tell(name, trial)
        return events

    def _ask(self) -> tuple[Point, optuna.trial.Trial] | None:
        """A point that is not known yet, with Optuna's trial for it."""
        for _ in range(REPEATS + len(self._known)):
            if len(self._known) >= self._settings.trials:
                return None
            if self._waiting:
                self._optuna.enqueue_trial(self._waiting.pop(0))
            elif self._grid is not None:
                point = next(self._grid, None)
                if point is None:
                    return None
                self._optuna.enqueue_trial(point)
            trial = self._optuna.ask(self._spaces)
            if _key(trial.params) not in self._known:
                return dict(trial.params), trial
            self._optuna.tell(trial, state=TrialState.FAIL)
        return None

    def _recall(self) -> list[Point]:
        """Tell Optuna every point that the store holds whole; the points that were begun and not finished."""
        rows = self._store.trials().filter(pl.col("study") == self._study.name)
        begun = [json.loads(text) for text in rows["factors"].to_list()]
        begun += [
            dict(trial.levels)
            for trial in map(Trial.from_json, unfinished(self._store.checkpoint_dir("x").parent))
            if trial.study == self._study.name
        ]
        points = {_key(point): point for point in map(self._point_of, begun) if point is not None}
        waiting: list[Point] = []
        for key, point in points.items():
            if self._missing(point):
                waiting.append(point)
            else:
                self._known.add(key)
                self._optuna.add_trial(self._frozen(point))
        return waiting

    def _missing(self, point: Point) -> list[Task]:
        """The trials of a point that have no outcome, or one that is to be tried again."""
        again = {"failed"} if self._retry else set[str]()
        return [
            Task(trial=trial, number=self._held.get(trial.id, ("", -1))[1] + 1, run=self._run)
            for trial in self._study.point(point)
            if trial.id not in self._held or self._held[trial.id][0] in again
        ]

    def _point_of(self, levels: Mapping[str, Level]) -> Point | None:
        """The point among a trial's levels; None if it is none of this space."""
        point = {name: levels[name] for name in self._spaces if name in levels}
        if len(point) < len(self._spaces):
            return None
        inside = all(contains(space, point[name]) for name, space in self._spaces.items())
        return point if inside else None

    def _frozen(self, point: Point) -> optuna.trial.FrozenTrial:
        value, epoch, state = self._value(point)
        return optuna.trial.create_trial(
            params=point,
            distributions=self._spaces,
            state=state,
            value=value if state == TrialState.COMPLETE else None,
            intermediate_values={} if value is None else {epoch: value},
        )

    def _tell(self, name: str, trial: optuna.trial.Trial) -> None:
        value, epoch, state = self._value(json.loads(name))
        if value is not None and state == TrialState.PRUNED and self._judged.pop(name, 0) < epoch:
            trial.report(value, epoch)
        self._optuna.tell(trial, value if state == TrialState.COMPLETE else None, state=state)

    def _value(self, point: Point) -> tuple[float | None, int, TrialState]:
        """The mean of the metric over a point's trials, their epochs, and how Optuna is to take it."""
        ids = [trial.id for trial in self._study.point(point)]
        rows = self._store.trials().filter(pl.col("trial").is_in(ids)).to_dicts()
        values = [_metric(row["metrics"], self._settings.metric) for row in rows]
        epoch, statuses = max((row["epochs"] for row in rows), default=0), {row["status"] for row in rows}
        if not values or "failed" in statuses or any(map(math.isnan, values)):
            return None, epoch, TrialState.FAIL
        return fmean(values), epoch, TrialState.PRUNED if "pruned" in statuses else TrialState.COMPLETE


def _key(point: Mapping[str, Any]) -> str:
    return json.dumps(dict(point), sort_keys=True)


def _metric(metrics: Sequence[Mapping[str, Any]], name: str) -> float:
    """The final value of a metric; NaN if there is none."""
    return next((each["value"] for each in metrics if each["name"] == name), math.nan)
