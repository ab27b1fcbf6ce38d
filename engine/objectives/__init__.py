"""What a training works on: one objective for each kind of task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ...studies.catalog.tasks import TaskKind, require_task
from ...studies.schema.settings import TrialSettings
from .base import Metrics, Objective, StepShape
from .language_modelling import LineObjective, StreamObjective
from .regression import RegressionObjective
from .seq2seq import Seq2SeqObjective
from .tagging import TaggingObjective

__all__ = ["Metrics", "Objective", "StepShape", "build_objective"]


def build_objective(settings: TrialSettings, device: torch.device, folder: Path) -> Objective[Any]:
    """The objective of a trial, its data read from `folder`."""
    match require_task(settings.task.name).kind:
        case TaskKind.TAGGING:
            kind = TaggingObjective
        case TaskKind.TRANSDUCTION:
            kind = Seq2SeqObjective
        case TaskKind.LANGUAGE:
            kind = StreamObjective if settings.task.batching == "stream" else LineObjective
        case TaskKind.REGRESSION:
            kind = RegressionObjective
    return kind(settings, device, folder)
