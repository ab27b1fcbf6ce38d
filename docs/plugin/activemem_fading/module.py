"""How `fading_memory` computes; loaded when a model with one is built."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor, nn

from activemem.blocks import Block, Context, Linear
from activemem.grammar import Settings, as_float


class FadingMemory(Block):
    """y_t = W · Σ_s (1 − λ) λ^|t − s| ⊗ x_s over all positions, or over those up to t if causal.

    λ = exp(−exp(log_rate)) is trained for each channel, and begins at 2^(−1 / half_life).
    """

    def __init__(self, *, width: int, half_life: float, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.log_rate = nn.Parameter(torch.full((width,), math.log(math.log(2.0) / half_life)))
        self.output = Linear(width, width, bias=False)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `fading_memory(half_life)`."""
        return cls(width=context.width, half_life=as_float(settings, "half_life"), causal=context.causal)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """One product a channel: the weights of all positions for all, times the sequences."""
        if mask is not None:
            x = x.masked_fill(~mask.unsqueeze(-1), 0.0)
        mean = self._weights(x) @ x.permute(2, 1, 0)  # (width, length, batch)
        return self.output(mean.permute(2, 1, 0))

    def _weights(self, x: Tensor) -> Tensor:
        """(1 − λ) λ^|t − s| as (width, positions t, positions s)."""
        places = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        behind = places[:, None] - places  # t − s
        rate = self.log_rate.exp()[:, None, None]
        exponent = torch.log(-torch.expm1(-rate)) - rate * behind.abs()
        return (exponent.masked_fill(behind < 0, -torch.inf) if self.causal else exponent).exp()
