"""What a training works on: one objective for each kind of task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ...studies.settings import Settings
from ...studies.tasks import Kind, require_task
from .language import Lines, Streams
from .objective import Load, Metrics, Objective
from .recalling import Recalling
from .tagging import Tagging
from .transduction import Transduction

__all__ = ["Load", "Metrics", "Objective", "objective"]


def objective(settings: Settings, device: torch.device, folder: Path) -> Objective[Any]:
    """The objective of a trial, its data read from `folder`."""
    match require_task(settings.task.name).kind:
        case Kind.TAGGING:
            kind = Tagging
        case Kind.TRANSDUCTION:
            kind = Transduction
        case Kind.LANGUAGE:
            kind = Streams if settings.task.batching == "stream" else Lines
        case Kind.REGRESSION:
            kind = Recalling
    return kind(settings, device, folder)
