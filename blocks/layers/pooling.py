"""The pools: one vector of a sequence, as a weighted mean, a plain mean, or its last position.

A pool is a Block but for its output, which is (batch, width); its mask is exact as everywhere.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.vocabulary.spec import Settings
from ..core.block import Block, Context, register_block
from ..core.initialisation import Initialisable
from ..core.weight_roles import WeightRole, roles


class AttentionScore(Initialisable):
    """A score of each position, tanh(w · x + b); w begins as N(0, 1 / width), b as zero.

    As in the program of Raffel and Ellis 2016.
    """

    weight_roles = roles(weight=WeightRole.MATRIX, bias=WeightRole.BIAS)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, width))
        self.bias = nn.Parameter(torch.empty(1))

    def initialise(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5, generator=generator)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(functional.linear(x, self.weight, self.bias)).squeeze(-1)


@register_block("attention_pool")
class AttentionPool(Block):
    """y = Σ α_t x_t, α = softmax(tanh(w · x_t + b)) (Raffel and Ellis 2016, section 1.3)."""

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.score = AttentionScore(context.width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = self.score(x)  # (batch, length)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
            x = x.masked_fill(~mask.unsqueeze(-1), 0.0)
        return (scores.softmax(-1).unsqueeze(1) @ x).squeeze(1)


@register_block("mean_pool")
class MeanPool(Block):
    """y = Σ x_t / T over the T valid positions."""

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        return cls()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x.mean(1)
        return x.masked_fill(~mask.unsqueeze(-1), 0.0).sum(1) / mask.sum(1, keepdim=True)


@register_block("last")
class Last(Block):
    """y = x_T, T the last valid position of each row."""

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        return cls()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x[:, -1].clone()  # training would keep the whole sequence with a view of it
        place = (mask.sum(1) - 1).view(-1, 1, 1).expand(-1, 1, x.shape[-1])
        return x.gather(1, place).squeeze(1)
