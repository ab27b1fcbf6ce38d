"""Models that recompute activations in the backward pass instead of keeping them."""

from __future__ import annotations

import logging

from ...blocks.core.residual_stack import outermost_stacks
from ...studies.schema.settings import TrialSettings
from ..core.models import AnyModel

_warned = set[str]()

_log = logging.getLogger(__name__)


def checkpoint_activations(model: AnyModel, settings: TrialSettings) -> None:
    """Make a trial's model keep only the inputs of its sub-layers; warn once where one cannot."""
    if (fault := checkpointing_fault(settings, model)) is None:
        for stack in outermost_stacks(model):
            stack.checkpoints = True
    elif fault not in _warned:
        _warned.add(fault)
        _log.warning("all activations are kept: %s", fault)


def checkpointing_fault(settings: TrialSettings, model: AnyModel) -> str | None:
    """Return why a trial's model must keep all its activations; None if it need not."""
    if settings.train.compile:
        return "its model is compiled ([train] compile)"
    if not any(outermost_stacks(model)):
        return f"{settings.model.recipe} has no residual stack"
    return None
