"""A plan: what a study has, what of it is in the store, and what the rest will cost and cannot reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeVar

import polars as pl

from ...storage import Store
from ..resolve.costs import REFERENCE_TOKENS, cost, step_flops
from ..resolve.parameter_matching import SizeMatch
from ..resolve.trial import Trial
from ..schema.level_names import level_name
from ..schema.search import representative_values
from ..schema.settings import Level, TrialSettings
from ..study import Study
from .reach_limits import ReachLimit, predict_reach_limits
from .status import trials_missing_weights
from .time_estimates import TimeEstimate, TimeEstimator, total_time

SIZE_KEYS = ("recipe", "d_model", "norm", "residual", "tied", "cutoffs")
"""The keys of [model] that determine parameters and operations."""

_SIZE_PATHS = tuple(("model", key) for key in SIZE_KEYS)

TrialStatus = Literal["done", "failed", "pruned", "missing"]

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A trial, its status in the store, and its estimated training time on this machine."""

    trial: Trial
    status: TrialStatus
    estimate: TimeEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """One model of the study: how many trials have it, and what it costs with their largest vocabulary.

    `step_flops` are those of a training step on sequences of the task's length, or of TOKENS tokens if it
    grows; `estimate` is its trials' mean.
    """

    label: str
    recipe: str
    trials: int
    parameters: int
    step_flops: int
    estimate: TimeEstimate
    size_match: SizeMatch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverBudgetModel:
    """One model over the budget: how many trials have it, what it costs, and what exceeds the budget."""

    label: str
    recipe: str
    trials: int
    parameters: int
    step_flops: int
    excess: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known of a study before it runs; `estimate` is for all remaining trials, one after the other.

    A search has no trials yet: `total` is how many it will run, `models` the ends of its dimensions. `cells`
    counts those of a grid with duplicates, without those over budget. `subset_size` counts the trials of the
    selected subset, if any; then all but `factors`, `cells`, `total` and `over_budget` describe it alone.
    """

    study: str
    title: str
    factors: Mapping[str, tuple[Level, ...]]
    cells: int
    trials: tuple[PlannedTrial, ...]
    total: int
    subset_size: int | None
    counts: Mapping[str, int]  # of the outcomes in the store, by status
    num_remaining: int  # to run; in a grid these include pruned trials and those without weights
    num_missing_weights: int  # done trials whose weights the study keeps but the store lacks
    models: tuple[ModelCost, ...]
    estimate: TimeEstimate
    max_trial_s: float  # of the longest trial to run, 0 if unknown
    reach_limits: tuple[ReachLimit, ...]
    over_budget: tuple[OverBudgetModel, ...]


def make_plan(study: Study, store: Store, only: Collection[str] | None = None) -> Plan:
    """The plan of a study, or of some trials of a grid, given a store; loads neither torch nor Ray."""
    outcomes = store.trials()
    return _search_plan(study, outcomes) if study.search else _grid_plan(study, store, outcomes, only)


def _grid_plan(study: Study, store: Store, outcomes: pl.DataFrame, only: Collection[str] | None) -> Plan:
    """The plan of a grid, whose trials are all known."""
    trials = [trial for trial in study.trials if only is None or trial.id in only]
    estimator = TimeEstimator(outcomes, study.trials)
    statuses: dict[str, TrialStatus] = dict(outcomes.select("trial", "status").iter_rows())
    planned = tuple(
        PlannedTrial(
            trial=trial, status=statuses.get(trial.id, "missing"), estimate=estimator.estimate(trial)
        )
        for trial in trials
    )
    bare = set(trials_missing_weights(study, store, statuses)) & {trial.id for trial in trials}
    left = [one.estimate for one in planned if one.status in ("missing", "pruned") or one.trial.id in bare]
    return Plan(
        study=study.name,
        title=study.title,
        factors=study.factors,
        cells=len(study.cells) // len(study.seeds),
        trials=planned,
        total=len(study.trials),
        subset_size=None if only is None else len(planned),
        counts=Counter(one.status for one in planned if one.status != "missing"),
        num_remaining=len(left),
        num_missing_weights=len(bare),
        models=_models(_label_names(study), planned, study.size_matches),
        estimate=total_time(left),
        max_trial_s=max((one.seconds or 0.0 for one in left), default=0.0),
        reach_limits=predict_reach_limits(
            (_label(_label_names(study), trial), trial.settings) for trial in trials
        ),
        over_budget=_over_budget_models(study, study.over_budget),
    )


def _search_plan(study: Study, outcomes: pl.DataFrame) -> Plan:
    """The plan of a search: its outcomes so far, and the first and last point that it can choose."""
    assert study.search is not None
    own = outcomes.filter(pl.col("study") == study.name)
    bounds = [
        {name: representative_values(found)[place] for name, found in study.dimensions.items()}
        for place in (0, -1)
    ]
    trials = [study.trial_for(values, study.seeds[0]) for values in bounds]
    estimator, total = TimeEstimator(outcomes, trials), study.search.trials * len(study.seeds)
    left = max(0, total - len(own))
    each = max((estimator.estimate(trial) for trial in trials), key=lambda one: one.seconds or 0.0)
    if seconds := own.filter(pl.col("status") == "done")["seconds"].to_list():
        each = TimeEstimate(fmean(seconds), "measured")
    planned = [PlannedTrial(trial=one, status="missing", estimate=estimator.estimate(one)) for one in trials]
    return Plan(
        study=study.name,
        title=study.title,
        factors=study.factors,
        cells=0,
        trials=(),
        total=total,
        subset_size=None,
        counts=Counter(own["status"]),
        num_remaining=left,
        num_missing_weights=0,
        models=_models(list(study.dimensions), planned, {}),
        estimate=total_time([each] * left),
        max_trial_s=each.seconds or 0.0,
        reach_limits=predict_reach_limits(
            (_label(list(study.dimensions), trial), trial.settings) for trial in trials
        ),
        over_budget=(),
    )


def _models(
    names: Sequence[str], planned: Iterable[PlannedTrial], sized: Mapping[str, SizeMatch]
) -> tuple[ModelCost, ...]:
    """What each distinct model costs, in the order of its first trial."""
    groups = _group_by_model((one.trial.settings, one) for one in planned)
    return tuple(_model_cost(_label(names, found[0].trial), found, sized) for found in groups)


def _over_budget_models(study: Study, trials: Iterable[Trial]) -> tuple[OverBudgetModel, ...]:
    """The distinct models of trials over the budget, each with its largest vocabulary."""
    names = _label_names(study)
    return tuple(
        OverBudgetModel(
            label=_label(names, found[0]),
            recipe=found[0].settings.model.recipe,
            trials=len(found),
            parameters=max(cost(trial.settings, REFERENCE_TOKENS).parameters for trial in found),
            step_flops=max(step_flops(trial.settings) for trial in found),
            excess=study.budget.describe_excess(
                max(found, key=lambda trial: study.budget.usage(trial.settings)).settings
            ),
        )
        for found in _group_by_model((trial.settings, trial) for trial in trials)
    )


def _group_by_model(pairs: Iterable[tuple[TrialSettings, ItemT]]) -> list[list[ItemT]]:
    """The items grouped by model, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[ItemT]] = {}
    for settings, kept in pairs:
        groups.setdefault(tuple(getattr(settings.model, key) for key in SIZE_KEYS), []).append(kept)
    return list(groups.values())


def _model_cost(label: str, planned: Sequence[PlannedTrial], sized: Mapping[str, SizeMatch]) -> ModelCost:
    """What the one model of these trials costs."""
    sizes = [sized[one.trial.id] for one in planned if one.trial.id in sized]
    all_settings = [one.trial.settings for one in planned]
    whole = total_time(one.estimate for one in planned)
    return ModelCost(
        label=label,
        recipe=all_settings[0].model.recipe,
        trials=len(planned),
        parameters=max(cost(settings, REFERENCE_TOKENS).parameters for settings in all_settings),
        step_flops=max(map(step_flops, all_settings)),
        estimate=TimeEstimate(None if whole.seconds is None else whole.seconds / len(planned), whole.basis),
        size_match=max(sizes, key=lambda one: (abs(one.residual), one.target), default=None),
    )


def _label_names(study: Study) -> list[str]:
    """The factors with several levels by which the models of a study differ."""
    names = {name for path in _SIZE_PATHS for name in study.template.names_at(path, study.factors)}
    return [name for name, levels in study.factors.items() if name in names and len(levels) > 1]


def _label(names: Sequence[str], trial: Trial) -> str:
    """The levels of a model, or its recipe if a study has no other.

    Dimensions that a search point does not use have no level.
    """
    names = [name for name in names if name in trial.levels]
    if len(names) == 1 and isinstance(trial.levels[names[0]], str):
        return level_name(trial.levels[names[0]])
    return (
        ", ".join(f"{name}={level_name(trial.levels[name])}" for name in names) or trial.settings.model.recipe
    )
