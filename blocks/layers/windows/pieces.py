"""Attention within a window: its inputs, the pieces in which it is computed, and layouts of its scores.

A distance is that from a query back to a key, negative for keys to its right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

CHUNK_LENGTH = 128
"""Queries are taken in pieces of this length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChunk:
    """Queries from `start` to `stop` and the keys that any of them can see, all counted from the first key.

    The distances between them go from `min_distance` to `max_distance`.
    """

    start: int
    stop: int
    key_start: int
    key_stop: int
    min_distance: int
    max_distance: int

    @property
    def query_count(self) -> int:
        """The number of queries."""
        return self.stop - self.start

    @property
    def key_count(self) -> int:
        """The number of keys."""
        return self.key_stop - self.key_start

    @property
    def distance_count(self) -> int:
        """The number of distances between them; 0 where a first position sees nothing."""
        return max(0, self.max_distance - self.min_distance + 1)

    @property
    def shift(self) -> int:
        """The number of distances of the first query before the first key."""
        return self.max_distance - (self.start - self.key_start)

    @property
    def padded_width(self) -> int:
        """The width of a row of scores by distance that is laid out by key."""
        distances = self.query_count + self.distance_count - 1 - self.shift
        return max(self.key_count + max(self.shift, 1), distances)


def iter_chunks(length: int, past: int, min_distance: int, max_distance: int) -> Iterator[QueryChunk]:
    """Yield the pieces in which a sequence of `length` queries is computed, behind `past` keys."""
    for begin in range(past, past + length, CHUNK_LENGTH):
        end = min(begin + CHUNK_LENGTH, past + length)
        first = max(0, begin - max_distance)
        last = min(end - min(min_distance, 0), past + length)
        yield QueryChunk(
            start=begin,
            stop=end,
            key_start=first,
            key_stop=last,
            min_distance=max(min_distance, begin - (last - 1)),
            max_distance=min(max_distance, end - 1 - first),
        )


class WindowInputs(NamedTuple):
    """Queries, keys and values (heads, batch, positions, head_width), and the tensors that go with them.

    Queries are scaled, and belong to the last keys. `vectors` (distances, head_width) belong to distances,
    the greatest first; `fading` (heads, 1, 1, distances) is added to scores; every query sees `extra_keys`
    and `extra_values` (heads, n, head_width). `mask` (batch, keys) is true where a key is valid.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    vectors: Tensor | None = None
    fading: Tensor | None = None
    extra_keys: Tensor | None = None
    extra_values: Tensor | None = None
    mask: Tensor | None = None

    @property
    def past(self) -> int:
        """The number of keys in front of the first query."""
        return self.k.shape[2] - self.q.shape[2]

    @property
    def num_extra(self) -> int:
        """The number of keys that every query sees."""
        return 0 if self.extra_keys is None else self.extra_keys.shape[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowForm:
    """The pieces of a window, and the computation in each.

    `pos_values` adds vectors of distances to values; `cap` limits the scores by content, 0 means none;
    `first_sees_nothing` says that the first query of a sequence sees no key. Where weights are dropped, the
    others are multiplied by `kept_scale`.
    """

    pieces: tuple[QueryChunk, ...]
    pos_values: bool
    first_sees_nothing: bool
    cap: float = 0.0
    kept_scale: float = 1.0

    @property
    def max_distance(self) -> int:
        """The greatest distance in any piece, which belongs to the first vector."""
        return max(piece.max_distance for piece in self.pieces)

    def distances(self, piece: QueryChunk) -> slice:
        """Return where the distances of a piece are among all."""
        first = self.max_distance - piece.max_distance
        return slice(first, first + piece.distance_count)

    def keyless(self, piece: QueryChunk) -> bool:
        """Return whether the first query of a piece has nothing to see."""
        return self.first_sees_nothing and piece.start == 0


Kept = Sequence[Tensor]
"""What weights of each piece (heads, batch, queries, keys and extra ones) are multiplied by; empty: nothing.

True and false, or factors.
"""


def skew(by_distance: Tensor, piece: QueryChunk, padding: float | None = None) -> Tensor:
    """Lay scores (…, queries, distances) out as (…, queries, keys); a key outside of the window gets padding.

    Row t of the result begins t places further left in its row than row 0. With rows one longer than a step
    that is a plain view; what it meets beyond a row's end is padding, by default a masked score.
    """
    rows, width = piece.query_count, piece.padded_width
    value = masked_score(by_distance) if padding is None else padding
    padded = functional.pad(by_distance, (0, width - piece.distance_count), value=value)
    flat = padded.flatten(-2).narrow(-1, piece.shift, rows * (width - 1))
    return flat.reshape(*padded.shape[:-1], width - 1)[..., : piece.key_count]


def unskew(weights: Tensor, piece: QueryChunk) -> Tensor:
    """Lay weights (…, queries, keys) out as (…, queries, distances), the furthest distance first."""
    rows, shift = piece.query_count, piece.shift
    width = max(piece.key_count + shift, rows + piece.distance_count - 1 - shift)
    padded = functional.pad(weights, (shift, width - shift - piece.key_count, 0, 1))
    flat = padded.flatten(-2).narrow(-1, 0, rows * (width + 1))
    return flat.reshape(*weights.shape[:-1], width + 1)[..., : piece.distance_count]


def masked_score(scores: Tensor) -> float:
    """Return a score without weight in a softmax; it is finite, so that a query may see nothing."""
    return torch.finfo(scores.dtype).min / 4
