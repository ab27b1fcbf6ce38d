"""A plan: what a study asks for, what the store has of it, and what the rest will cost and cannot reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeVar

import polars as pl

from ..storage import Store
from .ceilings import Ceiling, predict
from .costs import TOKENS, cost, step_flops
from .estimates import Estimate, Estimator, together
from .labels import level_name
from .matching import Sized
from .search import ends
from .settings import Level, Settings
from .standing import weightless
from .study import Study
from .trial import Trial

SIZES = ("recipe", "d_model", "norm", "residual", "tied", "cutoffs")
"""The keys of [model] that parameters and operations depend on."""

_MODEL = tuple(("model", key) for key in SIZES)

Status = Literal["done", "failed", "pruned", "missing"]

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A trial, how it stands in the store, and its training on this machine."""

    trial: Trial
    status: Status
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """One model of the study: how many trials have it, and what it costs with their largest vocabulary.

    `step_flops` are those of a training step on sequences of the task's length, or of TOKENS tokens where it
    grows; `estimate` is its trials' mean; `sized` is what was solved for it, of several tasks that with the
    largest residual.
    """

    label: str
    recipe: str
    trials: int
    parameters: int
    step_flops: int
    estimate: Estimate
    sized: Sized | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One model that is over the budget: how many trials have it, what it costs, and what is too much."""

    label: str
    recipe: str
    trials: int
    parameters: int
    step_flops: int
    excess: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known of a study before it runs; `estimate` is for all that is left, one trial after the other.

    A search has no trials before it runs: `total` is what it asks for, `models` the ends of its dimensions.
    `cells` counts those of a grid with their twins, refused ones not among them. `part` is None, or how many
    trials are in the part that is planned: all but `factors`, `cells`, `total` and `refused` is of it alone.
    """

    study: str
    title: str
    factors: Mapping[str, tuple[Level, ...]]
    cells: int
    trials: tuple[PlannedTrial, ...]
    total: int
    part: int | None
    counts: Mapping[str, int]  # of the outcomes in the store, by status
    left: int  # those to run, which in a grid pruned and weightless ones are too
    weightless: int  # done ones whose weights the study keeps and the store has not
    models: tuple[ModelCost, ...]
    estimate: Estimate
    longest_s: float  # of the trial to run that takes longest, 0 where nothing is known
    ceilings: tuple[Ceiling, ...]
    refused: tuple[Refused, ...]


def plan(study: Study, store: Store, only: Collection[str] | None = None) -> Plan:
    """The plan of a study, or of those trials of a grid, against a store; loads neither torch nor Ray."""
    outcomes = store.trials()
    return _search_plan(study, outcomes) if study.search else _grid_plan(study, store, outcomes, only)


def _grid_plan(study: Study, store: Store, outcomes: pl.DataFrame, only: Collection[str] | None) -> Plan:
    """The plan of a grid, whose trials are all known."""
    trials = [trial for trial in study.trials() if only is None or trial.id in only]
    estimator = Estimator(outcomes, study.trials())
    statuses: dict[str, Status] = dict(outcomes.select("trial", "status").iter_rows())
    planned = tuple(
        PlannedTrial(trial=trial, status=statuses.get(trial.id, "missing"), estimate=estimator.of(trial))
        for trial in trials
    )
    bare = set(weightless(study, store, statuses)) & {trial.id for trial in trials}
    left = [one.estimate for one in planned if one.status in ("missing", "pruned") or one.trial.id in bare]
    return Plan(
        study=study.name,
        title=study.title,
        factors=study.factors,
        cells=len(study.asked) // len(study.seeds),
        trials=planned,
        total=len(study.trials()),
        part=None if only is None else len(planned),
        counts=Counter(one.status for one in planned if one.status != "missing"),
        left=len(left),
        weightless=len(bare),
        models=_models(_label_names(study), planned, study.sized),
        estimate=together(left),
        longest_s=max((one.seconds or 0.0 for one in left), default=0.0),
        ceilings=predict((_label(_label_names(study), trial), trial.settings) for trial in trials),
        refused=_refused(study, study.refused),
    )


def _search_plan(study: Study, outcomes: pl.DataFrame) -> Plan:
    """The plan of a search: its outcomes so far, and the first and last of everything that it can choose."""
    assert study.search is not None
    own = outcomes.filter(pl.col("study") == study.name)
    bounds = [{name: ends(found)[place] for name, found in study.dimensions.items()} for place in (0, -1)]
    trials = [study.trial_for(values, study.seeds[0]) for values in bounds]
    estimator, total = Estimator(outcomes, trials), study.search.trials * len(study.seeds)
    left = max(0, total - len(own))
    each = max((estimator.of(trial) for trial in trials), key=lambda one: one.seconds or 0.0)
    if seconds := own.filter(pl.col("status") == "done")["seconds"].to_list():
        each = Estimate(fmean(seconds), "measured")
    planned = [PlannedTrial(trial=one, status="missing", estimate=estimator.of(one)) for one in trials]
    return Plan(
        study=study.name,
        title=study.title,
        factors=study.factors,
        cells=0,
        trials=(),
        total=total,
        part=None,
        counts=Counter(own["status"]),
        left=left,
        weightless=0,
        models=_models(list(study.dimensions), planned, {}),
        estimate=together([each] * left),
        longest_s=each.seconds or 0.0,
        ceilings=predict((_label(list(study.dimensions), trial), trial.settings) for trial in trials),
        refused=(),
    )


def _models(
    names: Sequence[str], planned: Iterable[PlannedTrial], sized: Mapping[str, Sized]
) -> tuple[ModelCost, ...]:
    """What each distinct model costs, in the order of its first trial."""
    groups = _by_model((one.trial.settings, one) for one in planned)
    return tuple(_model_cost(_label(names, found[0].trial), found, sized) for found in groups)


def _refused(study: Study, trials: Iterable[Trial]) -> tuple[Refused, ...]:
    """The distinct models of trials that are over the budget, each at the largest vocabulary that it has."""
    names = _label_names(study)
    return tuple(
        Refused(
            label=_label(names, found[0]),
            recipe=found[0].settings.model.recipe,
            trials=len(found),
            parameters=max(cost(trial.settings, TOKENS).parameters for trial in found),
            step_flops=max(step_flops(trial.settings) for trial in found),
            excess=study.budget.excess(
                max(found, key=lambda trial: study.budget.load(trial.settings)).settings
            ),
        )
        for found in _by_model((trial.settings, trial) for trial in trials)
    )


def _by_model(pairs: Iterable[tuple[Settings, Kept]]) -> list[list[Kept]]:
    """What has the same model together, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Kept]] = {}
    for settings, kept in pairs:
        groups.setdefault(tuple(getattr(settings.model, key) for key in SIZES), []).append(kept)
    return list(groups.values())


def _model_cost(label: str, planned: Sequence[PlannedTrial], sized: Mapping[str, Sized]) -> ModelCost:
    """What the one model of these trials costs."""
    sizes = [sized[one.trial.id] for one in planned if one.trial.id in sized]
    all_settings = [one.trial.settings for one in planned]
    whole = together(one.estimate for one in planned)
    return ModelCost(
        label=label,
        recipe=all_settings[0].model.recipe,
        trials=len(planned),
        parameters=max(cost(settings, TOKENS).parameters for settings in all_settings),
        step_flops=max(map(step_flops, all_settings)),
        estimate=Estimate(None if whole.seconds is None else whole.seconds / len(planned), whole.basis),
        sized=max(sizes, key=lambda one: (abs(one.residual), one.target), default=None),
    )


def _label_names(study: Study) -> list[str]:
    """The factors of several levels that make the models of a study differ."""
    names = {name for path in _MODEL for name in study.template.names_at(path, study.factors)}
    return [name for name, levels in study.factors.items() if name in names and len(levels) > 1]


def _label(names: Sequence[str], trial: Trial) -> str:
    """A model by its levels, or by its recipe where a study has no other; a text speaks for itself.

    Dimensions that a search point does not take have no level.
    """
    names = [name for name in names if name in trial.levels]
    if len(names) == 1 and isinstance(trial.levels[names[0]], str):
        return level_name(trial.levels[names[0]])
    return (
        ", ".join(f"{name}={level_name(trial.levels[name])}" for name in names) or trial.settings.model.recipe
    )
