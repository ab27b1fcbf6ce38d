"""The objective of a trial, chosen by the kind of its task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ...errors import argument_fault, check_arguments
from ...studies.catalog.tasks import (
    Examples,
    GeneratedTask,
    LabelledSettings,
    LanguageModelSettings,
    TaskKind,
)
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import TrialSettings
from .base import Objective
from .generated import DrawnLengthObjective, GeneratedObjective, GrowingLengthObjective
from .labelled import ClassificationObjective, SequenceRegressionObjective
from .language_modelling import LineObjective, PackedObjective, StreamObjective
from .regression import RegressionObjective
from .seq2seq import Seq2SeqObjective

_OF_TEXTS: dict[str, type[Objective[Any]]] = {
    "stream": StreamObjective,
    "packed": PackedObjective,
    "lines": LineObjective,
    "sentences": LineObjective,
}


def build_objective(settings: TrialSettings, device: torch.device, folder: Path) -> Objective[Any]:
    """Build the objective of a trial. It reads its data from `folder`."""
    return objective_class(settings)(settings, device, folder)


def draw_test_batches(trial: Trial, data: Path | str = "data") -> Iterator[Examples]:
    """Yield the test examples of a trial in batches: inputs, targets, and lengths if they are padded.

    They are the same at each call. A task without a test split has dev examples instead. `data` is the
    folder of the corpora. Raise DataError if the corpus is not there.
    """
    check_arguments(argument_fault("trial", trial, Trial), argument_fault("data", data, (Path, str)))
    return build_objective(trial.settings, torch.device("cpu"), Path(data)).test_batches()


def objective_class(settings: TrialSettings) -> type[Objective[Any]]:
    """Return the class of a trial's objective."""
    task, kind = settings.task, settings.task.spec.kind
    if isinstance(task, LanguageModelSettings):
        return _OF_TEXTS[task.batching]
    if isinstance(task, GeneratedTask):
        return GeneratedObjective
    if isinstance(task, LabelledSettings):
        return SequenceRegressionObjective if kind is TaskKind.REGRESSION else ClassificationObjective
    if kind is TaskKind.TAGGING:
        return GrowingLengthObjective if settings.train.lengths is None else DrawnLengthObjective
    return RegressionObjective if kind is TaskKind.REGRESSION else Seq2SeqObjective
