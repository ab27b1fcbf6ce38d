"""Windows over the past: which positions a query sees, in which pieces they are computed, what that costs.

A distance is that from a query back to a key, negative for keys to its right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .spec import Cost, CostContext, Reach, Working

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


def window_attention_cost(
    window: Window,
    context: CostContext,
    *,
    heads: int,
    query_heads: int | None = None,
    kv_heads: int | None = None,
    persistent_vectors: int = 0,
    adds_to_output: bool = False,
    cap: float = 0.0,
) -> Cost:
    """Projections, products within the window, and what training keeps of it; a span for each head.

    `query_heads` is how many heads the queries have if not `heads`, and `kv_heads` how many are mapped for
    keys and values, each for several of the window's; the softmax is also over the
    `persistent_vectors`, whose own cost is not in this. A block that `adds_to_output` maps something else
    than what its window gives. A `cap` is of scores.
    """
    length, past = context.length, min(context.past, max(0, window.max_distance))
    every = list(iter_chunks(length, past, window.min_distance, window.max_distance))
    inner = heads * window.head_width
    outer = (heads if query_heads is None else query_heads) * window.head_width
    keys, mapped = length + past, (kv_heads or heads) * window.head_width
    held = _held(window, context, every, heads, persistent_vectors, cap=cap, adds_to_output=adds_to_output)
    return Cost(
        parameters=2 * context.width * (mapped + outer) + (0 if window.ramp is None else heads),
        flops=4 * context.width * (length * outer + keys * mapped) + _product_flops(window, every, inner),
        shared={window.shared_key: window.distance_count * window.head_width} if window.relative else {},
        window=2 * mapped * window.max_distance,
        saved=2 * length * outer + 2 * keys * inner + past * context.width + held.saved,
        saved_once=held.saved_once,
        working=Working(numbers=held.working),
    )


class _Held(NamedTuple):
    """What training holds of a window beside its queries, keys, values and output, as a Cost counts it."""

    saved: int
    saved_once: int
    working: int = 0


def _held(
    window: Window,
    context: CostContext,
    chunks: list[QueryChunk],
    heads: int,
    persistent_vectors: int,
    *,
    cap: float,
    adds_to_output: bool,
) -> _Held:
    """What is held by the way in which a device computes a window.

    Where fused attention takes scores by content alone, training keeps a sum for each query, what the pieces
    give before it is laid out for the last projection, and which keys they see.
    """
    keys, dropped = chunks[-1].key_stop, context.config.attention_dropout > 0
    plane = context.length * heads * window.head_width
    by_content = not (window.relative or window.ramp or persistent_vectors or cap)
    if context.on_gpu:
        if has_flex(window, keys + persistent_vectors) and not dropped:
            found = _held_by_flex(window, context, chunks, heads, persistent_vectors)
            return found._replace(saved=found.saved + (plane if heads > 1 or adds_to_output else 0))
    elif by_content and keys > MAX_UNFUSED_LENGTH and not dropped:
        relaid = plane if heads > 1 or len(chunks) > 1 else 0
        seen = sum(piece.query_count * piece.key_count for piece in chunks)
        return _Held(context.length * heads + relaid, seen)
    elif has_tiles(chunks, persistent_vectors, cap):
        saved = _saved_of_tiles(chunks, heads, persistent_vectors, context)
        spans = 0 if window.ramp is None else heads * _count_distances(chunks) * 13 // 4
        return _Held(saved + adds_to_output * plane, spans)
    return _held_by_products(window, context, chunks, heads, persistent_vectors, cap=cap)


def has_flex(window: Window, keys: int) -> bool:
    """Whether FlexAttention computes a window of so many keys on a GPU, where no weights are dropped."""
    return keys >= MIN_FLEX_KEYS and window.head_width >= MIN_FLEX_HEAD_WIDTH and not window.pos_values


def _held_by_flex(
    window: Window, context: CostContext, chunks: list[QueryChunk], heads: int, persistent_vectors: int
) -> _Held:
    """A sum for each query, scores by distance with their gradient, and what stands behind the keys.

    Of spans that fade a batch keeps two numbers and a byte for each head and distance.
    """
    distances = heads * _count_distances(chunks)
    by_distance = context.length * distances if window.relative else 0
    beside = 2 * persistent_vectors * heads * window.head_width
    spans = 0 if window.ramp is None else distances * 9 // 4
    return _Held(context.length * heads + by_distance + beside, spans, by_distance)


def _held_by_products(
    window: Window,
    context: CostContext,
    chunks: list[QueryChunk],
    heads: int,
    persistent_vectors: int,
    *,
    cap: float,
) -> _Held:
    """The weights, capped scores once more, and for a while what is held of the largest piece."""
    saved = _saved_weights(window, chunks, heads, persistent_vectors, context)
    saved += heads * sum(piece.query_count * piece.key_count for piece in chunks) if cap else 0
    working = heads * max(_working(window, piece, persistent_vectors) for piece in chunks)
    return _Held(saved, _saved_per_batch(window, chunks, heads, persistent_vectors), working)


def _working(window: Window, piece: QueryChunk, persistent_vectors: int) -> int:
    """The numbers that the gradient of a piece's weights holds for a while, for each head.

    That are gradients of weights and of scores; or scores by distance, padded, and as they are laid out for
    keys.
    """
    by_distance = window.relative or window.ramp is not None
    keys = piece.key_count + persistent_vectors
    return 2 * piece.query_count * max(keys, piece.padded_width if by_distance else 0)


def _product_flops(window: Window, chunks: list[QueryChunk], inner: int) -> int:
    """The operations of queries by keys and by positions, and of weights by values."""
    pairs = 2 * sum(piece.query_count * piece.key_count for piece in chunks)
    by_distance = sum(piece.query_count * piece.distance_count for piece in chunks)
    pairs += by_distance * (window.relative + window.pos_values)
    return 2 * inner * pairs


def _count_distances(chunks: list[QueryChunk]) -> int:
    """How many distances there are in any of the pieces."""
    return max(
        0, max(piece.max_distance for piece in chunks) - min(piece.min_distance for piece in chunks) + 1
    )


def _saved_of_tiles(
    chunks: list[QueryChunk], heads: int, persistent_vectors: int, context: CostContext
) -> int:
    """The numbers that training keeps of tiles: the weights, and a byte for each if some are dropped."""
    found = sum(heads * piece.query_count * (piece.key_count + persistent_vectors) for piece in chunks)
    return found + (found + 3) // 4 if context.config.attention_dropout else found


def _saved_weights(
    window: Window, chunks: list[QueryChunk], heads: int, persistent_vectors: int, context: CostContext
) -> int:
    """The numbers that training keeps of the weights: if some are dropped, twice as many and a byte for each.

    To that come the weights by distance, for positions on values, and of several pieces the queries once more
    where they meet position vectors or persistent ones.
    """
    found = sum(heads * piece.query_count * (piece.key_count + persistent_vectors) for piece in chunks)
    found = context.saved_weights(found)
    for piece in chunks:
        if window.pos_values:
            found += heads * piece.query_count * piece.distance_count
        if len(chunks) > 1:
            copies = window.relative + (persistent_vectors > 0)
            found += copies * piece.query_count * heads * window.head_width
    return found


def has_keyless_query(window: Window, chunk: QueryChunk) -> bool:
    """Whether the first query of the piece has no key to see."""
    return chunk.start == 0 and window.min_distance > 0


def _saved_per_batch(window: Window, chunks: list[QueryChunk], heads: int, persistent_vectors: int) -> int:
    """What training keeps of each batch.

    Of a query that sees nothing, a byte for each of its piece; of spans that fade, two numbers and a byte for
    each head and distance.
    """
    found = sum(
        (piece.query_count + 3) // 4
        for piece in chunks
        if not persistent_vectors and has_keyless_query(window, piece)
    )
    return found if window.ramp is None else found + heads * _count_distances(chunks) * 9 // 4
