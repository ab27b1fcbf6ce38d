"""The computation of attention within a window, by matrix products over pieces of the queries.

A distance is measured from a query back to a key, negative for keys to its right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..core.attention_maps import is_recording, record_weights

CHUNK_LENGTH = 128
"""The number of queries in a piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChunk:
    """A piece of window attention: some queries in a row, and the keys that they see.

    The queries are from `start` to `stop`. All positions count from the first key of the sequence. Distances
    from queries to keys range from `min_distance` to `max_distance`.
    """

    start: int
    stop: int
    key_start: int
    key_stop: int
    min_distance: int
    max_distance: int

    @property
    def query_count(self) -> int:
        """Return the number of queries."""
        return self.stop - self.start

    @property
    def key_count(self) -> int:
        """Return the number of keys."""
        return self.key_stop - self.key_start

    @property
    def distance_count(self) -> int:
        """Return the number of distances in the piece; 0 if no query of the piece sees a key."""
        return max(0, self.max_distance - self.min_distance + 1)

    @property
    def shift(self) -> int:
        """Return how many distances of the first query point to places before the first key."""
        return self.max_distance - (self.start - self.key_start)

    @property
    def padded_width(self) -> int:
        """Return the padded length of a row of scores with which a view can shift the rows in `skew`."""
        distances = self.query_count + self.distance_count - 1 - self.shift
        return max(self.key_count + max(self.shift, 1), distances)


def iter_chunks(length: int, past: int, min_distance: int, max_distance: int) -> Iterator[QueryChunk]:
    """Split queries into pieces, and yield each with the keys that it sees.

    There are `length` queries after `past` keys.
    """
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
    """The tensors that window attention reads.

    q, k and v are (heads, batch, positions, head_width). Queries are scaled, and are at the positions of the
    last keys. `vectors` (distances, head_width) belong to distances, the greatest first; `fading` (heads, 1,
    1, distances) is added to scores; every query sees `extra_keys` and `extra_values` (heads, n, head_width).
    `mask` (batch, keys) is true where a key is valid.
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
        """Return the number of keys that come before the first query."""
        return self.k.shape[2] - self.q.shape[2]

    @property
    def num_extra(self) -> int:
        """Return the number of extra keys, which every query sees."""
        return 0 if self.extra_keys is None else self.extra_keys.shape[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowForm:
    """The pieces and the options of a window attention.

    `pos_values` adds vectors of distances to values; `cap` limits the products q · k, and 0 means no limit;
    `first_sees_nothing` says that the first query of a sequence sees no key. With dropout, kept weights are
    multiplied by `kept_scale`.
    """

    pieces: tuple[QueryChunk, ...]
    pos_values: bool
    first_sees_nothing: bool
    cap: float = 0.0
    kept_scale: float = 1.0

    @property
    def max_distance(self) -> int:
        """Return the greatest distance in any piece. The first position vector belongs to it."""
        return max(piece.max_distance for piece in self.pieces)

    def distances(self, piece: QueryChunk) -> slice:
        """Return a piece's distances as a slice of all distances, which are in descending order."""
        first = self.max_distance - piece.max_distance
        return slice(first, first + piece.distance_count)

    def keyless(self, piece: QueryChunk) -> bool:
        """Return whether the first query of a piece sees no key."""
        return self.first_sees_nothing and piece.start == 0


def skew(by_distance: Tensor, piece: QueryChunk, padding: float | None = None) -> Tensor:
    """Reshape scores by distance (…, queries, distances) to scores by key (…, queries, keys).

    Keys outside the window get padding. Row t of the result is shifted by t positions against row 0. With
    rows one element longer than their stride this is a view; elements beyond a row's end are padding, by
    default a masked score.
    """
    rows, width = piece.query_count, piece.padded_width
    value = masked_score(by_distance) if padding is None else padding
    padded = functional.pad(by_distance, (0, width - piece.distance_count), value=value)
    flat = padded.flatten(-2).narrow(-1, piece.shift, rows * (width - 1))
    return flat.reshape(*padded.shape[:-1], width - 1)[..., : piece.key_count]


def unskew(weights: Tensor, piece: QueryChunk) -> Tensor:
    """Reshape weights (…, queries, keys) to (…, queries, distances), the greatest distance first."""
    rows, shift = piece.query_count, piece.shift
    width = max(piece.key_count + shift, rows + piece.distance_count - 1 - shift)
    padded = functional.pad(weights, (shift, width - shift - piece.key_count, 0, 1))
    flat = padded.flatten(-2).narrow(-1, 0, rows * (width + 1))
    return flat.reshape(*weights.shape[:-1], width + 1)[..., : piece.distance_count]


def masked_score(scores: Tensor) -> float:
    """Return the score of a hidden key.

    Its softmax weight is zero. It is finite, so that a query without keys gives no NaN.
    """
    # a quarter, because a few such scores are added up where several masks hide the same key
    return torch.finfo(scores.dtype).min / 4


def window_products(form: WindowForm, given: WindowInputs, kept: Sequence[Tensor] = ()) -> Tensor:
    """Return the output for each query, (heads, batch, queries, head_width).

    `kept` has a dropout mask for the weights of each piece (heads, batch, queries, keys and extra keys); it
    is empty without dropout.
    """
    found: list[Tensor] = []
    maps: list[Tensor] = []
    for number, piece in enumerate(form.pieces):
        rows = slice(piece.start - given.past, piece.stop - given.past)
        keys = slice(piece.key_start, piece.key_stop)
        q = given.q[:, :, rows]
        scores = q @ given.k[:, :, keys].transpose(-1, -2)  # (heads, batch, queries, keys)
        scores = capped(scores, form.cap) + skew(_by_distance(form, given, q, piece), piece)
        if given.mask is not None:
            scores = scores.masked_fill(~given.mask[:, None, keys], masked_score(scores))
        if given.extra_keys is not None:
            scores = torch.cat([scores, _of_heads(q, given.extra_keys.transpose(1, 2))], -1)
        weights = torch.softmax(scores, -1)
        if is_recording():
            maps.append(_among_all_keys(form, given, weights, piece))
        if kept:
            weights = weights * kept[number] * form.kept_scale
        found.append(_values(form, given, weights, piece))
    if maps:
        record_weights(torch.cat(maps, 2).transpose(0, 1), persistent=given.num_extra)
    return found[0] if len(found) == 1 else torch.cat(found, 2)


def _among_all_keys(form: WindowForm, given: WindowInputs, weights: Tensor, piece: QueryChunk) -> Tensor:
    """Return a piece's weights (heads, batch, queries, all keys and extra keys), 0 outside of its window."""
    within, extra = weights.split([piece.key_count, given.num_extra], -1)
    if form.keyless(piece):
        within = within.clone()
        within[:, :, 0] = 0.0
    within = functional.pad(within, (piece.key_start, given.k.shape[2] - piece.key_stop))
    return torch.cat([within, extra], -1)


def _by_distance(form: WindowForm, given: WindowInputs, q: Tensor, piece: QueryChunk) -> Tensor:
    """Return the terms of scores by distance, the greatest first, (heads or 1, batch or 1, queries, ·)."""
    here = form.distances(piece)
    if given.vectors is None:
        scores = q.new_zeros(1, 1, piece.query_count, piece.distance_count)
    else:
        vectors = given.vectors[here]
        scores = (q.flatten(0, 2) @ vectors.T).view(*q.shape[:3], len(vectors))
    return scores if given.fading is None else scores + given.fading[..., here]


def _of_heads(rows: Tensor, maps: Tensor) -> Tensor:
    """Multiply (heads, batch, queries, n) by a matrix for each head, (heads, n, m)."""
    return (rows.flatten(1, 2) @ maps).view(*rows.shape[:-1], maps.shape[-1])


def _values(form: WindowForm, given: WindowInputs, weights: Tensor, piece: QueryChunk) -> Tensor:
    within, outside = weights.split([piece.key_count, weights.shape[-1] - piece.key_count], -1)
    y = within @ given.v[:, :, piece.key_start : piece.key_stop]
    if form.pos_values and given.vectors is not None and piece.distance_count:
        y = y + unskew(within, piece).contiguous() @ given.vectors[form.distances(piece)]
    if given.extra_values is not None:
        y = y + _of_heads(outside, given.extra_values)
    if form.keyless(piece):  # its softmax is over hidden keys only, so it is uniform, not zero
        first = torch.arange(piece.query_count, device=y.device) == 0
        y = y.masked_fill(first[:, None], 0.0)
    return y


def capped(scores: Tensor, cap: float) -> Tensor:
    """Return c tanh(s / c) for scores s and a cap c; a cap of 0 leaves the scores unchanged."""
    return cap * torch.tanh(scores / cap) if cap else scores
