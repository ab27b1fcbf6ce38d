"""Attention of a decoder's stack to the source."""

from __future__ import annotations

from torch import Tensor

from ..core.block import Context
from ..core.dropout import Dropout
from ..core.initialisation import Linear
from ..core.residual_stack import ResidualStep
from ..layers.attention import attend


class CrossAttention(ResidualStep):
    """A residual step whose f is attention to the source.

    Multi-head softmax attention without biases, scores scaled by head_width^-0.5 (Vaswani et al. 2017).
    """

    def __init__(self, *, heads: int, head_width: int, context: Context) -> None:
        super().__init__()
        width = context.width
        self.heads = heads
        self.queries = Linear(width, heads * head_width, bias=False)
        self.keys_values = Linear(width, heads * head_width, bias=False, maps=2)
        self.output = Linear(heads * head_width, width, bias=False)
        self._add_norm_and_dropout(context)
        self.attention_dropout = Dropout(context.config.attention_dropout)

    def project_source(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of a source (batch, n, width), each (batch, heads, n, head_width)."""
        found = self.keys_values(source).unflatten(2, (2, self.heads, -1))
        keys, values = found.permute(2, 0, 3, 1, 4).unbind(0)
        return keys, values

    def forward(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Take one step of the residual stream (batch, m, width); `mask` (batch, n) belongs to the source."""
        return self._step(x, lambda entering: self._attend(entering, keys_values, mask))

    def _attend(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        queries = self.queries(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        y = attend(queries, *keys_values, mask, self.attention_dropout)
        return self.output(y.transpose(1, 2).flatten(2))
