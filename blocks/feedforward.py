"""The position-wise feed-forward block."""

from __future__ import annotations

from typing import Self

from torch import Tensor

from ..grammar.vocabulary import Settings, whole, word
from .activation import ACTIVATIONS
from .block import Block, Context, module
from .dropout import Dropout
from .initial import Linear


@module("ff")
class FeedForward(Block):
    """width to filter to width, with dropout after the activation, as in the released program."""

    def __init__(self, *, width: int, filter_width: int, act: str, dropout: float) -> None:
        super().__init__()
        self.inner = Linear(width, filter_width, bias=True)
        self.outer = Linear(filter_width, width, bias=True)
        self.act = ACTIVATIONS[act]
        self.dropout = Dropout(dropout)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `ff(filter, act)`."""
        return cls(
            width=context.width,
            filter_width=whole(settings, "filter"),
            act=word(settings, "act"),
            dropout=context.dropout,
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each position by itself; the mask changes nothing."""
        return self.outer(self.dropout(self.act(self.inner(x))))
