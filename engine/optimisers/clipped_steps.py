"""Gradients and steps that are kept small, weight by weight and map by map."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ...blocks import Linear
from ...blocks.layers.convolutions import Convolution
from ...studies.schema.training import TrainSettings


def move_weights(optimizer: torch.optim.Optimizer, model: nn.Module, train: TrainSettings) -> None:
    """Move the weights of a model by their gradients, both clipped as [train] says."""
    if train.clip_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), train.clip_norm)
    if train.clip_tensor_norm is not None:
        clip_grad_norm_per_tensor(model.parameters(), train.clip_tensor_norm)
    if train.clip_step_norm is None:
        optimizer.step()
    else:
        take_clipped_step(optimizer, model, train.clip_step_norm)


def clip_grad_norm_per_tensor(parameters: Iterable[nn.Parameter], norm: float) -> None:
    """Clip the gradient of each weight to this norm (Sukhbaatar et al. 2019)."""
    for weights in parameters:
        nn.utils.clip_grad_norm_(weights, norm)


@torch.no_grad()
def take_clipped_step(optimizer: torch.optim.Optimizer, model: nn.Module, norm: float) -> None:
    """Take a step; that of each map is scaled by norm / ‖g‖ if its gradient g has a norm above `norm`.

    The optimiser sees the unscaled gradients (the program of Sukhbaatar et al. 2019). Several maps in one
    weight are scaled one by one.
    """
    maps = {
        weight: module.maps
        for module in model.modules()
        if isinstance(module, Linear | Convolution)
        for weight in module.parameters(recurse=False)
    }
    starts: list[
        tuple[Tensor, Tensor, Tensor]
    ] = []  # a map, its value before the step, the share of the step
    for weight in model.parameters():
        if weight.grad is not None:
            count = maps.get(weight, 1)
            for part, gradient in zip(weight.chunk(count), weight.grad.chunk(count), strict=True):
                starts.append((part, part.clone(), (norm / (gradient.norm() + 1e-10)).clamp(max=1.0)))
    optimizer.step()
    for part, start, share in starts:
        part.copy_(start.lerp_(part, share))
