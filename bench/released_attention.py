"""The all-attention layer with the operations of its released program (facebookresearch/adaptive-span).

The layer follows models.py, persistent_memory.py and adaptive_span.py: heads and batch are one dimension,
scores by content are shifted to scores by distance, and weights are faded after the softmax.
"""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from activemem.blocks.layers.all_attention import AllAttention


class ReleasedAttention(nn.Module):
    """Attention with queries of a chunk, and keys and values of the chunk and the cache before it."""

    def __init__(
        self, *, width: int, heads: int, span: int, vectors: int, dropout: float, ramp: int | None
    ) -> None:
        super().__init__()
        head_width = width // heads
        self.heads, self.span, self.ramp = heads, span, ramp
        self.query, self.key, self.value, self.output = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.positions = nn.Parameter(torch.empty(1, head_width, span))
        self.persistent_keys = nn.Parameter(torch.empty(heads, head_width, vectors))
        self.persistent_values = nn.Parameter(torch.empty(heads, vectors, head_width))
        self.spans = None if ramp is None else nn.Parameter(torch.empty(heads, 1, 1))
        self.dropout = nn.Dropout(dropout)

    @classmethod
    @torch.no_grad()
    def of(cls, ours: AllAttention, dropout: float) -> Self:
        """Return the layer with our layer's weights."""
        positions, persistent, spans = ours.window.positions, ours.persistent, ours.window.spans
        assert positions is not None and persistent is not None
        made = cls(
            width=ours.query.in_features,
            heads=ours.heads,
            span=ours.window.window.span,
            vectors=persistent.keys.shape[1],
            dropout=dropout,
            ramp=None if spans is None else spans.ramp,
        )
        key, value = ours.key_value.weight.chunk(2)
        pairs = [(made.query.weight, ours.query.weight), (made.output.weight, ours.output.weight)]
        pairs += [(made.key.weight, key), (made.value.weight, value)]
        pairs += [(made.positions, positions.weight.T[None]), (made.persistent_values, persistent.vectors)]
        pairs += [(made.persistent_keys, persistent.keys.transpose(1, 2))]
        if made.spans is not None and spans is not None:
            pairs += [(made.spans, spans.z.view(-1, 1, 1))]
        for theirs, one in pairs:
            theirs.copy_(one)
        return made

    def forward(self, x: Tensor, cache: Tensor) -> Tensor:
        """Return the outputs at x (batch, length, width)."""
        seen = torch.cat([cache, x], 1)
        q, v, k = self._split(self.query(x)), self._split(self.value(seen)), self._split(self.key(seen))
        positions, trimmed = self.positions, self._trimmed()
        k, v, positions = k[:, trimmed:], v[:, trimmed:], positions[:, :, trimmed:]
        scores = _unskew(q @ k.transpose(-1, -2)) + q @ positions
        weights, beside = self._weigh(q, scores)
        y = _skew(self.dropout(weights)) @ v
        beside = self.dropout(beside).view(-1, self.heads, *beside.shape[1:])
        count = self.persistent_values.shape[1]
        y = y + (beside @ (self.persistent_values[None] * math.sqrt(count))).view(y.shape)
        y = y.view(len(x), self.heads, *y.shape[1:]).transpose(1, 2).contiguous()
        return self.output(y.flatten(2))

    def _weigh(self, q: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attention weights by distance, and the weights of the persistent vectors."""
        width, count = self.persistent_keys.shape[1:]
        grouped = q.view(-1, self.heads, *q.shape[1:])
        beside = (grouped @ (self.persistent_keys[None] * math.sqrt(width))).view(*q.shape[:2], count)
        weights = functional.softmax(torch.cat([scores, beside], -1) / math.sqrt(width), -1)
        if self.spans is not None:
            faded = self._fade(weights[..., :-count])
            weights = torch.cat([faded, weights[..., -count:]], -1)
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-8)
        return weights[..., :-count], weights[..., -count:]

    def _fade(self, weights: Tensor) -> Tensor:
        """Return the weights by distance, which fade out at the end of each head's span."""
        assert self.spans is not None and self.ramp is not None
        far = torch.linspace(1 - self.span, 0, self.span, device=weights.device)
        mask = ((far + self.spans * self.span) / self.ramp + 1).clamp(0, 1)[..., -weights.shape[-1] :]
        return (weights.reshape(-1, self.heads, *weights.shape[1:]) * mask).view(weights.shape)

    def _trimmed(self) -> int:
        """Return how many of the furthest positions are outside all spans, in multiples of 64."""
        if self.spans is None or self.ramp is None:
            return 0
        size = min(self.span, math.ceil(self.spans.max().item() * self.span) + self.ramp)
        return min(self.span - 1, self.span - size) // 64 * 64

    def _split(self, y: Tensor) -> Tensor:
        """Reshape (batch, length, width) to (batch · heads, length, head_width)."""
        return y.unflatten(2, (self.heads, -1)).transpose(1, 2).contiguous().flatten(0, 1)


def _skew(weights: Tensor) -> Tensor:
    """Return attention weights by key, given weights by distance: shift row t to the right by t."""
    batch, rows, distances = weights.shape
    padded = functional.pad(weights, (0, rows + 1)).view(batch, -1)[:, :-rows]
    return padded.view(batch, rows, rows + distances)


def _unskew(scores: Tensor) -> Tensor:
    """Return attention scores by distance, given scores by key."""
    batch, rows, keys = scores.shape
    padded = functional.pad(scores.view(batch, -1), (0, rows)).view(batch, rows, keys + 1)
    return padded[:, :, : keys - rows]
