"""Attention within a window: scores by content and by distance, softmax, values; heads before the batch."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.model_config import Init
from ...grammar.vocabulary.attention_window import QueryChunk, Window, has_keyless_query, iter_chunks
from ..core.block import Block, Context
from ..core.dropout import Dropout
from ..core.initialisation import Initialisable, Linear

GRANULARITY = 64
"""How far adaptive spans let heads see is rounded up to a multiple of this number of tokens."""


class UniformLinear(Linear):
    """Linear maps without bias that begin as U(-a, a), a = 1 / sqrt(inputs), whatever the model's rule is."""

    def __init__(self, inputs: int, outputs: int, *, maps: int = 1) -> None:
        super().__init__(inputs, outputs, bias=False, maps=maps)

    def initialise(
        self, generator: torch.Generator | None, rule: Init = "uniform", *, uniform_bias: bool = False
    ) -> None:
        """Draw the weight."""
        super().initialise(generator, "uniform")


class PositionVectors(Initialisable):
    """A vector for each distance, N(0, 1): the furthest to the left first."""

    def __init__(self, rows: int, head_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, head_width))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the vectors."""
        nn.init.normal_(self.weight, generator=generator)


class AdaptiveSpans(Initialisable):
    """A span for each head, z · span tokens and a ramp over which it fades out; z begins as 0.

    Sukhbaatar et al. 2019 (Adaptive Attention Span in Transformers), equation 5; as in their program
    distances count from the `nearest` position that a head sees.
    """

    def __init__(self, *, heads: int, span: int, ramp: int, nearest: int) -> None:
        super().__init__()
        self.nearest = nearest
        self.span = span
        self.ramp = ramp
        self.z = nn.Parameter(torch.empty(heads))
        self.max_distance = self._max_distance(0.0)

    def initialise(self, generator: torch.Generator | None) -> None:
        """Begin with nothing but the ramp."""
        nn.init.zeros_(self.z)
        self.max_distance = self._max_distance(0.0)

    def forward(self, max_distance: int, min_distance: int) -> Tensor:
        """The logarithm of what remains, the greatest distance first, (heads, 1, 1, distances)."""
        steps = torch.arange(max_distance, min_distance - 1, -1, device=self.z.device).abs() - self.nearest
        left = (self.z[:, None] * self.span + self.ramp - steps) / self.ramp
        tiny = torch.finfo(left.dtype).tiny
        left = left.clamp(tiny, 1.0)
        return torch.where(left > tiny, left.log(), _masked_score(left))[:, None, None]

    def after_optimiser_step(self) -> None:
        """Keep z within [0, 1], and note how far the furthest head sees."""
        with torch.no_grad():
            self.z.clamp_(0.0, 1.0)
        self.max_distance = self._max_distance(float(self.z.detach().max()))

    def _max_distance(self, z: float) -> int:
        """The greatest distance that is not faded out, rounded up."""
        seen = math.ceil(self.ramp + z * self.span) + self.nearest - 1
        return -(-seen // GRANULARITY) * GRANULARITY


class ExtraKeysValues(Protocol):
    """Keys and values that every query sees, in one softmax with those of the window."""

    def scores(self, q: Tensor) -> Tensor:
        """(heads, batch, queries, n) of scaled queries (heads, batch, queries, head_width)."""
        ...

    def values(self, weights: Tensor) -> Tensor:
        """(heads, batch, queries, head_width) of weights (heads, batch, queries, n)."""
        ...


class WindowAttention(nn.Module):
    """Softmax over the keys in a window, with vectors for distances and spans that each head learns.

    Scores are q · (k + u_distance). They are laid out as (queries, keys); those by distance, (queries,
    distances), are brought into that shape by a view in which each row begins one place further left. A cap
    is of the scores by content.
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
        """The greatest distance that any head sees now."""
        furthest = self.window.max_distance
        return furthest if self.spans is None else min(furthest, self.spans.max_distance)

    @property
    def min_distance(self) -> int:
        """The smallest distance that any head sees now."""
        nearest = self.window.min_distance
        return nearest if self.spans is None or nearest > 0 else max(nearest, -self.spans.max_distance)

    def after_optimiser_step(self) -> None:
        """Take note of new spans."""
        if self.spans is not None:
            self.spans.after_optimiser_step()

    def penalty(self) -> Tensor | None:
        """The mean span in tokens, where heads learn it."""
        return None if self.spans is None else self.spans.span * self.spans.z.mean()

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        extra_keys_values: ExtraKeysValues | None = None,
    ) -> Tensor:
        """What each query sees, (heads, batch, queries, head_width).

        q is scaled; of the keys and values (heads, batch, keys, head_width) the last ones are at the
        queries, those in front are past. `mask` (batch, keys) is true where a key is valid.
        """
        past = k.shape[2] - q.shape[2]
        every = list(iter_chunks(q.shape[2], past, self.min_distance, self.max_distance))
        near, far = min(piece.min_distance for piece in every), max(piece.max_distance for piece in every)
        by_distance = self._by_distance(q, near, far)
        extra = None if extra_keys_values is None else extra_keys_values.scores(q)
        found: list[Tensor] = []
        for piece in every:
            rows = slice(piece.start - past, piece.stop - past)
            keys = slice(piece.key_start, piece.key_stop)
            bias = by_distance[
                :, :, rows, far - piece.max_distance : far - piece.max_distance + piece.distance_count
            ]
            scores = q[:, :, rows] @ k[:, :, keys].transpose(-1, -2)  # (heads, batch, queries, keys)
            scores = capped(scores, self.cap) + skew(bias, piece)
            if mask is not None:
                scores = scores.masked_fill(~mask[:, None, keys], _masked_score(scores))
            joined = scores if extra is None else torch.cat([scores, extra[:, :, rows]], -1)
            weights = self.dropout(torch.softmax(joined, -1))
            found.append(self._values(weights, v[:, :, keys], piece, extra_keys_values))
        return found[0] if len(found) == 1 else torch.cat(found, 2)

    def _by_distance(self, q: Tensor, min_distance: int, max_distance: int) -> Tensor:
        """Scores (heads or 1, batch or 1, queries, distances), the greatest distance first."""
        heads, batch, length, _ = q.shape
        if self.positions is None:
            scores = q.new_zeros(1, 1, length, max(0, max_distance - min_distance + 1))
        else:
            vectors = self._vectors(min_distance, max_distance)
            scores = (q.flatten(0, 2) @ vectors.T).view(heads, batch, length, len(vectors))
        return (
            scores
            if self.spans is None or max_distance < min_distance
            else scores + self.spans(max_distance, min_distance)
        )

    def _vectors(self, min_distance: int, max_distance: int) -> Tensor:
        """The position vectors (distances, head_width), that of the greatest distance first."""
        assert self.positions is not None, "this window has no position vectors"
        begin = self.window.max_distance - max_distance
        return self.positions.weight[begin : begin + max(0, max_distance - min_distance + 1)]

    def _values(
        self, weights: Tensor, v: Tensor, piece: QueryChunk, extra_keys_values: ExtraKeysValues | None
    ) -> Tensor:
        """The values (heads, batch, queries, head_width) that the weights choose."""
        within, outside = weights.split([piece.key_count, weights.shape[-1] - piece.key_count], -1)
        y = within @ v
        if self.window.pos_values and piece.distance_count:
            vectors = self._vectors(piece.min_distance, piece.max_distance)
            y = y + unskew(within, piece).contiguous() @ vectors
        if extra_keys_values is not None:
            return y + extra_keys_values.values(outside)
        if has_keyless_query(self.window, piece):
            first = torch.arange(piece.query_count, device=y.device) == 0
            y = y.masked_fill(first[:, None], 0.0)
        return y


def build_window_attention(
    window: Window, heads: int, context: Context, *, cap: float = 0.0
) -> WindowAttention:
    """The window as a module; those of one kind in a model share their position vectors."""
    positions = None
    if window.relative:
        positions = context.share(
            window.shared_key, lambda: PositionVectors(window.distance_count, window.head_width)
        )
    rate = context.config.attention_dropout
    return WindowAttention(window, heads=heads, positions=positions, dropout=rate, cap=cap)


class WindowedBlock(Block):
    """A block whose positions attend within a window.

    A subclass sets `window`, which learns how far heads see, and with it `context_length`.
    """

    window: WindowAttention

    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_post_hook(_after_load)

    @abstractmethod
    def attend(self, x: Tensor, seen: Tensor, mask: Tensor | None) -> Tensor:
        """The outputs at x (batch, length, width), which ends what is `seen`; `mask` is that of `seen`."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Every position attends to its window."""
        return self.attend(x, x, mask)

    def forward_with_past(self, x: Tensor, past: Tensor) -> Tensor:
        """Queries of x alone, keys and values of what they can see."""
        seen = past[:, max(0, past.shape[1] - self.window.max_distance) :]
        return self.attend(x, torch.cat([seen, x], 1) if seen.shape[1] else x, None)

    def after_optimiser_step(self) -> None:
        """Take note of new spans."""
        self.window.after_optimiser_step()
        self.context_length = self.window.max_distance

    def penalty(self) -> Tensor | None:
        """The mean span in tokens, where heads learn it."""
        return self.window.penalty()


def _after_load(block: WindowedBlock, _keys: object) -> None:
    """Take note of spans that were loaded."""
    block.after_optimiser_step()


def split_heads(y: Tensor, heads: int, maps: int) -> Tensor:
    """What several maps gave, (batch, length, maps · width), as (maps, heads, batch, length, head_width)."""
    batch, length, _ = y.shape
    return y.view(batch, length, maps, heads, -1).permute(2, 3, 0, 1, 4).contiguous()


def merge_heads(y: Tensor) -> Tensor:
    """What the heads give, (heads, batch, length, head_width), as (batch, length, width)."""
    _heads, batch, length, _ = y.shape
    return y.permute(1, 2, 0, 3).reshape(batch, length, -1)


def capped(scores: Tensor, cap: float) -> Tensor:
    """The scores s as c tanh(s / c) with a cap c, or as they are where it is 0."""
    return cap * torch.tanh(scores / cap) if cap else scores


def skew(by_distance: Tensor, piece: QueryChunk) -> Tensor:
    """Scores (…, queries, distances) as (…, queries, keys); a key at no distance of the window gets none.

    Row t of the result begins t places further left in its row than row 0. With rows one longer than a step
    that is a plain view; what it meets beyond a row's end is padding.
    """
    rows = piece.query_count
    shift = piece.max_distance - (piece.start - piece.key_start)
    width = max(piece.key_count + max(shift, 1), rows + piece.distance_count - 1 - shift)
    padded = functional.pad(by_distance, (0, width - piece.distance_count), value=_masked_score(by_distance))
    flat = padded.flatten(-2).narrow(-1, shift, rows * (width - 1))
    return flat.reshape(*padded.shape[:-1], width - 1)[..., : piece.key_count]


def unskew(weights: Tensor, piece: QueryChunk) -> Tensor:
    """Weights (…, queries, keys) as (…, queries, distances), the furthest distance first."""
    rows = piece.query_count
    shift = piece.max_distance - (piece.start - piece.key_start)
    width = max(piece.key_count + shift, rows + piece.distance_count - 1 - shift)
    padded = functional.pad(weights, (shift, width - shift - piece.key_count, 0, 1))
    flat = padded.flatten(-2).narrow(-1, 0, rows * (width + 1))
    return flat.reshape(*weights.shape[:-1], width + 1)[..., : piece.distance_count]


def looks_at_weights(module: nn.Module) -> bool:
    """Whether a part of a model takes note of its weights after each step: a window by its spans alone."""
    if isinstance(module, Block) and not isinstance(module, WindowedBlock):
        return type(module).after_optimiser_step is not Block.after_optimiser_step
    return isinstance(module, AdaptiveSpans)


def _masked_score(scores: Tensor) -> float:
    """A score that no softmax gives weight to; finite, so that nothing to see is nothing to divide by."""
    return torch.finfo(scores.dtype).min / 4
