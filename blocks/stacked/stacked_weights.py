"""Weights of several models side by side; where there are fewer rows than elsewhere, zeros follow."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def stack_weights(weights: Sequence[Tensor]) -> Tensor:
    """(models, rows, …) of weights that differ in their rows alone."""
    rows = max(weight.shape[0] for weight in weights) if weights[0].dim() else 0
    return torch.stack([_with_rows(weight.detach(), rows) for weight in weights])


def part_of(stacked: Tensor, place: int, own: Tensor) -> Tensor:
    """The view of one model's part of stacked weights, of the shape of its own."""
    part = stacked[place]
    return part[: own.shape[0]] if own.dim() else part


def _with_rows(weight: Tensor, rows: int) -> Tensor:
    """The weight with zeros behind it."""
    if not weight.dim() or weight.shape[0] == rows:
        return weight
    return functional.pad(weight, (0, 0) * (weight.dim() - 1) + (0, rows - weight.shape[0]))
