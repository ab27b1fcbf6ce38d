"""The points of a search in a store: what each has of the objectives, and whether it keeps to the limits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import Any

import polars as pl

from ..catalog.metrics import COSTS
from ..planning.status import study_outcomes, tried_trial
from ..planning.trial_values import ValueStatus, trial_values
from ..resolve.costs import model_cost
from ..resolve.trial import Trial
from ..schema.objectives import Limit, SearchObjective, is_known_before
from ..schema.search_settings import SearchSettings
from ..schema.settings import Level, TrialSettings
from ..study import Study
from .pareto import front

_WORST_FIRST = ("failed", "incomplete", "pruned", "done")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """A point of a search that has trials in the store.

    `objectives` has the mean of each objective over the seeds that have a value, in the order of the search,
    NaN where none has; `per_seed` the same of each seed, the mean over all that the search is across. `seeds`
    are those with a value of all objectives, `complete` says that these are all. `feasible` says whether the
    means keep to all limits, None where that is not known. `status` is that of its worst trial.
    """

    values: Mapping[str, Level]
    recipe: str
    trials: tuple[str, ...]
    seeds: tuple[int, ...]
    studies: tuple[str, ...]  # that have trained it
    status: str
    objectives: tuple[float, ...]
    per_seed: tuple[tuple[float, ...], ...]
    feasible: bool | None
    complete: bool
    seconds: float
    finished: float  # when its last trial ended, seconds since 1970

    @property
    def counts(self) -> bool:
        """Whether it can be compared: trained on all seeds, within the limits."""
        return self.complete and self.feasible is True


def search_points(study: Study, outcomes: pl.DataFrame) -> list[PointResult]:
    """Every point of a search that the store's latest attempts have, in the order in which they ended.

    A training that diverged, where `outcomes` tell it, has no value of its metrics. None for a grid.
    """
    if study.search is None:
        return []
    tried = study_outcomes(study, outcomes).sort("finished", "trial")
    points: dict[str, list[tuple[dict[str, Any], Trial]]] = {}
    for row in tried.drop("metrics").iter_rows(named=True):
        trial = tried_trial(study, row["trial"], json.loads(row["factors"]))
        assert trial is not None, "an outcome of the search"
        values = {name: trial.levels[name] for name in study.dimensions if name in trial.levels}
        points.setdefault(json.dumps(values), []).append((row, trial))
    settings = {trial.id: trial.settings for rows in points.values() for _, trial in rows}
    quantities = QuantityValues(study.name, study.search, tried, settings)
    found = [_point(study, rows, quantities) for rows in points.values()]
    return sorted(found, key=lambda each: (each.finished, each.trials))


def pareto_front(points: Iterable[PointResult], objectives: Sequence[SearchObjective]) -> list[PointResult]:
    """The points that no other beats in all objectives, of those that can be compared, by the first one.

    Of one objective these are the best point, and those as good.
    """
    usable = [each for each in points if each.counts]
    return [usable[place] for place in front([losses(each, objectives) for each in usable])]


def losses(point: PointResult, objectives: Sequence[SearchObjective]) -> tuple[float, ...]:
    """The objectives of a point as numbers of which less is better."""
    return tuple(each.loss(value) for each, value in zip(objectives, point.objectives, strict=True))


class QuantityValues:
    """What trials have of the objectives and the limits of a search: of their rows, or of their settings."""

    def __init__(
        self, study: str, search: SearchSettings, rows: pl.DataFrame, settings: Mapping[str, TrialSettings]
    ) -> None:
        names = [*(each.name for each in search.objectives), *(each.name for each in search.bounds)]
        self._search, self._values = search, dict[str, dict[str, float]]()
        for name in dict.fromkeys(names):
            if name not in COSTS and is_known_before(name):
                self._values[name] = {trial: model_cost(name, each) for trial, each in settings.items()}
            else:
                found = trial_values(study, rows["trial"], rows, name).filter(status=ValueStatus.DONE)
                self._values[name] = dict(found.select("trial", "value").iter_rows())

    def objectives(self, trial: str) -> tuple[float, ...]:
        """The objectives of a trial, in order; NaN for those that it does not have."""
        return tuple(self._values[each.name].get(trial, math.nan) for each in self._search.objectives)

    def limits(self, trials: Sequence[str]) -> list[tuple[Limit, float]]:
        """Each limit with the mean over trials of what it limits; NaN where one has no value."""
        return [
            (bound, fmean(self._values[bound.name].get(trial, math.nan) for trial in trials))
            for bound in self._search.bounds
        ]


def _point(
    study: Study, found: Sequence[tuple[dict[str, Any], Trial]], quantities: QuantityValues
) -> PointResult:
    """A point of the rows of its trials."""
    found = sorted(found, key=lambda each: each[1].settings.seed)
    rows, trials = [row for row, _ in found], [trial for _, trial in found]
    values = {name: trials[0].levels[name] for name in study.dimensions if name in trials[0].levels}
    ended = {trial.id for row, trial in found if row["status"] == "done"}
    seeds = {
        seed: [trial for trial in trials if trial.settings.seed == seed]
        for seed in dict.fromkeys(trial.settings.seed for trial in trials)
    }
    per_seed = {seed: _means(quantities, of_seed, study) for seed, of_seed in seeds.items()}
    usable = [
        seed
        for seed, means in per_seed.items()
        if not any(map(math.isnan, means)) and ended.issuperset(trial.id for trial in seeds[seed])
    ]
    whole = [trial for seed in usable for trial in seeds[seed]]
    limits = quantities.limits([trial.id for trial in whole]) if whole else []
    is_known = bool(whole) and not any(math.isnan(value) for _, value in limits)
    means = [fmean(values) for values in zip(*(per_seed[seed] for seed in usable), strict=True)]
    return PointResult(
        values=values,
        recipe=trials[0].settings.model.recipe,
        trials=tuple(trial.id for trial in trials),
        seeds=tuple(usable),
        studies=tuple(sorted({row["study"] for row in rows})),
        status=next(each for each in _WORST_FIRST if any(row["status"] == each for row in rows)),
        objectives=tuple(means) or (math.nan,) * len(next(iter(per_seed.values()))),
        per_seed=tuple(per_seed.values()),
        feasible=all(bound.holds(value) for bound, value in limits) if is_known else None,
        complete={*study.point_seeds(values)} <= {*usable},
        seconds=fsum(row["seconds"] for row in rows),
        finished=max(row["finished"].timestamp() for row in rows),
    )


def _means(quantities: QuantityValues, trials: Sequence[Trial], study: Study) -> tuple[float, ...]:
    """The objectives of one seed, over all that its point is trained at; NaN as long as some of it lacks."""
    objectives = [quantities.objectives(trial.id) for trial in trials]
    whole = len(trials) == len(study.point_levels)
    return tuple(fmean(values) if whole else math.nan for values in zip(*objectives, strict=True))
