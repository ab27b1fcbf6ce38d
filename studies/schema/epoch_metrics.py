"""Which metrics a trial has: those after each of its epochs, and those after the last alone."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.callbacks import CALLBACKS
from ..catalog.metrics import METRICS
from ..catalog.tasks import (
    AlgorithmicSettings,
    GeneratedTask,
    LabelledSettings,
    LanguageModelSettings,
    TaskKind,
)
from .settings import TrialSettings


def epoch_metrics(settings: TrialSettings) -> tuple[str, ...]:
    """Their names, without those of which an epoch may have none and those that depend on the machine."""
    kind = settings.task.spec.kind
    registered = (
        name
        for name, metric in METRICS.items()
        if metric.measure is not None and kind in metric.kinds and metric.split in ("", "dev")
    )
    return ("loss", *_measured(settings), *_of_objective(settings), *registered)


def final_metrics(settings: TrialSettings) -> tuple[str, ...]:
    """All that a trial may have at its end."""
    added = (name for each in settings.train.callbacks for name in sorted(CALLBACKS[each.name].metrics))
    best = ("best_epoch",) if settings.train.keep == "best" else ()
    others = (*settings.train.measure, "tokens_per_s", *best, *added, *last_metrics(settings))
    return tuple(dict.fromkeys((*epoch_metrics(settings), *others)))


def last_metrics(settings: TrialSettings) -> tuple[str, ...]:
    """Those of which only the last epoch has any: of the test split, of outputs, of a task that is solved."""
    task, kind = settings.task, settings.task.spec.kind
    if isinstance(task, AlgorithmicSettings):
        return ("test_loss", "test_accuracy", "test_exact") if task.test_lengths else ()
    if kind is TaskKind.REGRESSION and not isinstance(task, GeneratedTask | LabelledSettings):
        return ("solved_epochs",)
    scored = [name for name in epoch_metrics(settings) if name.startswith("dev_")]
    found = [f"test_{name.removeprefix('dev_')}" for name in scored]
    if isinstance(task, LabelledSettings) and task.corpus.classes is None:
        found += ["dev_r2", "test_r2"]
    if kind is TaskKind.TRANSDUCTION:
        found += ["bleu", "test_exact", "f1", "f1_of_all", "precision", "recall", "tree_share"]
    return tuple(found)


def _measured(settings: TrialSettings) -> Iterator[str]:
    """Those that [train] asks for; what callbacks report they may leave out in any epoch."""
    yield from (name for name in settings.train.measure if name != "gradient_noise")
    yield from (each.name for each in settings.train.loss_terms)


def _of_objective(settings: TrialSettings) -> tuple[str, ...]:
    """Those of the kind of task."""
    task = settings.task
    if isinstance(task, AlgorithmicSettings):
        grows = settings.train.lengths is None
        return ("accuracy", "length", "max_length") if grows else ("dev_loss", "dev_accuracy", "dev_exact")
    if isinstance(task, LanguageModelSettings):
        words = ("dev_perplexity", "dev_perplexity_without_ends")
        scored = ("dev_bpc",) if task.tokens == "characters" else words
        return ("dev_loss", *scored, *(() if task.batching == "stream" else ("dev_loss_padded",)))
    if isinstance(task, GeneratedTask):
        return _of_examples(task)
    if isinstance(task, LabelledSettings):
        classes = ("dev_loss", "dev_accuracy", "dev_macro_f1", "dev_ece")
        return classes if task.corpus.classes is not None else ("dev_loss", "dev_mae")
    if task.spec.kind is TaskKind.REGRESSION:
        return ("accuracy", "best_accuracy")
    return ("dev_loss", "dev_perplexity", "dev_accuracy")


def _of_examples(task: GeneratedTask) -> tuple[str, ...]:
    """Those of a task that draws its examples."""
    if task.spec.kind is TaskKind.REGRESSION:
        return ("dev_loss",)
    scaled = () if task.chance is None else ("dev_scaled_accuracy",)
    return ("dev_loss", "dev_accuracy", "dev_exact", *scaled)
