"""Gradients and steps that are kept small, map by map."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ...blocks.core.weight_roles import find_weights
from ...studies.schema.training import TrainSettings


def move_weights(optimizer: torch.optim.Optimizer, model: nn.Module, train: TrainSettings) -> None:
    """Move the weights of a model by their gradients, both clipped as [train] says."""
    if train.clip_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), train.clip_norm)
    if train.clip_tensor_norm is not None:
        clip_gradients_per_map(model, train.clip_tensor_norm)
    if train.clip_step_norm is None:
        optimizer.step()
    else:
        take_clipped_step(optimizer, model, train.clip_step_norm)


@torch.no_grad()
def clip_gradients_per_map(model: nn.Module, norm: float) -> None:
    """Clip the gradient of each map to this norm (Sukhbaatar et al. 2019, section 5.1).

    Several maps in one weight, as those of queries, keys and values, are clipped one by one.
    """
    for _, gradient in _maps(model):
        gradient.mul_((norm / (gradient.norm() + 1e-6)).clamp(max=1.0))


@torch.no_grad()
def take_clipped_step(optimizer: torch.optim.Optimizer, model: nn.Module, norm: float) -> None:
    """Take a step; that of each map is scaled by norm / ‖g‖ if its gradient g has a norm above `norm`.

    The optimiser sees the unscaled gradients (the program of Sukhbaatar et al. 2019). Several maps in one
    weight are scaled one by one.
    """
    starts = [  # a map, its value before the step, the share of the step
        (part, part.clone(), (norm / (gradient.norm() + 1e-10)).clamp(max=1.0))
        for part, gradient in _maps(model)
    ]
    optimizer.step()
    for part, start, share in starts:
        part.copy_(start.lerp_(part, share))


def _maps(model: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each map of a model that has a gradient, and the gradient; one weight may hold several."""
    for weight, found in find_weights(model).items():
        if weight.grad is not None:
            yield from zip(found.split_maps(weight), found.split_maps(weight.grad), strict=True)
