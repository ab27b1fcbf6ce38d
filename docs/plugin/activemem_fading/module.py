"""`fading_memory`, an average over the sequence with distance-dependent weights, as a block for activemem."""

from __future__ import annotations

import math
from types import MappingProxyType

import torch
from torch import Tensor, nn

from activemem import Block, Linear, Parameter, register_block

HALF_LIFE = Parameter(
    name="half_life",
    kind="real",
    default=8.0,
    low=0.5,
    high=10_000,
    meaning="distance in tokens at which a weight begins at one half",
)


@register_block(
    "fading_memory",
    parameters=[HALF_LIFE],
    summary="average of the sequence that fades with distance, at a trained rate for each channel",
    equation="y_t = W · Σ_s (1 − λ) λ^|t − s| ⊙ x_s",
    source="the example in activemem's documents",
)
class FadingMemory(Block):
    """y_t = W · Σ_s (1 − λ) λ^|t − s| ⊙ x_s over all positions, or over those up to t if causal.

    λ = exp(−exp(log_rate)) is trained for each channel, and begins at 2^(−1 / half_life).
    """

    state_is_bounded = True
    weight_roles = MappingProxyType({"log_rate": "rate"})

    def __init__(self, *, width: int, causal: bool, half_life: float) -> None:
        super().__init__()
        self.causal = causal
        self.log_rate = nn.Parameter(torch.full((width,), math.log(math.log(2.0) / half_life)))
        self.output = Linear(width, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Multiply the (positions × positions) weights of each channel with the sequences."""
        return self.output(self._mean(x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)))

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the output from the average at the last position, (batch, 1, width), in constant time."""
        mean = self._mean(x)
        if state is not None:
            passed = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)[:, None]
            mean = mean + state * torch.exp(-self.log_rate.exp() * passed)  # λ^passed as (length, width)
        return self.output(mean), mean[:, -1:]

    def _mean(self, x: Tensor) -> Tensor:
        """Return the average at each position, (batch, length, width)."""
        return (self._weights(x) @ x.permute(2, 1, 0)).permute(2, 1, 0)

    def _weights(self, x: Tensor) -> Tensor:
        """Return (1 − λ) λ^|t − s| as (width, positions t, positions s)."""
        places = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        behind = places[:, None] - places  # t − s
        rate = self.log_rate.exp()[:, None, None]
        exponent = torch.log(-torch.expm1(-rate)) - rate * behind.abs()
        return (exponent.masked_fill(behind < 0, -torch.inf) if self.causal else exponent).exp()
