"""Build a trial's model from its settings, count its FLOPs, and set up activation checkpointing."""

from __future__ import annotations

import logging
from functools import lru_cache

import torch

from ...blocks import Model, build
from ...blocks.core.residual_stack import outermost_stacks
from ...blocks.models.seq2seq_model import TransductionModel
from ...blocks.models.sequence_model import build_on_meta
from ...grammar import ModelConfig, analyse
from ...studies.catalog.tasks import ModelInterface
from ...studies.resolve.costs import model_config
from ...studies.schema.settings import ModelSettings, TrialSettings, read_recipe

AnyModel = Model | TransductionModel
"""A model of one sequence, or of a source and a target."""


def build_model(model: ModelSettings, interface: ModelInterface, generator: torch.Generator) -> AnyModel:
    """Return the model on the CPU, with weights initialised from the generator."""
    return build(model.recipe, model_config(model, interface), generator=generator)


def meta_model(settings: TrialSettings) -> AnyModel:
    """Return a trial's model on the meta device: names and shapes without memory."""
    return build_on_meta(settings.model.recipe, model_config(settings.model, settings.task.interface))


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """Return an autocast context that is enabled for bf16 precision."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


def sequence_flops(model: ModelSettings, interface: ModelInterface, *, tokens: int, past: int) -> int:
    """Return the FLOPs of one training step on one sequence, forward and backward."""
    return _training_flops(model.recipe, model_config(model, interface), tokens, past)


@lru_cache(maxsize=4096)
def _training_flops(recipe: str, config: ModelConfig, tokens: int, past: int) -> int:
    return analyse(read_recipe(recipe), config, length=tokens, past=past).training_flops


_warned = set[str]()

_log = logging.getLogger(__name__)


def checkpoint_activations(model: AnyModel, settings: TrialSettings) -> None:
    """Make a model keep only the inputs of its sub-layers for the backward pass.

    Warn once if a sub-layer does not allow it.
    """
    if (fault := checkpointing_fault(settings, model)) is None:
        for stack in outermost_stacks(model):
            stack.checkpoints = True
    elif fault not in _warned:
        _warned.add(fault)
        _log.warning("all activations are kept: %s", fault)


def checkpointing_fault(settings: TrialSettings, model: AnyModel) -> str | None:
    """Return why a trial's model cannot use activation checkpointing, or None if it can."""
    if settings.train.compile:
        return "its model is compiled ([train] compile)"
    if not any(outermost_stacks(model)):
        return f"{settings.model.recipe} has no residual stack"
    return None
