"""Attention of a decoder's stack to the source."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.vocabulary.attention import MAX_UNFUSED_LENGTH
from ..core.block import Context
from ..core.dropout import Dropout
from ..core.initialisation import Linear


class CrossAttention(nn.Module):
    """One residual step: x + drop(attention of norm(x) to the source), or as the context's norm says.

    Multi-head softmax attention without biases, scores scaled by head_width^-0.5 (Vaswani et al. 2017).
    """

    def __init__(self, *, heads: int, head_width: int, context: Context) -> None:
        super().__init__()
        width = context.width
        self.heads = heads
        self.queries = Linear(width, heads * head_width, bias=False)
        self.keys_values = Linear(width, heads * head_width, bias=False, maps=2)
        self.output = Linear(heads * head_width, width, bias=False)
        self.norm = None if context.config.norm == "none" else nn.LayerNorm(width)
        self.before = context.config.norm == "pre"
        self.dropout = Dropout(context.config.dropout) if context.config.residual else None
        self.attention_dropout = Dropout(context.config.attention_dropout)

    def project_source(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a source (batch, n, width), each (batch, heads, n, head_width)."""
        found = self.keys_values(source).view(*source.shape[:2], 2, self.heads, -1)
        keys, values = found.permute(2, 0, 3, 1, 4).unbind(0)
        return keys, values

    def forward(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """One step of the residual stream (batch, m, width); `mask` (batch, n) is that of the source."""
        norm = self.norm
        y = self._attend(norm(x) if norm is not None and self.before else x, keys_values, mask)
        if self.dropout is not None:
            y = x + self.dropout(y)
        return y if norm is None or self.before else norm(y)

    def _attend(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        keys, values = keys_values
        visible = None if mask is None else mask[:, None, None, :]
        queries = self.queries(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2)
        dropping = self.training and self.attention_dropout.rate > 0
        if dropping or (keys.shape[2] <= MAX_UNFUSED_LENGTH and not x.is_cuda):  # vmap can batch it
            scores = queries @ keys.transpose(-1, -2) * queries.shape[-1] ** -0.5  # (batch, heads, m, n)
            if visible is not None:
                scores = scores.masked_fill(~visible, -torch.inf)
            y = self.attention_dropout(torch.softmax(scores, -1)) @ values
        else:
            y = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=visible)
        return self.output(y.transpose(1, 2).reshape(*x.shape[:2], -1))
