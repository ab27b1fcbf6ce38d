"""The model of a trial: built from its settings and what its task asks, and what a step of it costs."""

from __future__ import annotations

from typing import Any

import torch

from ..blocks import Model, build
from ..grammar import analyse
from ..studies.demands import Demand
from ..studies.settings import ModelSettings


def build_model(model: ModelSettings, demand: Demand, generator: torch.Generator) -> Model:
    """The model on a CPU, its weights drawn from the generator."""
    built = build(model.recipe, generator=generator, **_frame(model, demand))
    assert isinstance(built, Model), f"{model.recipe} reads one sequence and writes another"
    return built


def sequence_flops(model: ModelSettings, demand: Demand, *, tokens: int, past: int) -> int:
    """Operations of a training step on one sequence, forward and backward."""
    return analyse(model.recipe, length=tokens, past=past, **_frame(model, demand)).training_flops


def _frame(model: ModelSettings, demand: Demand) -> dict[str, Any]:
    """What stands around the body, as `build` and `analyse` take it."""
    settings = model.model_dump(exclude={"recipe"})
    asked = {"vocab": demand.vocab, "columns": demand.columns, "targets": demand.targets}
    return {**settings, **asked, "causal": demand.causal}
