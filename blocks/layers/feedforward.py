"""The position-wise feed-forward blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from ...grammar.vocabulary.spec import Settings, as_int, as_word
from ..core.activations import ACTIVATIONS
from ..core.block import Block, Context, register_block
from ..core.dropout import Dropout
from ..core.initialisation import Linear

GLU_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor] | None] = {
    "silu": functional.silu,
    "gelu": functional.gelu,
    "relu": functional.relu,
    "sigmoid": torch.sigmoid,
    "none": None,
}
"""What one of the maps of a gated linear unit passes; nothing where it is bilinear."""


@register_block("ff")
class FeedForward(Block):
    """width to filter to width, with dropout after the activation, as in the released program."""

    def __init__(
        self, *, width: int, filter_width: int, act: str, dropout: float, std: float | None = None
    ) -> None:
        super().__init__()
        self.inner = Linear(width, filter_width, bias=True, std=std)
        self.outer = Linear(filter_width, width, bias=True, std=std)
        self.act = ACTIVATIONS[act]
        self.dropout = Dropout(dropout)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `ff(filter, act)`."""
        return cls(
            width=context.width,
            filter_width=as_int(settings, "filter"),
            act=as_word(settings, "act"),
            dropout=context.config.inner_dropout,
            std=context.config.feedforward_std,
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each position by itself; the mask changes nothing."""
        return self.outer(self.dropout(self.act(self.inner(x))))


@register_block("glu")
class GatedLinearUnit(Block):
    """y = W₂ (act(W x) ⊗ V x), without biases, with dropout as in a feed-forward layer (Shazeer 2020)."""

    def __init__(self, *, filter_width: int, act: str, context: Context) -> None:
        super().__init__()
        std = context.config.feedforward_std
        self.inner = Linear(context.width, filter_width, bias=False, maps=2, std=std)
        self.outer = Linear(filter_width, context.width, bias=False, std=std)
        self.act = GLU_ACTIVATIONS[act]
        self.dropout = Dropout(context.config.inner_dropout)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `glu(filter, act)`."""
        return cls(filter_width=as_int(settings, "filter"), act=as_word(settings, "act"), context=context)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each position by itself; the mask changes nothing."""
        gate, value = self.inner(x).chunk(2, -1)
        return self.outer(self.dropout((gate if self.act is None else self.act(gate)) * value))


@register_block("activation")
class Activation(Block):
    """y = act(x)."""

    def __init__(self, act: str) -> None:
        super().__init__()
        self.act = ACTIVATIONS[act]

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `activation(act)`."""
        return cls(as_word(settings, "act"))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each number by itself; the mask changes nothing."""
        return self.act(x)


@register_block("dense")
class Dense(Block):
    """y = act(W x + b), of the width of its input."""

    def __init__(self, *, width: int, act: str) -> None:
        super().__init__()
        self.map = Linear(width, width, bias=True)
        self.act = ACTIVATIONS[act]

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `dense(act)`."""
        return cls(width=context.width, act=as_word(settings, "act"))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each position by itself; the mask changes nothing."""
        return self.act(self.map(x))
