"""How `fading_memory` computes; loaded when a model with one is built."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Self

import torch
from torch import Tensor, nn

from activemem.blocks import Block, Context, Linear
from activemem.grammar import Settings, as_float


class FadingMemory(Block):
    """y_t = W · Σ_s (1 − λ) λ^|t − s| ⊗ x_s over all positions, or over those up to t if causal.

    λ = exp(−exp(log_rate)) is trained for each channel, and begins at 2^(−1 / half_life).
    """

    state_is_bounded = True
    weight_roles = MappingProxyType({"log_rate": "rate"})

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
        return self.output(self._mean(x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)))

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """The state is the mean at the last position, (batch, 1, width), however long the past."""
        mean = self._mean(x)
        if state is not None:
            passed = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)[:, None]
            mean = mean + state * torch.exp(-self.log_rate.exp() * passed)  # λ^passed as (length, width)
        return self.output(mean), mean[:, -1:]

    def _mean(self, x: Tensor) -> Tensor:
        """The average at each position, (batch, length, width)."""
        return (self._weights(x) @ x.permute(2, 1, 0)).permute(2, 1, 0)

    def _weights(self, x: Tensor) -> Tensor:
        """(1 − λ) λ^|t − s| as (width, positions t, positions s)."""
        places = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        behind = places[:, None] - places  # t − s
        rate = self.log_rate.exp()[:, None, None]
        exponent = torch.log(-torch.expm1(-rate)) - rate * behind.abs()
        return (exponent.masked_fill(behind < 0, -torch.inf) if self.causal else exponent).exp()
