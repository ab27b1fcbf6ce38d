"""What attention within a window is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ....grammar.vocabulary.attention_window import QueryChunk


class WindowInputs(NamedTuple):
    """Queries, keys and values (heads, batch, positions, head_width), and what stands beside them.

    Queries are scaled, and are those of the last keys. `vectors` (distances, head_width) belong to distances,
    the greatest first; `fading` (heads, 1, 1, distances) is added to scores; `extra_keys` and `extra_values`
    (heads, n, head_width) are seen by every query. `mask` (batch, keys) is true where a key is valid.
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
        """How many keys stand in front of the first query."""
        return self.k.shape[2] - self.q.shape[2]

    @property
    def num_extra(self) -> int:
        """How many keys every query sees."""
        return 0 if self.extra_keys is None else self.extra_keys.shape[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowForm:
    """How a window is computed: its pieces, and what is done in each.

    `pos_values` adds vectors of distances to values; a `cap` is of the scores by content, 0 for none;
    `first_sees_nothing` says that the first query of a sequence has nothing to see. Where weights are
    dropped, the others are multiplied by `kept_scale`.
    """

    pieces: tuple[QueryChunk, ...]
    pos_values: bool
    first_sees_nothing: bool
    cap: float = 0.0
    kept_scale: float = 1.0

    @property
    def max_distance(self) -> int:
        """The greatest distance in any piece, which is that of the first vector."""
        return max(piece.max_distance for piece in self.pieces)

    def distances(self, piece: QueryChunk) -> slice:
        """Where the distances of a piece are among all."""
        first = self.max_distance - piece.max_distance
        return slice(first, first + piece.distance_count)

    def keyless(self, piece: QueryChunk) -> bool:
        """Whether the first query of a piece has nothing to see."""
        return self.first_sees_nothing and piece.start == 0


Kept = Sequence[Tensor]
"""What weights of each piece (heads, batch, queries, keys and extra ones) are multiplied by; empty: nothing.

True and false, or factors.
"""
