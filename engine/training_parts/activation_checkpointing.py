"""Which trainings compute activations again in the backward pass, instead of keeping them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch

from ...blocks.core.residual_stack import outermost_stacks
from ...studies.schema.settings import TrialSettings
from ..core.models import AnyModel
from ..core.trainable import Trainable

_log = logging.getLogger(__name__)


class _ModelTraining(Trainable, Protocol):
    """What trains a model."""

    model: AnyModel


def checkpointing_fault(settings: TrialSettings, model: AnyModel) -> str | None:
    """Why the activations of a trial's model are all kept; None if those within sub-layers need not be."""
    if settings.train.compile:
        return "its model is compiled ([train] compile)"
    if not any(outermost_stacks(model)):
        return f"{settings.model.recipe} has no residual stack"
    return None


def checkpoint_activations(model: AnyModel) -> None:
    """Have training keep the inputs of sub-layers alone, and compute the rest again in the backward pass."""
    for stack in outermost_stacks(model):
        stack.checkpoints = True


class CheckpointedTrainings:
    """Makes trainings that keep the inputs of sub-layers alone; each reason why one does not is told once."""

    def __init__(self, make: Callable[[TrialSettings, torch.device, Path], _ModelTraining]) -> None:
        self._make, self._told = make, set[str]()

    def __call__(self, settings: TrialSettings, device: torch.device, data: Path) -> _ModelTraining:
        """A training on this device."""
        training = self._make(settings, device, data)
        if (fault := checkpointing_fault(settings, training.model)) is None:
            checkpoint_activations(training.model)
        elif fault not in self._told:
            self._told.add(fault)
            _log.warning("all activations are kept: %s", fault)
        return training
