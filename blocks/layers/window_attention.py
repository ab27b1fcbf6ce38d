"""Attention within a window.

Its scores depend on keys and on distances. Heads are the first dimension of all tensors with heads.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...grammar.vocabulary.attention import Window
from ..core.block import Block, Context
from ..core.dropout import Dropout
from ..core.initialisation import Initialisable, Linear, WeightRole, roles
from .window_products import (
    QueryChunk,
    WindowForm,
    WindowInputs,
    iter_chunks,
    masked_score,
    window_products,
)

GRANULARITY = 64
"""Adaptive spans are rounded up to a multiple of this number of tokens."""


def uniform_linear(inputs: int, outputs: int | Sequence[int], *, maps: int = 1) -> Linear:
    """Return linear maps without bias that are always initialised as U(-a, a), a = 1 / sqrt(inputs)."""
    return Linear(inputs, outputs, bias=False, maps=maps, init="uniform")


class PositionVectors(Initialisable):
    """Trained vectors, one for each distance between query and key.

    They are drawn from N(0, 1). The first vector is for the greatest distance, to the furthest key on the
    left.
    """

    weight_roles = roles(weight=WeightRole.EMBEDDING)

    def __init__(self, rows: int, head_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, head_width))

    def initialise(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(self.weight, generator=generator)


class AdaptiveSpans(Initialisable):
    """A learned span for each head: nearer keys have full weight, and farther keys fade out.

    Up to a distance of z · span, keys have full weight. The weight falls linearly to zero over the next
    `ramp` tokens. Each head has a number `z` from 0 to 1, which is initialised as 0.

    Sukhbaatar et al. 2019 (Adaptive Attention Span in Transformers), equation 5. As in their program,
    distances count from the `nearest` position that a head sees.
    """

    weight_roles = roles(z=WeightRole.RATE)

    def __init__(self, *, heads: int, span: int, ramp: int, nearest: int) -> None:
        super().__init__()
        self.nearest = nearest
        self.span = span
        self.ramp = ramp
        self.z = nn.Parameter(torch.empty(heads))
        self.max_distance = self._max_distance(0.0)

    def initialise(self, generator: torch.Generator | None) -> None:
        nn.init.zeros_(self.z)
        self.max_distance = self._max_distance(0.0)

    def forward(self, max_distance: int, min_distance: int) -> Tensor:
        """Return the logarithm of each head's weight factor at each distance, (heads, 1, 1, distances).

        The factors, at most 1, make the weights of far keys fade. The one for `max_distance` comes first.
        """
        steps = torch.arange(max_distance, min_distance - 1, -1, device=self.z.device).abs() - self.nearest
        left = (self.z[:, None] * self.span + self.ramp - steps) / self.ramp
        # log(0) would give NaN gradients even where `where` does not select it
        tiny = torch.finfo(left.dtype).tiny
        left = left.clamp(tiny, 1.0)
        return torch.where(left > tiny, left.log(), masked_score(left))[:, None, None]

    def note(self, highest: float) -> None:
        """Update `max_distance`, the greatest distance that any head sees, after an optimiser step.

        `highest` is the largest share z of any head.
        """
        self.max_distance = self._max_distance(highest)

    def _max_distance(self, z: float) -> int:
        """Return the greatest distance that a head of span z · `span` sees, rounded up to GRANULARITY."""
        seen = math.ceil(self.ramp + z * self.span) + self.nearest - 1
        return -(-seen // GRANULARITY) * GRANULARITY


class WindowAttention(nn.Module):
    """Softmax over the keys in a window, with distance vectors and learned spans.

    Scores are q · (k + u_distance); a cap limits only the part q · k.
    """

    def __init__(
        self,
        window: Window,
        *,
        heads: int,
        positions: PositionVectors | None,
        dropout: float,
        cap: float = 0.0,
    ) -> None:
        super().__init__()
        self.window, self.cap = window, cap
        self.positions = positions
        self.dropout = Dropout(dropout)
        span, ramp = window.span, window.ramp
        nearest = max(0, window.min_distance)
        learnt = None if ramp is None else AdaptiveSpans(heads=heads, span=span, ramp=ramp, nearest=nearest)
        self.spans = learnt

    @property
    def max_distance(self) -> int:
        """Return the greatest distance that any head sees now."""
        furthest = self.window.max_distance
        return furthest if self.spans is None else min(furthest, self.spans.max_distance)

    @property
    def min_distance(self) -> int:
        """Return the smallest distance that any head sees now."""
        nearest = self.window.min_distance
        return nearest if self.spans is None or nearest > 0 else max(nearest, -self.spans.max_distance)

    def penalty(self) -> Tensor | None:
        """Return the mean span in tokens if heads learn their spans, else None."""
        return None if self.spans is None else self.spans.span * self.spans.z.mean()

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        extra: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return the output for each query, (heads, batch, queries, head_width).

        The query is already scaled. The last keys and values (heads, batch, keys, head_width) are at the
        queries' positions, earlier ones are past.

        `mask` (batch, keys) is true where a key is valid. Every query sees the `extra` keys and values too,
        each (heads, n, head_width), in the same softmax.
        """
        past = k.shape[2] - q.shape[2]
        pieces = tuple(iter_chunks(q.shape[2], past, self.min_distance, self.max_distance))
        near, far = min(piece.min_distance for piece in pieces), max(piece.max_distance for piece in pieces)
        vectors = None
        if self.positions is not None:  # vectors of distances that no head sees now are not read
            begin = self.window.max_distance - far
            vectors = self.positions.weight[begin : begin + max(0, far - near + 1)]
        fading = None if self.spans is None or far < near else self.spans(far, near)
        given = WindowInputs(q, k, v, vectors, fading, *(extra or (None, None)), mask)
        kept = self._draw(pieces, given)
        form = WindowForm(
            pieces=pieces,
            pos_values=self.window.pos_values,
            first_sees_nothing=extra is None and self.window.min_distance > 0,
            cap=self.cap,
            kept_scale=self.dropout.scale,
        )
        return window_products(form, given, kept)

    def _draw(self, pieces: Sequence[QueryChunk], given: WindowInputs) -> list[Tensor]:
        heads, batch = given.q.shape[:2]
        sizes = ((piece.query_count, piece.key_count + given.num_extra) for piece in pieces)
        drawn = (self.dropout.draw_mask(torch.Size((heads, batch, *size)), like=given.q) for size in sizes)
        return [each for each in drawn if each is not None]


def build_window_attention(
    window: Window, heads: int, context: Context, *, cap: float = 0.0
) -> WindowAttention:
    """Build attention within this window. In a model, equal windows share their position vectors."""
    positions = None
    if window.relative:
        positions = context.share(
            window.shared_key, lambda: PositionVectors(window.distance_count, window.head_width)
        )
    rate = context.config.settings.attention_dropout
    return WindowAttention(window, heads=heads, positions=positions, dropout=rate, cap=cap)


class WindowedBlock(Block):
    """A block whose positions attend within a window.

    A subclass sets `window`, which tracks learned spans and with them `context_length`.
    """

    window: WindowAttention

    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_post_hook(_after_load)  # loaded weights may have other spans

    @abstractmethod
    def attend(self, x: Tensor, past: Tensor | None, mask: Tensor | None) -> Tensor:
        """Return the outputs at x (batch, length, width), given the past inputs and the mask of x."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.attend(x, None, mask)

    def forward_with_past(self, x: Tensor, past: Tensor) -> Tensor:
        """Return the outputs at x, given the past inputs, whose part that no query sees is left out."""
        seen = past[:, max(0, past.shape[1] - self.window.max_distance) :]
        return self.attend(x, seen if seen.shape[1] else None, None)

    def after_optimiser_step(self) -> None:
        update_spans([self])

    def penalty(self) -> Tensor | None:
        return self.window.penalty()


def update_spans(blocks: Sequence[WindowedBlock]) -> None:
    """Clamp the learned spans of all blocks, and update the greatest distance that each block sees.

    The number z of each head is clamped to [0, 1]. This synchronises a GPU only once for all blocks.
    """
    learnt = [spans for block in blocks if (spans := block.window.spans) is not None]
    if learnt:
        with torch.no_grad():
            highest = torch.stack([spans.z.clamp_(0.0, 1.0).max() for spans in learnt]).tolist()
        for spans, z in zip(learnt, highest, strict=True):
            spans.note(z)
    for block in blocks:
        block.context_length = block.window.max_distance


def _after_load(block: WindowedBlock, _keys: object) -> None:
    block.after_optimiser_step()


def map_heads(x: Tensor, past: Tensor | None, weight: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """Map inputs to keys and values (heads, batch, positions, head_width) by one weight.

    The past comes first; it is mapped separately, so that no unneeded gradient is computed.
    """
    parts = [x] if past is None else [past, x]
    mapped = [_by_head(nn.functional.linear(each, weight), heads, 2) for each in parts]
    k, v = (mapped[0].contiguous() if past is None else torch.cat(mapped, 3)).unbind(0)
    return k, v


def split_heads(y: Tensor, heads: int) -> Tensor:
    """Reshape (batch, length, width) to (heads, batch, length, head_width)."""
    return _by_head(y, heads, 1)[0].contiguous()


def _by_head(y: Tensor, heads: int, maps: int) -> Tensor:
    batch, length, width = y.shape
    return y.view(batch, length, maps, heads, width // (maps * heads)).permute(2, 3, 0, 1, 4)


def merge_heads(y: Tensor) -> Tensor:
    """Reshape (heads, batch, length, head_width) to (batch, length, width)."""
    return y.permute(1, 2, 0, 3).flatten(2)
