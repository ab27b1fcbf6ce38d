"""Dropout, by numbers or by a mask."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Dropout: in training, set numbers to zero with probability `rate`, and scale the others up."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    @property
    def active(self) -> bool:
        """Return whether the layer zeroes numbers: in training mode, with a rate above 0."""
        return self.training and self.rate > 0.0

    @property
    def scale(self) -> float:
        """Return the factor by which kept numbers are multiplied, 1 / (1 - rate)."""
        return 1.0 / (1.0 - self.rate)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        return torch.dropout(x.contiguous(), self.rate, train=True)  # draws depend on strides

    def draw_mask(self, shape: torch.Size, like: Tensor) -> Tensor | None:
        """Draw a mask that is 1 where a number is kept and 0 where it is dropped; None without dropout."""
        if not self.active:
            return None
        if like.is_cuda:
            return torch.native_dropout(like.new_ones(shape), self.rate, train=True)[1]
        return torch.empty(shape, dtype=torch.bool, device=like.device).bernoulli_(1.0 - self.rate)
