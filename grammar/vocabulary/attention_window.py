"""Windows over the past: which positions a query sees, in which pieces they are computed, what that costs.

A distance is that from a query back to a key, negative for keys to its right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .spec import Reach

CHUNK_LENGTH = 128
"""Queries are taken in pieces of this length."""

MAX_UNFUSED_LENGTH = 64
"""Up to so many keys a CPU computes plain products and keeps their weights; the fused kernel keeps none."""

MIN_FLEX_HEAD_WIDTH = 16
"""FlexAttention, which computes windows on a GPU, multiplies no narrower heads."""

MIN_FLEX_KEYS = 128
"""Fewer are but one of FlexAttention's blocks."""

MAX_WHOLE_SCORES = 512
"""Of up to so many scores of a query a CPU computes plain products of all heads at once, of more in tiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The positions that a query sees: those at the distances from `min_distance` to `max_distance`.

    In a causal model there are `span` distances, from 1 on, or from 0 on where the window `includes_self`;
    else the window reaches `span` positions to both sides. `ramp` is that of an adaptive
    span, None for a fixed one.
    """

    span: int
    head_width: int
    causal: bool
    includes_self: bool
    relative: bool
    ramp: int | None
    pos_values: bool

    @property
    def max_distance(self) -> int:
        """The greatest distance, to the left."""
        return self.span - 1 if self.causal and self.includes_self else self.span

    @property
    def min_distance(self) -> int:
        """The smallest distance; below 0 it is that to the right."""
        return (0 if self.includes_self else 1) if self.causal else -self.span

    @property
    def reach(self) -> Reach:
        """The tokens that can move an output; of an adaptive span, at its most."""
        return Reach(left=self.max_distance, right=max(0, -self.min_distance))

    def numbers(self, heads: int) -> int:
        """Return the numbers in the past keys and values that generation keeps."""
        return 2 * heads * self.head_width * self.max_distance

    @property
    def distance_count(self) -> int:
        """How many distances there are."""
        return self.max_distance - self.min_distance + 1

    @property
    def shared_key(self) -> str:
        """What the model calls the position vectors, one for each distance, that equal windows share."""
        itself = ", self=true" if self.causal and self.includes_self else ""
        return f"positions of span={self.span}, head_width={self.head_width}{itself}"


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
        """How many queries there are."""
        return self.stop - self.start

    @property
    def key_count(self) -> int:
        """How many keys there are."""
        return self.key_stop - self.key_start

    @property
    def distance_count(self) -> int:
        """How many distances there are between them; none where a first position sees nothing."""
        return max(0, self.max_distance - self.min_distance + 1)

    @property
    def shift(self) -> int:
        """How many of its distances lie before the first key, for the first query."""
        return self.max_distance - (self.start - self.key_start)

    @property
    def padded_width(self) -> int:
        """How wide a row of scores by distance is made before it is laid out for keys."""
        distances = self.query_count + self.distance_count - 1 - self.shift
        return max(self.key_count + max(self.shift, 1), distances)


def iter_chunks(length: int, past: int, min_distance: int, max_distance: int) -> Iterator[QueryChunk]:
    """The pieces in which a sequence of `length` queries is computed, behind `past` keys."""
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


def has_tiles(chunks: Sequence[QueryChunk], extra: int, cap: float) -> bool:
    """Whether a CPU computes a window with `extra` keys in tiles; with a cap on scores it never does."""
    return not cap and max(piece.key_count for piece in chunks) + extra > MAX_WHOLE_SCORES


def has_flex(window: Window, keys: int) -> bool:
    """Whether FlexAttention computes a window of so many keys on a GPU, where no weights are dropped."""
    return keys >= MIN_FLEX_KEYS and window.head_width >= MIN_FLEX_HEAD_WIDTH and not window.pos_values


def _count_distances(chunks: list[QueryChunk]) -> int:
    """How many distances there are in any of the pieces."""
    return max(
        0, max(piece.max_distance for piece in chunks) - min(piece.min_distance for piece in chunks) + 1
    )


def has_keyless_query(window: Window, chunk: QueryChunk) -> bool:
    """Whether the first query of the piece has no key to see."""
    return chunk.start == 0 and window.min_distance > 0
