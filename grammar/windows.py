"""Windows over the past: which positions a query sees, in which pieces they are computed, what that costs.

A distance is that from a query back to a key, negative for keys to its right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .vocabulary import Context, Cost, Reach

PIECE = 128
"""Queries are taken in pieces as long as the span, but not shorter than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The positions that a query sees: those at the distances from `nearest` to `furthest`.

    In a causal model a span has so many distances, from 1, or from 0 if the position `itself` is in it. Else
    it reaches so far to both sides. `ramp` is that of an adaptive span, None for a fixed one.
    """

    span: int
    head_width: int
    causal: bool
    itself: bool
    relative: bool
    ramp: int | None
    pos_values: bool

    @property
    def furthest(self) -> int:
        """The greatest distance, to the left."""
        return self.span - 1 if self.causal and self.itself else self.span

    @property
    def nearest(self) -> int:
        """The smallest distance; below 0 it is that to the right."""
        return (0 if self.itself else 1) if self.causal else -self.span

    @property
    def reach(self) -> Reach:
        """The tokens that can move an output; of an adaptive span, at its most."""
        return Reach(left=self.furthest, right=max(0, -self.nearest))

    @property
    def rows(self) -> int:
        """How many distances there are."""
        return self.furthest - self.nearest + 1

    @property
    def shared(self) -> str:
        """What the model calls the position vectors, one for each distance, that equal windows share."""
        itself = ", self=true" if self.causal and self.itself else ""
        return f"positions of span={self.span}, head_width={self.head_width}{itself}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Queries from `start` to `stop` and the keys that any of them can see, all counted from the first key.

    The distances between them go from `near` to `far`.
    """

    start: int
    stop: int
    first_key: int
    last_key: int
    near: int
    far: int

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return self.stop - self.start

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return self.last_key - self.first_key

    @property
    def distances(self) -> int:
        """How many distances there are between them; none where a first position sees nothing."""
        return max(0, self.far - self.near + 1)


def pieces(length: int, past: int, nearest: int, furthest: int) -> Iterator[Piece]:
    """The pieces in which a sequence is computed, behind so many past keys."""
    size = max(furthest, PIECE)
    for begin in range(past, past + length, size):
        end = min(begin + size, past + length)
        first = max(0, begin - furthest)
        last = min(end - min(nearest, 0), past + length)
        yield Piece(
            start=begin,
            stop=end,
            first_key=first,
            last_key=last,
            near=max(nearest, begin - (last - 1)),
            far=min(furthest, end - 1 - first),
        )


def context_cost(
    window: Window, context: Context, *, heads: int, queries: int | None = None, beside: int = 0
) -> Cost:
    """Projections, products within the window, and the weights that training keeps; a span for each head.

    `queries` is how many heads the queries have if not `heads`; the softmax is also over so many persistent
    vectors `beside`, whose own cost is not in this.
    """
    length, past = context.length, min(context.past, max(0, window.furthest))
    every = list(pieces(length, past, window.nearest, window.furthest))
    inner = heads * window.head_width
    outer = (heads if queries is None else queries) * window.head_width
    keys = length + past
    return Cost(
        parameters=2 * context.width * (inner + outer) + (0 if window.ramp is None else heads),
        flops=4 * context.width * (length * outer + keys * inner) + _products(window, every, inner, length),
        shared={window.shared: window.rows * window.head_width} if window.relative else {},
        window=2 * inner * window.furthest,
        saved=2 * length * outer
        + 2 * keys * inner
        + (keys * context.width if past else 0)
        + _weights(window, every, heads, beside, context),
        saved_once=_once(window, every, heads, beside),
    )


def _products(window: Window, every: list[Piece], inner: int, length: int) -> int:
    """The operations of queries by keys and by positions, and of weights by values."""
    pairs = 2 * sum(piece.queries * piece.keys for piece in every)
    if window.relative:
        pairs += length * _used(every)
    if window.pos_values:
        pairs += sum(piece.queries * piece.distances for piece in every)
    return 2 * inner * pairs


def _used(every: list[Piece]) -> int:
    """How many distances there are in any of the pieces."""
    return max(0, max(piece.far for piece in every) - min(piece.near for piece in every) + 1)


def _weights(window: Window, every: list[Piece], heads: int, beside: int, context: Context) -> int:
    """The numbers that training keeps of the weights: three times as many if some are dropped.

    To that come the weights by distance, for positions on values.
    """
    kept = 3 if context.attention_dropout else 1
    found = sum(kept * heads * piece.queries * (piece.keys + beside) for piece in every)
    for piece in every:
        if window.pos_values:
            found += heads * piece.queries * piece.distances
    return found


def sees_nothing(window: Window, piece: Piece) -> bool:
    """Whether the first query of the piece has no key to see."""
    return piece.start == 0 and window.nearest > 0


def _once(window: Window, every: list[Piece], heads: int, beside: int) -> int:
    """What training keeps of each batch.

    Of a query that sees nothing, a byte for each of its piece; of spans that fade, two numbers and a byte for
    each head and distance.
    """
    found = sum((piece.queries + 3) // 4 for piece in every if not beside and sees_nothing(window, piece))
    return found if window.ramp is None else found + heads * _used(every) * 9 // 4
