"""Self-attention."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from ...grammar.vocabulary.attention import MAX_UNFUSED_LENGTH, window_from_settings
from ...grammar.vocabulary.attention_window import Window
from ...grammar.vocabulary.spec import Settings, as_int
from ..core.block import Block, Context, register_block
from ..core.dropout import Dropout
from ..core.initialisation import Linear
from .window_attention import (
    PositionVectors,
    UniformLinear,
    WindowAttention,
    after_load,
    merge_heads,
    split_heads,
)


@register_block("sa")
class SelfAttention(Block):
    """Multi-head softmax attention without biases, scores scaled by head_width^-0.5 (Vaswani et al. 2017).

    Over everything, or within a window. Weights are dropped in products that are written out.
    """

    def __init__(
        self,
        *,
        width: int,
        heads: int,
        head_width: int,
        causal: bool,
        dropout: float = 0.0,
        window: WindowAttention | None = None,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        inner = heads * head_width
        if window is None or window.positions is None:
            self.qkv = Linear(width, inner, bias=False, maps=3)
            self.output = Linear(inner, width, bias=False)
        else:
            self.qkv = UniformLinear(width, inner, maps=3)
            self.output = UniformLinear(inner, width)
        self.dropout = Dropout(dropout)
        self.window = window
        if window is not None:
            self.context_length = window.max_distance
            self.register_load_state_dict_post_hook(after_load)

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `sa(heads, head_width, …)`; a span gives it a window."""
        heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        window = None
        if as_int(settings, "span") > 0:
            window = _window(window_from_settings(settings, causal=context.causal), heads, context)
        return cls(
            width=context.width,
            heads=heads,
            head_width=head_width,
            causal=context.causal,
            dropout=context.config.attention_dropout,
            window=window,
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Every position attends to every valid one, or to those up to itself if causal, or to its window."""
        if self.window is not None:
            return self._within(self.window, x, x, mask)
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).contiguous().unbind(0)  # each (batch, heads, length, head_width)
        plain = (
            length <= MAX_UNFUSED_LENGTH and not x.is_cuda
        )  # as fast as the fused kernel, and vmap can batch it
        if plain or (self.training and self.dropout.rate > 0):
            y = plain_attention(q, k, v, self._attention_mask(x, mask), self.dropout)
        elif mask is None:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=self._attention_mask(x, mask))
        return self.output(y.transpose(1, 2).reshape(batch, length, -1))

    def forward_with_past(self, x: Tensor, past: Tensor) -> Tensor:
        """Queries of x alone, keys and values of what they can see."""
        if self.window is None:
            return super().forward_with_past(x, past)
        seen = past[:, max(0, past.shape[1] - self.window.max_distance) :]
        return self._within(self.window, x, torch.cat([seen, x], 1) if seen.shape[1] else x, None)

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Keys and values are kept, (batch, heads, 2, positions, head_width), unless there is a window."""
        if self.window is not None:
            return super().step_with_grad(x, state)
        batch, length, _ = x.shape
        made = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(0, 3, 2, 1, 4)
        q, known = made[:, :, 0], made[:, :, 1:]
        if state is not None:
            known = torch.cat([state, known], 3)
        k, v = known.unbind(2)
        keys = k.shape[2]
        visible = torch.ones(length, keys, dtype=torch.bool, device=x.device).tril(keys - length)
        y = plain_attention(q, k, v, None if length == 1 else visible, self.dropout)
        return self.output(y.transpose(1, 2).reshape(batch, length, -1)), known

    def after_optimiser_step(self) -> None:
        """Take note of new spans."""
        if self.window is not None:
            self.window.after_optimiser_step()
            self.context_length = self.window.max_distance

    def penalty(self) -> Tensor | None:
        """The mean span in tokens, where heads learn it."""
        return None if self.window is None else self.window.penalty()

    def _within(self, window: WindowAttention, x: Tensor, seen: Tensor, mask: Tensor | None) -> Tensor:
        """The window's part: queries of x, keys and values of what is seen, x at its end."""
        inner = self.qkv.out_features // 3
        q = split_heads(functional.linear(x, self.qkv.weight[:inner]), self.heads, 1)[0]
        k, v = split_heads(functional.linear(seen, self.qkv.weight[inner:]), self.heads, 2).unbind(0)
        return self.output(merge_heads(window(q * (inner // self.heads) ** -0.5, k, v, mask)))

    def _attention_mask(self, x: Tensor, mask: Tensor | None) -> Tensor | None:
        """Which keys each query sees, broadcastable to (batch, heads, queries, keys); None for all."""
        keys = None if mask is None else mask[:, None, None, :]
        if not self.causal:
            return keys
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        return past if keys is None else keys & past


def plain_attention(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, dropout: Dropout) -> Tensor:
    """Attention as two batched products; q, k, v and the result are (batch, heads, length, head_width)."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5  # (batch, heads, queries, keys)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    return dropout(torch.softmax(scores, -1)) @ v


def _window(window: Window, heads: int, context: Context) -> WindowAttention:
    """The window as a module; those of one kind in a model share their position vectors."""
    positions = None
    if window.relative:
        positions = context.share(
            window.shared_key, lambda: PositionVectors(window.distance_count, window.head_width)
        )
    return WindowAttention(window, heads=heads, positions=positions, dropout=context.config.attention_dropout)
