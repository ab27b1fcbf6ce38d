"""Self-attention."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from ..grammar.attention import SHORT
from ..grammar.vocabulary import Settings, whole
from .block import Block, Context, module
from .initial import Linear


@module("sa")
class SelfAttention(Block):
    """Multi-head softmax attention without biases, scores scaled by head_width^-0.5 (Vaswani et al. 2017)."""

    def __init__(self, *, width: int, heads: int, head_width: int, causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.qkv = Linear(width, heads * head_width, bias=False, maps=3)
        self.output = Linear(heads * head_width, width, bias=False)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `sa(heads, head_width)`."""
        heads, head_width = whole(settings, "heads"), whole(settings, "head_width")
        return cls(width=context.width, heads=heads, head_width=head_width, causal=context.causal)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Every position attends to every valid one, or to those up to itself if causal."""
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).contiguous().unbind(0)  # each (batch, heads, length, head_width)
        if length <= SHORT and not x.is_cuda:  # as fast as the fused kernel, and vmap can batch it
            y = plain_attention(q, k, v, self._visible(x, mask))
        elif mask is None:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=self._visible(x, mask))
        return self.output(y.transpose(1, 2).reshape(batch, length, -1))

    def _visible(self, x: Tensor, mask: Tensor | None) -> Tensor | None:
        """Which keys each query sees, broadcastable to (batch, heads, queries, keys); None for all."""
        keys = None if mask is None else mask[:, None, None, :]
        if not self.causal:
            return keys
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        return past if keys is None else keys & past


def plain_attention(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None) -> Tensor:
    """Attention as two batched products; q, k, v and the result are (batch, heads, length, head_width)."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5  # (batch, heads, queries, keys)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    return torch.softmax(scores, -1) @ v
