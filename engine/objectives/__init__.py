"""One objective for each kind of task: its data, its loss and its metrics.

`base` is their interface. `generated` is for tasks that draw examples, and `regression` for the long-term
problems. `labelled`, `language_modelling` and `seq2seq` read corpora. `text_scores` computes the likelihood
of a text, and `generation` scores a model's outputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ...studies.catalog.tasks import GeneratedTask, LabelledSettings, LanguageModelSettings, TaskKind
from ...studies.schema.settings import TrialSettings
from .base import Objective, Stackable
from .generated import (
    DrawnLengthObjective,
    GrowingLengthObjective,
    NumberExamplesObjective,
    TaggingExamplesObjective,
)
from .labelled import ClassificationObjective, SequenceRegressionObjective
from .language_modelling import LineObjective, PackedObjective, StreamObjective
from .regression import RegressionObjective
from .seq2seq import Seq2SeqObjective

_OBJECTIVES: dict[TaskKind, type[Objective[Any]]] = {
    TaskKind.TRANSDUCTION: Seq2SeqObjective,
    TaskKind.REGRESSION: RegressionObjective,
}

_OF_TEXTS: dict[str, type[Objective[Any]]] = {
    "stream": StreamObjective,
    "packed": PackedObjective,
    "lines": LineObjective,
    "sentences": LineObjective,
}

_OF_LABELS: dict[TaskKind, type[Objective[Any]]] = {
    TaskKind.CLASSIFICATION: ClassificationObjective,
    TaskKind.TOKEN_CLASSIFICATION: ClassificationObjective,
    TaskKind.REGRESSION: SequenceRegressionObjective,
}

_OF_EXAMPLES: dict[TaskKind, type[Objective[Any]]] = {
    TaskKind.TAGGING: TaggingExamplesObjective,
    TaskKind.CAUSAL_TAGGING: TaggingExamplesObjective,
    TaskKind.REGRESSION: NumberExamplesObjective,
}


def build_objective(settings: TrialSettings, device: torch.device, folder: Path) -> Objective[Any]:
    """Build the objective of a trial, which reads its data from `folder`."""
    return objective_class(settings)(settings, device, folder)


def objective_class(settings: TrialSettings) -> type[Objective[Any]]:
    """Return the class of a trial's objective."""
    if isinstance(settings.task, LanguageModelSettings):
        return _OF_TEXTS[settings.task.batching]
    if isinstance(settings.task, GeneratedTask):
        return _OF_EXAMPLES[settings.task.spec.kind]
    if isinstance(settings.task, LabelledSettings):
        return _OF_LABELS[settings.task.spec.kind]
    if settings.task.spec.kind is TaskKind.TAGGING:
        return GrowingLengthObjective if settings.train.lengths is None else DrawnLengthObjective
    return _OBJECTIVES[settings.task.spec.kind]


def has_one_shape(settings: TrialSettings) -> bool:
    """Return whether a trial's objective is Stackable and its batches of one length have the same shape."""
    if isinstance(settings.task, GeneratedTask) and not settings.task.has_one_shape:
        return False
    return issubclass(objective_class(settings), Stackable)
