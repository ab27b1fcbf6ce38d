"""A study's plan: stored trials, costs of the others, and models that cannot learn their task."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from statistics import fmean
from typing import Any, Literal

import polars as pl

from ..errors import replace_unprintable
from ..grammar.nodes import RepeatNode
from ..grammar.positions import POSITIONS, LearnedPosition, PluginPosition
from ..storage import Store
from .catalog.tasks import AlgorithmicTask, GeneratedTask
from .plan_notes import PlanNote, plan_notes
from .plan_text import format_plan
from .planning.data_facts import Locate
from .planning.memory_estimates import StepMemory, last_state_bytes, step_memory
from .planning.status import (
    count_points,
    outcomes_elsewhere,
    rungs_of,
    stored_outcomes,
    study_outcomes,
    unfinished_of,
)
from .planning.time_estimates import MeasureSteps, TimeEstimate, TimeEstimator, total_time
from .planning.trials_to_run import (
    EarlierTrial,
    EarlierTrials,
    keeps_last_state,
    left_within_budget,
    own_costs,
    trials_missing_weights,
    trials_to_run,
)
from .presentation.changes import BASELINE, change_name
from .resolve.costs import (
    SizeMatch,
    longest_length,
    longest_tokens,
    max_learnable_length,
    max_trial_flops,
    parameter_count,
    reach,
    step_flops,
)
from .resolve.data_fit import as_long_as_data
from .resolve.grid import check_layers, factors_of_sizes
from .resolve.trial import Kind, Trial, first_of_each_kind
from .schema.design import Design
from .schema.factors import ABSENT, SEED, as_list, filled_levels, level_key, level_name
from .schema.settings import TrialSettings, read_recipe
from .study import Study
from .text.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachLimit:
    """The longest length that models with the same reach can learn in each task.

    `labels` names the models. Reach is how many tokens to the left and right can change an output. A length
    is 0 if none can be learnt; `left` and `right` are in tokens, None if a side sets no bound. `layers` is
    None if a recipe is not a single repeat.
    """

    labels: tuple[str, ...]
    layers: int | None
    left: int | None
    right: int | None
    max_lengths: Mapping[str, int]

    def __str__(self) -> str:
        """Return one sentence: `conv(k=20) on remember: 4 layers reach 36 to the left, so no length …`."""
        sides = ((self.left, "left"), (self.right, "right"))
        far = " and ".join(f"{tokens} to the {side}" for tokens, side in sides if tokens is not None)
        does = "they reach" if len(self.labels) > 1 else "it reaches"
        if self.layers:
            does = f"{self.layers} layer{'s reach' if self.layers > 1 else ' reaches'}"
        one = next(iter(self.max_lengths)) if len(self.max_lengths) == 1 else None
        where = f" on {one}" if one else ""
        of_tasks = ", ".join(f"{length} on {task}" for task, length in self.max_lengths.items())
        bound = self.max_lengths[one] if one else of_tasks
        return f"{_listed(self.labels)}{where}: {does} {far}, so no length beyond {bound} can be learnt"


@dataclass(frozen=True, slots=True, kw_only=True)
class InsufficientReach:
    """Models that see too little to solve a task of fixed length.

    `labels` names the models. `sees` and `needs` are in tokens to the left and right; `needs` is None on a
    side with enough reach.
    """

    labels: tuple[str, ...]
    task: str
    sees: tuple[float, float]
    needs: tuple[float | None, float | None]

    def __str__(self) -> str:
        """Return a sentence: `conv(k=3) on mqar: it reaches 2 to the left, and a target can depend on 62`."""
        sides = [
            f"{sees:g} to the {side}, and a target can depend on {needs:g}"
            for sees, needs, side in zip(self.sees, self.needs, ("left", "right"), strict=True)
            if needs is not None
        ]
        verb = "they reach" if len(self.labels) > 1 else "it reaches"
        return f"{_listed(self.labels)} on {self.task}: {verb} {'; '.join(sides)}"


def _listed(labels: Sequence[str]) -> str:
    return ("; " if any(", " in label for label in labels) else ", ").join(labels)


def _find_insufficient_reach(labelled: Iterable[tuple[str, TrialSettings]]) -> tuple[InsufficientReach, ...]:
    """Return the models that see too little to solve their task, unless its required reach is unknown."""
    found: dict[tuple[str, tuple[float, float], tuple[float | None, float | None]], dict[str, None]] = {}
    for label, settings in labelled:
        task = settings.task
        needed = task.required_reach if isinstance(task, GeneratedTask) else None
        if needed is None:
            continue
        sees = reach(settings)
        left = needed.left if needed.left > sees.left else None
        right = needed.right if needed.right > sees.right else None
        if left is not None or right is not None:
            found.setdefault((task.name, (sees.left, sees.right), (left, right)), {})[label] = None
    return tuple(
        InsufficientReach(labels=tuple(labels), task=task, sees=sees, needs=needs)
        for (task, sees, needs), labels in found.items()
    )


def predict_reach_limits(
    labelled: Sequence[tuple[str, TrialSettings]],
) -> tuple[ReachLimit | InsufficientReach, ...]:
    """Return the longest length that each model can learn, or its fixed task, if its reach limits it.

    Models with equal limits share a result. `labelled` has the label and the settings of each model.
    """
    limits: dict[str, ReachLimit] = {}
    for label, settings in labelled:
        task = settings.task.spec
        if not isinstance(task, AlgorithmicTask):
            continue
        bound = max_learnable_length(settings)
        if bound is None or bound >= longest_length(settings):
            continue
        sees, next_length = reach(settings), bound + task.length_step if bound else task.min_length
        needed = task.unguessable_reach(next_length)
        left = int(sees.left) if needed.left > sees.left else None
        right = int(sees.right) if needed.right > sees.right else None
        root = read_recipe(settings.model.recipe).root
        known = limits.get(label)
        limits[label] = ReachLimit(
            labels=(label,),
            layers=root.count if isinstance(root, RepeatNode) and isinstance(root.count, int) else None,
            left=known.left if known and known.left is not None else left,
            right=known.right if known and known.right is not None else right,
            max_lengths={**(known.max_lengths if known else {}), settings.task.name: bound},
        )
    merged: dict[tuple[object, ...], ReachLimit] = {}
    for limit in limits.values():
        key = (limit.layers, limit.left, limit.right, tuple(limit.max_lengths.items()))
        labels = merged[key].labels if key in merged else ()
        merged[key] = replace(limit, labels=(*labels, *limit.labels))
    return (*merged.values(), *_find_insufficient_reach(labelled))


SIZE_KEYS = (
    *("recipe", "d_model", "norm", "residual", "tied", "tied_bias", "output_bias"),
    *("cutoffs", "project_first_cluster", "norm_kind"),
)
"""The [model] keys that determine parameters and FLOPs, except positions, which few models learn."""

_SIZE_PATHS = tuple(("model", key) for key in SIZE_KEYS)
_POSITION_PATHS = (("model", "position"), ("model", "max_positions"))

TrialStatus = Literal["done", "failed", "pruned", "incomplete", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A trial with its status in the store and its estimated training time.

    `resumed_from` is the earlier trial from which it continues, if there is one; `not_resumed` says why a
    shorter one in the store cannot be continued. `share_left` is the share of its cost that a run still has;
    None if a run skips it.
    """

    trial: Trial
    status: TrialStatus
    estimate: TimeEstimate
    resumed_from: EarlierTrial | None
    not_resumed: str
    share_left: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """A model of the study, with its number of trials and its cost.

    `at` names the level, such as the task, at which `match` solved the model's size; it is "" if the size is
    the same at all levels.

    Costs are those of its most expensive trial, such as the one with the largest batch. `step_flops` counts a
    training step on sequences of the task's length, or of REFERENCE_TOKENS tokens if the length grows.
    `parameters_at`, `flops_at` and `memory_at` have the levels of that trial if other trials cost less, as in
    `tokens=pretrained`. `memory` is the peak memory of a step, None for a model over the budget. `estimate`
    is its trials' mean time; `excess` names the costs that exceed the budget.
    """

    label: str
    at: str
    recipe: str
    trials: int
    parameters: int
    parameters_at: str
    step_flops: int
    flops_at: str
    memory: int | None
    memory_at: str
    estimate: TimeEstimate
    excess: str
    size_match: SizeMatch | None


_FIRST = ("ladder", "in all", "data", "warning", "where", "bf16")
"""The labels of the notes that come first, in this order, whoever added them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """Everything known about a study before it runs: facts, and notes on them.

    `activemem study plan` prints it as text. `estimate` is the time of all remaining trials, run in sequence.
    A search has no trials yet: `total` is the number of trials that it will run, `models` are the corners of
    its space. `subset_size` counts the trials of the selected subset, if any; then all but `total` and
    `over_budget` describe the subset.
    """

    study: Study
    trials: tuple[PlannedTrial, ...]
    total: int
    subset_size: int | None
    counts: Mapping[str, int]  # the number of stored outcomes, by status
    left: int  # trials to run; in a grid also pruned and incomplete ones, and those without weights
    num_missing_weights: int  # done trials whose weights the study keeps but the store lacks
    models: tuple[ModelCost, ...]
    estimate: TimeEstimate
    memory: tuple[str, StepMemory] | None  # the model whose step needs the most memory, by its label
    max_trial_s: float  # the time of the longest trial to run, 0 if unknown
    reach_limits: tuple[ReachLimit | InsufficientReach, ...]
    over_budget: tuple[ModelCost, ...]
    flops: float  # an upper bound for all remaining trials
    last_states: int  # the bytes of the last states that the store keeps once all trials are done; about
    notes: tuple[PlanNote, ...] = ()

    @property
    def resumed_from(self) -> Mapping[str, EarlierTrial]:
        """The earlier trials from which trials continue, by the id of the later one."""
        return {each.trial.id: each.resumed_from for each in self.trials if each.resumed_from is not None}

    def with_notes(self, notes: Iterable[tuple[str, str]]) -> Plan:
        """Return a copy with these notes, pairs of a label and a text. Empty ones are left out.

        A note on the time "in all" replaces that of the plan.
        """
        added = [PlanNote(label=label, text=text) for label, text in notes if text]
        is_timed = any(each.label == "in all" for each in added)
        known = [each for each in self.notes if not (is_timed and each.label == "in all")]
        order = {label: place for place, label in enumerate(_FIRST)}
        found = sorted((*known, *added), key=lambda each: order.get(each.label, len(order)))
        return replace(self, notes=tuple(found))

    def __str__(self) -> str:
        return format_plan(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(replace_unprintable(str(self)))}</pre>"

    def __repr__(self) -> str:
        stored, left = sum(self.counts.values()), self.left
        return f"<Plan: {plural(self.total, 'trial')}, {stored:,} in the store, {left:,} to run>"


def make_plan(
    study: Study,
    store: Store,
    only: Collection[str] | None = None,
    *,
    memory: Callable[[TrialSettings], StepMemory] | None = step_memory,
    measure: MeasureSteps | None = None,
    locate: Locate = lambda dataset: "part of activemem" if dataset.installed else dataset.source,
) -> Plan:
    """Make the plan of a study, given the trials in a store.

    `only` restricts the plan of a grid to the trials with these ids. Neither torch nor Ray is loaded.

    `memory` estimates a step: callers that can count optimiser state pass their own function, and callers
    that show no memory pass None, which saves most of the time. `measure` measures the time of some steps if
    the store has no speed. `locate` says where a corpus is.
    """
    selected = [each for each in study.trials if only is None or each.id in only]
    check_layers(study, study.examples if study.search else selected)
    outcomes = store.trials(first=[study.name]) if study.search else stored_outcomes(store, study)
    elsewhere = outcomes_elsewhere(study, outcomes)
    tried = study_outcomes(study, outcomes)
    if study.search and study.search.settings.warm_start:
        tried = pl.concat([tried, elsewhere])
    statuses: dict[str, TrialStatus] = dict(tried.select("trial", "status").iter_rows())
    estimator = TimeEstimator(outcomes, study.examples, measure)
    trials = study.search.trials_at_ends(within_limits=True) if study.search else selected
    ids = {trial.id for trial in trials}
    if study.search:
        planned = ()
        counts = Counter[str](statuses.values())
        times = remaining_search_times(study, store, tried, estimator)
        flops = remaining_search_flops(trials, len(times))
    else:
        to_run = trials_to_run(study, store, statuses, only=ids)
        planned = _plan_trials(store, selected, {each.id for each in to_run}, statuses, estimator)
        counts = Counter[str](one.status for one in planned if one.status != "missing")
        times = [one.estimate for one in planned if one.share_left is not None]
        flops = _flops_left(planned)
    kinds, groups = first_of_each_kind(trials), group_by_model(study, trials)
    steps = dict[str, StepMemory]()
    if memory is not None:
        costliest = [each for group in groups for each in _costliest(group)]
        steps = {each.id: memory(as_long_as_data(each.settings, study.own_corpus)) for each in costliest}
    measured = [trial for trial in kinds if trial.id in steps]
    largest = max(measured, key=lambda trial: steps[trial.id].total, default=None)
    label = model_labeller(study)
    labelled = [(label(trial), trial.settings) for trial in kinds]
    plan = Plan(
        study=study,
        trials=planned,
        total=study.total,
        subset_size=None if only is None else len(planned),
        counts=counts,
        left=len(times),
        num_missing_weights=len(ids.intersection(trials_missing_weights(study, store, statuses))),
        models=model_costs(study, groups, estimator, steps),
        estimate=total_time(times),
        memory=None if largest is None else (label(largest), steps[largest.id]),
        max_trial_s=max((one.seconds or 0.0 for one in times), default=0.0),
        reach_limits=predict_reach_limits(labelled),
        over_budget=model_costs(study, group_by_model(study, study.over_budget), estimator, {}),
        flops=flops,
        last_states=_last_states(study, selected if study.search is None else trials),
    )
    counted = count_points(study, elsewhere)
    notes = plan_notes(plan, store, outcomes, elsewhere=counted, labelled=labelled, locate=locate)
    return plan.with_notes(notes)


def _plan_trials(
    store: Store,
    selected: Iterable[Trial],
    to_run: set[str],
    statuses: Mapping[str, TrialStatus],
    estimator: TimeEstimator,
) -> tuple[PlannedTrial, ...]:
    """Return the selected trials of a grid, of which a run trains those `to_run`."""
    finished, unbegun = EarlierTrials(store), to_run - store.files.trials_with_checkpoint(to_run)
    planned = list[PlannedTrial]()
    for trial in selected:
        earlier = finished.find(trial) if trial.id in unbegun else None  # one that has begun continues itself
        share = 1.0 if earlier is None else earlier.share_left(trial.settings)
        begins = trial.id in unbegun and earlier is None
        planned.append(
            PlannedTrial(
                trial=trial,
                status=statuses.get(trial.id, "missing"),
                estimate=estimator.estimate(trial).scaled(share),
                resumed_from=earlier,
                not_resumed=finished.why_not(trial) if begins else "",
                share_left=share if trial.id in to_run else None,
            )
        )
    return tuple(planned)


def _flops_left(planned: Iterable[PlannedTrial]) -> float:
    """Return an upper bound of the FLOPs that a run of a grid's trials takes."""
    left = defaultdict[Kind, float](float)
    for one in planned:
        if one.share_left is not None:
            left[Kind(one.trial.common)] += one.share_left
    return sum(count * max_trial_flops(kind.settings) for kind, count in left.items())


def _last_states(study: Study, trials: Sequence[Trial]) -> int:
    """Return about how many bytes the last states of a grid's trials take, or at most, those of a search.

    `trials` are those of the grid, or at the ends of the search's space.
    """
    sizes = Counter[Kind]()
    for trial in trials:
        if keeps_last_state(study, trial.common):
            sizes[Kind(trial.common)] += 1
    states = {kind: last_state_bytes(kind.settings) for kind in sizes}
    if study.search:
        return study.total * max(states.values(), default=0)
    return sum(states[kind] * count for kind, count in sizes.items())


def _costliest(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of one model, one of each kind, whose training step may need the most memory.

    Some trials differ only in the length and in the size of the vocabulary. Such a trial is left out if
    another one is at least as large in both.
    """
    alike: dict[object, dict[tuple[int, int], Trial]] = {}
    for trial in first_of_each_kind(trials):
        task, others = trial.common.task, (trial.common.model, trial.common.train)
        interface = task.interface.model.model_copy(update={"vocab": None})
        sizes = (task.spec.kind, interface, task.interface.past, getattr(task, "separate_documents", False))
        key = (*(each.model_dump_json() for each in others), *sizes)
        size = (longest_tokens(trial.common), task.interface.model.vocab or 0)
        alike.setdefault(key, {})[size] = trial
    return [
        trial
        for each in alike.values()
        for size, trial in each.items()
        if not any(size != other and size[0] <= other[0] and size[1] <= other[1] for other in each)
    ]


def remaining_search_flops(ends: Sequence[Trial], left: int) -> float:
    """Return an upper bound of the FLOPs of the `left` remaining trials of a search.

    Each of them counts as the costliest one at an end of the search space (`ends`).
    """
    return left * max((max_trial_flops(trial.settings) for trial in first_of_each_kind(ends)), default=0.0)


def remaining_search_times(
    study: Study, store: Store, tried: pl.DataFrame, estimator: TimeEstimator
) -> list[TimeEstimate]:
    """Return the estimated time of each remaining trial of a search, given its outcomes.

    After the budget is spent, only the trials of points that have started remain. The baseline's trials are
    counted separately, because a new baseline is trained even after all other points have ended.
    """
    search = study.search
    assert search is not None, "only a search has rungs"
    baseline = [trial.id for trial in search.baseline_trials]
    ended = tried.filter(pl.col("status") != "incomplete")["trial"].to_list()
    remaining = len(set(baseline) - set(ended))
    rungs, found = rungs_of(study, tried), list[TimeEstimate]()
    for rung, trials in enumerate(search.trials_by_rung):
        is_last = rung == search.rungs.top
        rows = own_costs(tried).filter(pl.Series([each == rung for each in rungs], dtype=pl.Boolean))
        # the mean time of done trials, else the time of the slower end of the search space
        if seconds := rows.filter(pl.col("status") == "done")["seconds"].to_list():
            one = TimeEstimate(fmean(seconds), "measured")
        else:
            ends = map(estimator.estimate, search.trials_at_ends(rung, within_limits=True))
            one = max(ends, key=lambda each: each.seconds or 0.0)
        own = baseline if is_last else []
        others = rows.filter((pl.col("status") != "incomplete") & ~pl.col("trial").is_in(own))
        found += [one] * (max(0, trials - len(own) - len(others)) + (remaining if is_last else 0))
    unfinished = unfinished_of(study, store, tried["trial"].to_list())
    return found[: left_within_budget(search, tried, unfinished)]


def group_by_model(study: Study, trials: Iterable[Trial]) -> list[list[Trial]]:
    """Group trials by model.

    A model has the position of its first trial. If `match` solves other sizes at other levels of a factor
    such as the task, a model has a group at each.
    """
    groups: dict[tuple[object, ...], list[Trial]] = {}
    group_by_settings: dict[int, list[Trial]] = {}  # the trials of a cell share their settings
    apart = factors_of_sizes(study)
    for trial in trials:
        if id(trial.common) not in group_by_settings:
            sizes = (getattr(trial.common.model, name) for name in SIZE_KEYS)
            levels = (level_key(trial.levels[name]) for name in apart if name in trial.levels)
            key = (*sizes, _learned_positions(trial), *levels)
            group_by_settings[id(trial.common)] = groups.setdefault(key, [])
        group_by_settings[id(trial.common)].append(trial)
    return list(groups.values())


def _learned_positions(trial: Trial) -> tuple[str, int] | None:
    model = trial.common.model
    learns = isinstance(POSITIONS[model.position], LearnedPosition | PluginPosition)
    return (model.position, model.max_positions) if learns else None


def model_costs(
    study: Study, groups: Sequence[Sequence[Trial]], estimator: TimeEstimator, steps: Mapping[str, StepMemory]
) -> tuple[ModelCost, ...]:
    """Return the cost of each group of trials.

    `steps` has the step memory by trial id; without it a model's memory is None.
    """
    label, budget, apart = model_labeller(study), study.budget, factors_of_sizes(study)
    models, sizes = list[ModelCost](), study.size_matches
    for group in groups:
        time = total_time(map(estimator.estimate, group))
        matches = [sizes[trial.id] for trial in group if trial.id in sizes]
        kinds = first_of_each_kind(group)
        settings = [trial.settings for trial in kinds]
        parameters, flops = list(map(parameter_count, settings)), list(map(step_flops, settings))
        measured = [trial for trial in kinds if trial.id in steps]
        memory = [steps[trial.id].total for trial in measured]
        costliest = max(settings, key=budget.excess)
        model = ModelCost(
            label=label(group[0]),
            at=" · ".join(level_name(group[0].levels[name]) for name in apart if name in group[0].levels),
            recipe=costliest.model.recipe,
            trials=len(group),
            parameters=max(parameters),
            parameters_at=_largest_at(kinds, parameters),
            step_flops=max(flops),
            flops_at=_largest_at(kinds, flops),
            memory=max(memory, default=None),
            memory_at=_largest_at(measured, memory),
            estimate=time.scaled(1 / len(group)),
            excess=budget.describe_excess(costliest),
            size_match=max(
                matches,
                key=lambda each: (abs(each.largest.relative_residual), each.largest.target),
                default=None,
            ),
        )
        models.append(model)
    return tuple(models)


def _largest_at(kinds: Sequence[Trial], costs: Sequence[int]) -> str:
    """Return the levels that make a cost of a model largest, such as `tokens=pretrained`, or ""."""
    if not costs:
        return ""
    largest = kinds[costs.index(max(costs))].levels
    differing = [
        {
            name
            for name in largest
            if name != SEED and level_key(trial.levels[name]) != level_key(largest[name])
        }
        for trial, each in zip(kinds, costs, strict=True)
        if each < max(costs)
    ]
    names = set[str]().union(*(names for names in differing if len(names) == min(map(len, differing))))
    return ", ".join(f"{name}={level_name(largest[name])}" for name in largest if name in names)


def solved_sizes(study: Study) -> Iterator[tuple[str, int]]:
    """Yield the label of each model whose size is solved by `match`, and this size."""
    label = model_labeller(study)
    for group in group_by_model(study, study.trials):
        match = study.size_matches.get(group[0].id)
        if match is not None and match.size is not None:
            at = [level_name(group[0].levels[name]) for name in factors_of_sizes(study)]
            yield " · ".join([*at, label(group[0])]), match.size


def design_settings(study: Study) -> Iterator[tuple[str, list[str]]]:
    """Yield the settings from which a study's cells follow: a name and texts for each.

    They are the keys of [study], [ladder] and [when] in the study file. Then come the values that
    follow from them: the size that `match` solves for each model, and the steps and the learning rate at each
    size of a ladder.
    """
    data, matched = study.document.data, study.design.matched_size
    for table in ("study", "ladder", "when"):
        for key, value in data.get(table, {}).items():
            if key not in ("name", "title", "paper"):
                yield f"{table}.{key}", _value_texts(value)
    if study.header.bounds:
        yield "study.limits", list(map(str, study.header.bounds))
    if matched is not None:
        yield "study.tolerance", [f"{matched.tolerance:g}"]
        yield matched.name, [f"{number} at {label}" for label, number in solved_sizes(study)]
    if study.design.ladder:
        steps, rates = dict[str, None](), dict[str, None]()
        for trial in first_of_each_kind(study.trials):
            train, levels = trial.common.train, filled_levels(trial.levels)
            varied = [name for name in levels if name != SEED and len(study.factors[name]) > 1]
            sizes, cell = (
                ", ".join(f"{name}={level_name(levels[name])}" for name in names)
                for names in (study.design.ladder, varied)
            )
            steps[f"{train.steps_per_epoch} at {cell}"] = None
            rates[f"{train.optimizer.lr:g} at {sizes}"] = None
        yield "train.steps_per_epoch", list(steps)
        if data["ladder"].get("lr_exponent"):
            yield "train.optimizer.lr", list(rates)


def _value_texts(value: Any) -> list[str]:  # noqa: ANN401 -- TOML holds anything
    """Return the value of a key as texts, one for each item of a list or a table."""
    if isinstance(value, Mapping):
        return [f"{name}={_value_text(item)}" for name, item in value.items()]
    return list(map(_value_text, as_list(value)))


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def model_labeller(study: Study) -> Callable[[Trial], str]:
    """Return a function that names the model of a trial in a plan.

    The name is the trial's levels of the factors in `[study] labels`, if there are any. Otherwise it is the
    levels that determine the model; with one change at a time, the change among them.
    """
    names = _label_names(study)
    labels = [name for name in study.design.labels if len(study.factors.get(name, ())) > 1]
    if study.search is None and labels:
        return lambda trial: " · ".join(level_name(trial.levels[name]) for name in labels)
    if study.design.kind == "one_at_a_time":
        return lambda trial: _change_label(study.design, names, trial)
    return lambda trial: _label(names, trial)


def _label_names(study: Study) -> list[str]:
    """Return the factors whose levels distinguish the models of a study."""
    learns = any(map(_learned_positions, first_of_each_kind(study.trials)))
    paths = (*_SIZE_PATHS, *(_POSITION_PATHS if learns else ()))
    names = {name for path in paths for name in study.template.names_at(path, study.factors)}
    if study.search:
        return [*(name for name in study.search.settings.across if name in names), *study.dimensions]
    if study.design.ladder:
        first, *others = study.design.ladder
        sizes = study.design.combined_factors[first]
        names -= {name for name in others if len(set(sizes)) == len(sizes)}
    return [name for name, levels in study.factors.items() if name in names and len(levels) > 1]


def _label(names: Sequence[str], trial: Trial) -> str:
    """Return the name of a trial's model: its levels of these factors, else its recipe."""
    levels = filled_levels(trial.levels)
    names = [name for name in names if name in levels]
    if len(names) == 1 and isinstance(levels[names[0]], str):
        return level_name(levels[names[0]])
    return ", ".join(f"{name}={level_name(levels[name])}" for name in names) or trial.settings.model.recipe


def _change_label(design: Design, names: Sequence[str], trial: Trial) -> str:
    """Return the changes of a trial's model from the baseline: `k = 3`, `− conv(k=7)`, or `baseline`."""
    baseline = filled_levels({name: design.baseline_level(name) for name in design.factors})
    levels = filled_levels(trial.levels)
    changes = [
        change_name(name, baseline[name], levels[name])
        for name in names
        if level_key(trial.levels[name]) not in map(level_key, (design.baseline_level(name), ABSENT))
    ]
    return ", ".join(changes) or BASELINE
