"""Metrics that a trial reports, and why others are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import get_args

from ...grammar.vocabulary.spec import uncounted_kernels
from ..catalog.metrics import (
    COSTS,
    CURRENCIES,
    METRICS,
    METRICS_AND_COSTS,
    MODEL_COSTS,
    TARGETS,
    TUNED_METRICS,
    metric_family,
    read_target,
    unknown_metric,
)
from ..catalog.own_corpora import OwnSequences
from ..catalog.tasks import AlgorithmicSettings, LabelledSettings, TaskKind, TaskSpec
from ..catalog.train_parts import CALLBACKS, LOSS_TERMS
from .settings import GradientMeasure, TrainSettings, TrialSettings, read_recipe


def epoch_metrics(settings: TrialSettings) -> tuple[str, ...]:
    """Return the metrics that a trial reports after every epoch.

    Metrics that may be missing in some epochs, or that depend on the machine, are left out.
    """
    kind = settings.task.spec.kind
    registered = (
        name
        for name, metric in METRICS.items()
        if metric.measure is not None and kind in metric.kinds and metric.split in ("", "dev")
    )
    terms = (each.name for each in settings.train.loss_terms)
    scores = settings.task.epoch_scores(grows=settings.train.lengths is None)
    return ("loss", *settings.train.measure, *terms, *scores, *registered)


def final_metrics(settings: TrialSettings) -> tuple[str, ...]:
    """Return all metrics that a trial may report, after its epochs or at its end."""
    added = (name for each in settings.train.callbacks for name in sorted(CALLBACKS[each.name].metrics))
    best = ("best_epoch",) if settings.train.keep == "best" else ()
    others = ("tokens_per_s", *best, *added, *last_metrics(settings))
    return tuple(dict.fromkeys((*epoch_metrics(settings), *others)))


def last_metrics(settings: TrialSettings) -> tuple[str, ...]:
    """Return the metrics that a trial reports only at its end, such as those on test sets."""
    scored = (name for name in epoch_metrics(settings) if name.startswith("dev_"))
    return settings.task.end_scores(tuple(f"test_{name.removeprefix('dev_')}" for name in scored))


def task_metrics(spec: TaskSpec) -> dict[str, str]:
    """Return the metrics of a task's trials, each with the study-file key that it needs.

    The key is "" if every trial reports the metric. Metrics that are known only from a probe or from the
    user's own corpus are left out.
    """
    trials = _example_trials(spec)
    found = {name: "" for name in final_metrics(trials[0]) if all(_reports(name, each) for each in trials)}
    for name in METRICS:
        ways = (_missing_key(name, each) for each in trials if name not in found and not _reports(name, each))
        if way := next(filter(None, ways), ""):
            found[name] = way
    return found


def _example_trials(spec: TaskSpec) -> list[TrialSettings]:
    """Return example settings of trials with this task, to derive its metrics.

    The settings are not checked. Keys have their default values, or the first option of a required choice. A
    task whose lengths may grow has two examples: one without fixed lengths, and one with them.
    """
    given: dict[str, object] = {}
    for name, field in spec.settings.model_fields.items():
        if field.is_required() and (choices := get_args(field.annotation)):
            given[name] = choices[0]
    if issubclass(spec.settings, LabelledSettings):
        classes = None if spec.kind is TaskKind.REGRESSION else 2
        given["corpus"] = OwnSequences.model_construct(classes=classes)
    task = spec.settings.model_construct(**{**given, "name": spec.name})
    lengths = (None, (1, 1)) if isinstance(task, AlgorithmicSettings) else (None,)
    trains = [TrainSettings.model_construct(lengths=each) for each in lengths]
    return [TrialSettings.model_construct(task=task, train=each) for each in trains]


def missing_metric(name: str, trials: Iterable[TrialSettings]) -> str:
    """Return why none of these trials can have a metric, or "".

    Costs are known of all trials. Probes and tunings measure trained models, whatever their trials report.
    An unknown metric is a separate fault.
    """
    family, trials = metric_family(name), list(trials)
    metric = METRICS_AND_COSTS.get(family)
    if metric is not None and metric.unit == "FLOPs" and (fault := _flops_fault(trials)):
        return fault
    if family in TARGETS:
        return _target_fault(name, trials)
    if family in {*COSTS, *MODEL_COSTS, *TUNED_METRICS} or family not in METRICS or METRICS[family].is_probe:
        return ""
    if any(_reports(name, each) for each in trials) or not trials:
        return ""
    lacking: dict[str, TrialSettings] = {}
    for each in trials:
        lacking.setdefault(each.task.name, each)
    if name != family and any(family in final_metrics(each) for each in lacking.values()):
        return _index_fault(name, family, lacking.values())
    known = dict.fromkeys(metric for each in lacking.values() for metric in final_metrics(each))
    tasks_by_way: dict[str, list[str]] = {}
    for task, each in lacking.items():
        tasks_by_way.setdefault(_missing_key(name, each), []).append(task)
    ways = [
        f"{' and '.join(tasks)} {'has' if len(tasks) == 1 else 'have'} '{name}' only with {way}"
        for way, tasks in tasks_by_way.items()
        if way
    ]
    names = ", ".join(known)
    expected = f"expected a metric of the task {' or '.join(map(repr, lacking))}: {names}; got '{name}'"
    return "; ".join([*ways, f"known: {names}"]) if ways else expected


def _target_fault(name: str, trials: Sequence[TrialSettings]) -> str:
    """Return why no trial can have a target such as `steps_to[loss <= 1]`, or ""."""
    target, family = read_target(name), metric_family(name)
    if target is None:
        return f"expected {family}[METRIC <= NUMBER] or {family}[METRIC >= NUMBER], got '{name}'"
    metric = METRICS.get(target.metric)
    known = dict.fromkeys(each for settings in trials for each in epoch_metrics(settings))
    if metric is None or (trials and target.metric not in known):
        directed = [each for each in known if METRICS[each].higher_is_better is not None]
        late = f"{target.metric} is not measured after each epoch"
        message = unknown_metric(target.metric) if metric is None else late
        return f"{message}; expected a metric measured after each epoch: {', '.join(directed)}"
    if metric.higher_is_better is None:
        return f"expected a metric for which higher or lower is better, got {target.metric}"
    if metric.higher_is_better is target.at_most:
        better, sign = ("higher", ">=") if metric.higher_is_better else ("lower", "<=")
        return f"expected {target.metric} {sign} {target.value:g}, as {better} is better"
    if trials and target.currency != "steps" and all(map(_grows, trials)):
        return f"'{name}' is unknown, because longer sequences cost more in later steps: use steps_to[…]"
    return ""


def course_fault(name: str, axis: str, trials: Iterable[TrialSettings]) -> str:
    """Return why a figure cannot show a metric over the time of training; "" also for any other axis."""
    if axis not in ("epoch", "step", *CURRENCIES.values()):
        return ""
    family, trials = metric_family(name), list(trials)
    known = dict.fromkeys(each for settings in trials for each in epoch_metrics(settings))
    at_end = {"best_epoch", *COSTS, *MODEL_COSTS, *TUNED_METRICS}.union(*map(last_metrics, trials))
    is_probe = family in METRICS and METRICS[family].is_probe
    if not trials or family in known or not (family in at_end or is_probe):
        return ""
    why = f"{name} has only one value for each training, so it has no curve over time"
    return f"{why}; expected a factor as x, or a metric measured after each epoch: {', '.join(known)}"


def spending_fault(axis: str, trials: Iterable[TrialSettings]) -> str:
    """Return why a figure cannot have tokens, FLOPs or seconds as an axis, or "".

    Costs up to a step are known in proportion to the steps, unless all lengths grow.
    """
    known = list(trials)
    if axis == "flops" and (fault := _flops_fault(known)):
        return fault
    if axis not in CURRENCIES.values() or not known or not all(map(_grows, known)):
        return ""
    return f"'{axis}' is unknown, because longer sequences cost more in later steps: use epoch or step"


def _flops_fault(trials: Iterable[TrialSettings]) -> str:
    found = (uncounted_kernels(read_recipe(each.model.recipe).root) for each in trials)
    fault = next(filter(None, found), "")
    return f"{fault}: expected steps, tokens or seconds" if fault else ""


def _grows(settings: TrialSettings) -> bool:
    curriculum = settings.train.curriculum
    return curriculum is not None and settings.train.lengths is None and curriculum.end != curriculum.start


def _reports(name: str, settings: TrialSettings) -> bool:
    """Return whether a trial reports a metric after an epoch or at its end.

    An index, as in `test_loss[40]`, must name one of the trial's test sets. Other metrics with an index have
    titles for it.
    """
    family = metric_family(name)
    index = name.removeprefix(family).strip("[]")
    if family not in final_metrics(settings):
        return False
    if not index:
        return True
    if family.startswith("test_"):
        return index in settings.task.test_set_names
    return bool(METRICS[family].index_titles)


def _index_fault(name: str, family: str, trials: Collection[TrialSettings]) -> str:
    index = name.removeprefix(family).strip("[]")
    trials = trials if family.startswith("test_") else ()
    known = dict.fromkeys(each for settings in trials for each in settings.task.test_set_names)
    expected = f"one of {', '.join(known)}" if known else f"no index, as in {family}"
    has_lengths = any("test_lengths" in type(settings.task).model_fields for settings in trials)
    more = f", or add [task] test_lengths = […, {index}]" if has_lengths and index.isdecimal() else ""
    return f"unknown index '{index}' of {family}: expected {expected}{more}"


def _missing_key(name: str, settings: TrialSettings) -> str:
    family = metric_family(name)
    for way, other in _other_settings(name, settings):
        if _reports(name, other):
            return way
    if family in LOSS_TERMS:
        return f'[[train.loss_terms]] name = "{family}"'
    callbacks = [each for each, entry in CALLBACKS.items() if family in entry.metrics]
    return f'[[train.callbacks]] name = "{callbacks[0]}"' if callbacks else ""


def _other_settings(name: str, settings: TrialSettings) -> Iterator[tuple[str, TrialSettings]]:
    task, train, keys = settings.task, settings.train, type(settings.task).model_fields
    family = metric_family(name)
    index = name.removeprefix(family).strip("[]")
    tasks: list[tuple[str, Mapping[str, object]]] = []
    if "test_lengths" in keys and (not index or index.isdecimal()):
        tasks.append(("[task] test_lengths", {"test_lengths": (int(index or 1),)}))
    for key, values in (("tokens", ("characters", "words")), ("batching", ("sentences",))):
        tasks += [(f'[task] {key} = "{value}"', {key: value}) for value in values if key in keys]
    trains: list[tuple[str, Mapping[str, object]]] = [('[train] keep = "best"', {"keep": "best"})]
    if isinstance(task, AlgorithmicSettings):
        grows = train.lengths is None
        way = "[train] lengths" if grows else "[train.curriculum]"
        trains.append((way, {"lengths": (1, 1) if grows else None}))
    if family in get_args(GradientMeasure):
        trains.append((f'[train] measure = ["{family}"]', {"measure": (family,)}))
    for way, update in tasks:
        yield way, settings.model_copy(update={"task": task.model_copy(update=update)})
    for way, update in trains:
        yield way, settings.with_train(**update)
