"""Self-attention."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from ...grammar.vocabulary.attention import MAX_UNFUSED_LENGTH, window_from_settings
from ...grammar.vocabulary.spec import Settings, as_int
from ..core.block import Block, Context, register_block
from ..core.dropout import Dropout
from ..core.initialisation import Linear
from .window_attention import (
    UniformLinear,
    WindowAttention,
    WindowedBlock,
    build_window_attention,
    merge_heads,
    split_heads,
)


@register_block("sa")
class SelfAttention(Block):
    """Multi-head softmax attention without biases, scores scaled by head_width^-0.5 (Vaswani et al. 2017).

    Every position attends to every valid one, or to those up to itself if causal.
    """

    def __init__(
        self, *, width: int, heads: int, head_width: int, causal: bool, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.qkv = Linear(width, heads * head_width, bias=False, maps=3)
        self.output = Linear(heads * head_width, width, bias=False)
        self.dropout = Dropout(dropout)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Block:
        """The block of `sa(heads, head_width, …)`; with a span it is a WindowedSelfAttention."""
        if as_int(settings, "span") > 0:
            return WindowedSelfAttention.build(settings, context)
        return cls(
            width=context.width,
            heads=as_int(settings, "heads"),
            head_width=as_int(settings, "head_width"),
            causal=context.causal,
            dropout=context.config.attention_dropout,
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """All positions at once."""
        qkv = self.qkv(x).view(*x.shape[:2], 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).contiguous().unbind(0)  # each (batch, heads, length, head_width)
        return self._merge(attend(q, k, v, mask, self.dropout, causal=self.causal))

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The state has all keys and values so far, (batch, heads, 2, positions, head_width)."""
        length = x.shape[1]
        qkv = self.qkv(x).view(*x.shape[:2], 3, self.heads, -1).permute(0, 3, 2, 1, 4)
        q, known = qkv[:, :, 0], qkv[:, :, 1:]
        if state is not None:
            known = torch.cat([state, known], 3)
        k, v = known.unbind(2)
        visible = None if length == 1 else _causal_mask(q, k)
        return self._merge(_attend_unfused(q, k, v, visible, self.dropout)), known

    def _merge(self, y: Tensor) -> Tensor:
        """The output of what the heads give, (batch, heads, length, head_width)."""
        return self.output(y.transpose(1, 2).flatten(2))


class WindowedSelfAttention(WindowedBlock):
    """As SelfAttention, but within a window; if it has position vectors, all maps begin as UniformLinear."""

    def __init__(self, *, width: int, heads: int, window: WindowAttention) -> None:
        super().__init__()
        self.heads = heads
        self.inner = heads * window.window.head_width
        if window.positions is None:
            self.qkv = Linear(width, self.inner, bias=False, maps=3)
            self.output = Linear(self.inner, width, bias=False)
        else:
            self.qkv = UniformLinear(width, self.inner, maps=3)
            self.output = UniformLinear(self.inner, width)
        self.window = window
        self.context_length = window.max_distance

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `sa(heads, head_width, span, …)`."""
        heads, window = as_int(settings, "heads"), window_from_settings(settings, causal=context.causal)
        return cls(width=context.width, heads=heads, window=build_window_attention(window, heads, context))

    def attend(self, x: Tensor, seen: Tensor, mask: Tensor | None) -> Tensor:
        """All heads see the window."""
        q = split_heads(functional.linear(x, self.qkv.weight[: self.inner]), self.heads, 1)[0]
        k, v = split_heads(functional.linear(seen, self.qkv.weight[self.inner :]), self.heads, 2).unbind(0)
        return self.output(merge_heads(self.window(q * (self.inner // self.heads) ** -0.5, k, v, mask)))


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: Dropout, *, causal: bool = False
) -> Tensor:
    """Softmax attention; q, k, v and the result are (batch, heads, length, head_width).

    `mask` (batch, keys) is true at valid keys. A short sequence has plain products, as fast as the fused
    kernel, so that vmap can batch it; so has any from whose weights some are dropped.
    """
    short = k.shape[2] <= MAX_UNFUSED_LENGTH and not k.is_cuda
    fused = not short and not dropout.active
    if fused and mask is None:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    visible = None if mask is None else mask[:, None, None, :]
    if causal:
        visible = _causal_mask(q, k) if visible is None else visible & _causal_mask(q, k)
    if fused:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    return _attend_unfused(q, k, v, visible, dropout)


def _attend_unfused(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, dropout: Dropout) -> Tensor:
    """Two batched products; `visible` is broadcastable to (batch, heads, queries, keys), None for all."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5  # (batch, heads, queries, keys)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    return dropout(torch.softmax(scores, -1)) @ v


def _causal_mask(q: Tensor, k: Tensor) -> Tensor:
    """Which keys each query sees, (queries, keys), where the last query stands at the last key."""
    queries, keys = q.shape[2], k.shape[2]
    return torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
