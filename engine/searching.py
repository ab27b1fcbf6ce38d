"""A search: Optuna proposes points, each point is a cohort of trials, and the store is its only memory."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
import polars as pl
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from ..grammar.nodes import Dimension, Integer, Real
from ..grammar.space import label
from ..storage import Store
from ..studies.settings import Level, SearchSettings
from ..studies.study import Study
from ..studies.trial import Trial
from .attempt import prune
from .checkpoints import unfinished
from .events import Event, Listener
from .outcome import Task

REPEATS = 500
"""So many proposals in a row may repeat known points before the space counts as exhausted."""

Point = dict[str, Level]


class Search:
    """The points of a study's search; a source of cohorts.

    What the store holds of it is told to Optuna first, unfinished points are taken up before new ones are asked
    for, and a point that is already known is never trained again.
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
        self._spaces = {name: _distribution(dimension) for name, dimension in study.dimensions.items()}
        self._optuna = optuna.create_study(
            direction="maximize" if self._settings.direction == "max" else "minimize",
            sampler=_sampler(self._settings),
            pruner=_pruner(self._settings),
        )
        self._grid = _enumerate(self._spaces) if self._settings.sampler == "grid" else None
        self._known: set[str] = set()
        self._open: dict[str, optuna.trial.Trial] = {}
        self._judged: dict[str, int] = {}  # the last epoch that Optuna has heard of
        self._attempts = {trial: number for trial, (_, number) in store.outcomes().items()}
        self._waiting = self._recall()

    def next_cohort(self) -> tuple[str, list[Task]] | None:
        """The trials of the next point, unfinished ones first; None when the search has its number of points."""
        asked = self._ask() if self._left is None or self._left > 0 else None
        if asked is None:
            return None
        point, trial = asked
        name = _key(point)
        self._known.add(name)
        self._open[name] = trial
        tasks = [self._task(each) for each in self._study.point(point)]
        self._left = None if self._left is None else self._left - len(tasks)
        self._listener.announce([task.trial for task in tasks])
        return name, tasks

    def judge(self, name: str, epoch: int, value: float) -> bool:
        """Whether Optuna's pruner gives a point up; used where Tune's schedulers are not."""
        trial = self._open[name]
        if not math.isnan(value) and epoch:
            trial.report(value, epoch)
            self._judged[name] = epoch
        return trial.should_prune()

    def cohort_ended(self, name: str, *, whole: bool) -> list[Event]:
        """Tell Optuna the point's value; trials that were given up are stored as pruned."""
        trials, trial = self._study.point(json.loads(name)), self._open.pop(name)
        events: list[Event] = []
        if not whole:
            reason = f"given up by {self._settings.scheduler}"
            held = self._store.outcomes()
            events = [prune(self._task(each), self._store, reason) for each in trials if each.id not in held]
        self._tell(name, trial, self._rows([each.id for each in trials]))
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
            ids = [trial.id for trial in self._study.point(point)]
            stored = rows.filter(pl.col("trial").is_in(ids))
            again = self._retry and "failed" in stored["status"].to_list()
            if len(stored) == len(ids) and not again:
                self._known.add(key)
                self._optuna.add_trial(self._frozen(point, stored))
            elif len(stored) or any(self._store.checkpoint_dir(each).exists() for each in ids):
                waiting.append(point)
        return waiting

    def _point_of(self, levels: Mapping[str, Level]) -> Point | None:
        """The point among a trial's levels; None if it is none of this space."""
        point = {name: levels[name] for name in self._spaces if name in levels}
        if len(point) < len(self._spaces):
            return None
        inside = all(_contains(space, point[name]) for name, space in self._spaces.items())
        return point if inside else None

    def _rows(self, ids: list[str]) -> pl.DataFrame:
        return self._store.trials().filter(pl.col("trial").is_in(ids))

    def _frozen(self, point: Point, rows: pl.DataFrame) -> optuna.trial.FrozenTrial:
        value, epoch, state = self._value(rows)
        return optuna.trial.create_trial(
            params=point,
            distributions=self._spaces,
            state=state,
            value=value if state == TrialState.COMPLETE else None,
            intermediate_values={} if value is None else {epoch: value},
        )

    def _tell(self, name: str, trial: optuna.trial.Trial, rows: pl.DataFrame) -> None:
        value, epoch, state = self._value(rows)
        if value is not None and state == TrialState.PRUNED and self._judged.pop(name, 0) < epoch:
            trial.report(value, epoch)
        self._optuna.tell(trial, value if state == TrialState.COMPLETE else None, state=state)

    def _value(self, rows: pl.DataFrame) -> tuple[float | None, int, TrialState]:
        """The mean of the metric over a point's rows, the epochs it took, and how Optuna is to take it."""
        values = [_metric(row, self._settings.metric) for row in rows["metrics"].to_list()]
        epoch = int(rows["epochs"].max() or 0)  # pyright: ignore[reportArgumentType] -- a column of integers
        statuses = set(rows["status"].to_list())
        if not values or "failed" in statuses or any(value is None or math.isnan(value) for value in values):
            return None, epoch, TrialState.FAIL
        mean = sum(value for value in values if value is not None) / len(values)
        return mean, epoch, TrialState.PRUNED if "pruned" in statuses else TrialState.COMPLETE

    def _task(self, trial: Trial) -> Task:
        return Task(trial=trial, number=self._attempts.get(trial.id, -1) + 1, run=self._run)


def _key(point: Mapping[str, Any]) -> str:
    return json.dumps(dict(point), sort_keys=True)


def _metric(metrics: list[dict[str, Any]], name: str) -> float | None:
    return next((each["value"] for each in metrics if each["name"] == name), None)


def _contains(space: optuna.distributions.BaseDistribution, value: Level) -> bool:
    try:
        return space._contains(space.to_internal_repr(value))
    except (ValueError, TypeError):
        return False


def _distribution(dimension: Dimension) -> optuna.distributions.BaseDistribution:
    """Optuna's name for a dimension of the recipe language."""
    match dimension:
        case Integer():
            return IntDistribution(dimension.low, dimension.high, log=dimension.log, step=dimension.step)
        case Real():
            return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
        case _:
            return CategoricalDistribution([label(option) for option in dimension.options])


def _enumerate(spaces: Mapping[str, optuna.distributions.BaseDistribution]) -> Iterator[Point]:
    """Every point of a space without real dimensions, the last one varying fastest."""
    axes: list[list[Any]] = []
    for space in spaces.values():
        if isinstance(space, IntDistribution):
            axes.append(list(range(space.low, space.high + 1, space.step)))
        else:
            assert isinstance(space, CategoricalDistribution), "the study refuses a grid over real dimensions"
            axes.append(list(space.choices))
    for values in itertools.product(*axes):
        yield dict(zip(spaces, values, strict=True))


def _sampler(settings: SearchSettings) -> optuna.samplers.BaseSampler:
    match settings.sampler:
        case "tpe":
            return optuna.samplers.TPESampler(seed=settings.seed)
        case "cmaes":
            return optuna.samplers.CmaEsSampler(seed=settings.seed)
        case "gp":
            return optuna.samplers.GPSampler(seed=settings.seed)
        case "nsga2":
            return optuna.samplers.NSGAIISampler(seed=settings.seed)
        case _:
            return optuna.samplers.RandomSampler(seed=settings.seed)


def _pruner(settings: SearchSettings) -> optuna.pruners.BasePruner:
    """Optuna's form of the scheduler, for runs without Tune."""
    match settings.scheduler:
        case "asha":
            return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=4)
        case "hyperband":
            return optuna.pruners.HyperbandPruner()
        case "median":
            return optuna.pruners.MedianPruner()
        case "none":
            return optuna.pruners.NopPruner()
