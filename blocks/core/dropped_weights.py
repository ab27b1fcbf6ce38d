"""Weights of attention of which some are dropped: which these are is kept in a byte for each."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from .dropout import Dropout
from .linear_maps import are_operations_rewritten


def drop_weights(weights: Tensor, dropout: Dropout) -> Tensor:
    """As the dropout of any numbers, by the same draws and bits; a CPU keeps a byte instead of a factor."""
    if weights.device.type != "cpu" or are_operations_rewritten():
        return dropout(weights)
    kept = dropout.draw(weights.shape, weights)
    if kept is None:
        return weights
    if kept.is_floating_point():
        return weights * kept
    return _Dropped.apply(weights, kept, dropout.scale(weights.device))


class _DroppedContext(FunctionCtx):
    """What the backward pass finds."""

    scale: float
    saved_tensors: tuple[Tensor]


class _Dropped(torch.autograd.Function):
    """Numbers by what is kept and its scale, as factors that are made anew for the backward pass."""

    @staticmethod
    def forward(ctx: _DroppedContext, x: Tensor, kept: Tensor, scale: float) -> Tensor:
        """Any shape to the same."""
        ctx.scale = scale
        ctx.save_for_backward(kept)
        return _factors(kept, scale, x.dtype).mul_(x)

    @staticmethod
    def backward(ctx: _DroppedContext, dy: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore -- no varargs
        """The gradient by the same factors."""
        (kept,) = ctx.saved_tensors
        return dy * _factors(kept, ctx.scale, dy.dtype), None, None


def _factors(kept: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    return kept.to(dtype).mul_(scale)
