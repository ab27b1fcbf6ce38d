"""The model of a trial: built from its settings and what its task asks, and what a step of it costs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from ...blocks import Model, build
from ...blocks.models.seq2seq_model import TransductionModel
from ...grammar import analyse_framed
from ...studies.catalog.tasks import ModelInterface
from ...studies.resolve.costs import frame
from ...studies.schema.settings import ModelSettings, read_recipe

AnyModel = Model | TransductionModel
"""A model of one sequence, or of a source and a target."""


def build_model(model: ModelSettings, interface: ModelInterface, generator: torch.Generator) -> AnyModel:
    """The model on a CPU, its weights drawn from the generator."""
    around: dict[str, Any] = asdict(frame(model, interface))
    return build(model.recipe, generator=generator, **around)


def sequence_flops(model: ModelSettings, interface: ModelInterface, *, tokens: int, past: int) -> int:
    """Operations of a training step on one sequence, forward and backward."""
    return analyse_framed(read_recipe(model.recipe), frame(model, interface), tokens, past).training_flops
