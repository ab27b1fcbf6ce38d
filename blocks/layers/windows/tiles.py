"""Attention within a window, in tiles that fit in a processor's cache.

A tile has the scores of some queries of a head, (rows, keys and extra keys). One product writes the scores by
content, and another product the scores of the extra keys. The product with the vectors of distances adds to a
view of the tile: each row of the view begins one place further right than the row before. Training keeps the
weights and, with dropout, a byte for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ...core.operations import SavedContext
from .pieces import Kept, QueryChunk, WindowForm, WindowInputs, masked_score, skew, unskew

_MAX_TILE = 2**17
"""The maximum size of a tile with several sequences: half of a second-level cache."""

_NUM_INPUTS = len(WindowInputs._fields)


def window_tiles(form: WindowForm, given: WindowInputs, kept: Kept = ()) -> Tensor:
    """Return the output for each query, (heads, batch, queries, head_width), by tiles on a CPU.

    `form.cap` is ignored.
    """
    return _Tiles.apply(form, torch.is_grad_enabled(), *given, *kept)[0]


class _Tile(NamedTuple):
    """A tile: the queries of one piece and one head, in some sequences of the batch."""

    form: WindowForm
    given: WindowInputs
    piece: QueryChunk
    head: int
    batch: slice
    outside_band: tuple[Tensor, Tensor]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return (sequences, queries, keys including extra keys)."""
        keys = self.piece.key_count + self.given.num_extra
        return self.batch.stop - self.batch.start, self.piece.query_count, keys

    @property
    def is_band(self) -> bool:
        """Return whether each query has a key at every distance, so that `band` copies nothing."""
        piece = self.piece
        begins = piece.max_distance == piece.start - piece.key_start
        return begins and piece.query_count - 1 + piece.distance_count <= piece.key_count

    @property
    def extra_keys(self) -> Tensor:
        assert self.given.extra_keys is not None, "the caller checks that there are extra keys"
        return self.given.extra_keys[self.head]

    @property
    def extra_values(self) -> Tensor:
        assert self.given.extra_values is not None, "the caller checks that there are extra keys"
        return self.given.extra_values[self.head]

    @property
    def vectors(self) -> Tensor | None:
        """Return the distance vectors of the piece, (sequences, distances, head_width), if any."""
        vectors = self.given.vectors
        return None if vectors is None else vectors[self.distances].expand(self.shape[0], -1, -1)

    @property
    def distances(self) -> slice:
        return self.form.distances(self.piece)

    def of_queries(self, numbers: Tensor) -> Tensor:
        """Return the rows that belong to the tile's queries, (sequences, queries, width)."""
        past = self.given.past
        return numbers[self.head, self.batch, self.piece.start - past : self.piece.stop - past]

    def of_keys(self, numbers: Tensor) -> Tensor:
        """Return the rows that belong to the tile's keys, (sequences, keys, width)."""
        return numbers[self.head, self.batch, self.piece.key_start : self.piece.key_stop]

    def within(self, numbers: Tensor) -> Tensor:
        """Return the columns of the window's keys, as a view."""
        return numbers[:, :, : self.piece.key_count]

    def outside(self, numbers: Tensor) -> Tensor:
        """Return the columns of the extra keys, as a view (sequences · queries, n)."""
        return numbers.view(-1, numbers.shape[-1])[:, self.piece.key_count :]

    def band(self, numbers: Tensor) -> Tensor:
        """Return a view by distance, (sequences, queries, distances), if `is_band`."""
        sequences, rows, keys = numbers.shape
        shape, strides = (sequences, rows, self.piece.distance_count), (rows * keys, keys + 1, 1)
        return numbers.as_strided(shape, strides, numbers.storage_offset())

    def by_distance(self, numbers: Tensor) -> Tensor:
        """Return scores or weights by distance, as a view if possible. Extra keys are left out."""
        return self.band(numbers) if self.is_band else unskew(self.within(numbers), self.piece)

    def score(self, q: Tensor, scores: Tensor) -> None:
        """Write the scores of queries (sequences, queries, head_width) into `scores`."""
        within, mask = self.within(scores), self.given.mask
        torch.bmm(q, self.of_keys(self.given.k).mT, out=within)
        if self.given.num_extra:
            torch.mm(q.flatten(0, 1), self.extra_keys.T, out=self.outside(scores))
        self._add_distances(q, scores)
        if mask is not None:
            keys = mask[self.batch, None, self.piece.key_start : self.piece.key_stop]
            within.masked_fill_(~keys, masked_score(scores))

    def _add_distances(self, q: Tensor, scores: Tensor) -> None:
        vectors, fading = self.vectors, self.given.fading
        remaining = None if fading is None else fading[self.head, 0, :, self.distances]
        if not self.is_band:
            shape = (1, self.piece.query_count, self.piece.distance_count)
            found = q.new_zeros(shape) if vectors is None else torch.bmm(q, vectors.mT)
            found = found if remaining is None else found + remaining
            self.within(scores).add_(skew(found, self.piece))
            return
        band = self.band(scores)
        if vectors is not None:
            band.baddbmm_(q, vectors.mT)
        if remaining is not None:
            band.add_(remaining)
        first, last = self.outside_band
        scores[:, :, : first.shape[1]].add_(first)
        scores[:, :, self.piece.distance_count : self.piece.key_count].add_(last)

    def read(self, weights: Tensor) -> Tensor:
        """Return the weighted sum of values of each query, (sequences, queries, head_width)."""
        values, inside = self.of_keys(self.given.v), self.within(weights)
        if self.given.num_extra:
            y = torch.mm(self.outside(weights), self.extra_values).view(*weights.shape[:2], -1)
            y.baddbmm_(inside, values)
        else:
            y = torch.bmm(inside, values)
        if self.form.pos_values and (vectors := self.vectors) is not None:
            y.baddbmm_(self.by_distance(weights), vectors)
        if self.form.keyless(self.piece):  # its softmax is over hidden keys only, so it is uniform, not zero
            y[:, 0] = 0.0
        return y


def _outside(piece: QueryChunk, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return two masks that hide keys outside the window, to be added to scores, if `is_band`.

    Query t does not see the first t keys, nor the keys after its nearest key.
    """
    rows, beyond = piece.query_count, piece.key_count - piece.distance_count
    hidden = like.new_full((rows, max(rows, beyond)), masked_score(like))
    return hidden[:, : min(rows, piece.key_count)].tril(-1), hidden[:, :beyond].triu()


def _iter_tiles(
    form: WindowForm, given: WindowInputs, piece: QueryChunk, *, one: bool
) -> Iterator[tuple[_Tile, Tensor]]:
    """Yield the tiles of a piece, each with memory for its scores, which all tiles share.

    With `one`, yield only the first tile, which is enough to measure memory on the meta device.
    """
    heads, batch = given.q.shape[:2]
    rows = (piece.query_count, piece.key_count + given.num_extra)
    most = max(1, min(batch, _MAX_TILE // max(1, rows[0] * rows[1])))
    buffer, outside = given.q.new_empty(most, *rows), _outside(piece, given.q)
    for head in range(heads):
        for start in range(0, batch, most):
            here = slice(start, min(start + most, batch))
            tile = _Tile(form, given, piece, head, here, outside)
            yield tile, buffer[: tile.shape[0]]
            if one:
                return


class _Tiles(torch.autograd.Function):
    @staticmethod
    def forward(form: WindowForm, keeps: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs (heads, batch, queries, head_width) and, if it `keeps` them, the weights.

        In memory, the heads of each query lie side by side, so heads are merged without a copy.
        """
        given, kept = WindowInputs(*tensors[:_NUM_INPUTS]), tensors[_NUM_INPUTS:]
        heads, batch, length, head_width = given.q.shape
        y = given.q.new_empty(batch, length, heads, head_width).permute(2, 0, 1, 3)
        every: list[Tensor] = []
        for number, piece in enumerate(form.pieces):
            weights: Tensor | None = None
            if keeps:
                keys = piece.key_count + given.num_extra
                weights = given.q.new_empty(heads, batch, piece.query_count, keys)
                every.append(weights)
            for tile, scores in _iter_tiles(form, given, piece, one=keeps and given.q.is_meta):
                tile.score(tile.of_queries(given.q).contiguous(), scores)
                found = scores.softmax(-1) if weights is None else weights[tile.head, tile.batch]
                if weights is not None:
                    torch.softmax(scores, -1, out=found)
                if kept:
                    found = torch.mul(found, kept[number][tile.head, tile.batch], out=scores)
                seen = tile.read(found)
                tile.of_queries(y).copy_(seen if not kept else seen.mul_(form.kept_scale))
        return (y, *every)

    @staticmethod
    def setup_context(ctx: SavedContext, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.form, tensors = inputs[0], inputs[2:]
        ctx.mark_non_differentiable(*output[1:])  # the weights are outputs only so that they can be saved
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *output)

    @staticmethod
    @once_differentiable
    def backward(ctx: SavedContext, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:  # pyright: ignore -- decorated
        """Return the gradients. That of a score of weight p is p (dp − Σ p dp), where Σ p dp = y · dy."""
        form, pieces = ctx.form, len(ctx.form.pieces)
        tensors, y, weights = (
            ctx.saved_tensors[: -pieces - 1],
            ctx.saved_tensors[-pieces - 1],
            ctx.saved_tensors[-pieces:],
        )
        given, kept = WindowInputs(*tensors[:_NUM_INPUTS]), tensors[_NUM_INPUTS:]
        by = gradients[0]
        if by is None:
            return (None,) * (2 + len(tensors))
        into = _gradients_of(given)
        for number, piece in enumerate(form.pieces):
            for tile, buffer in _iter_tiles(form, given, piece, one=given.q.is_meta):
                here = (tile.head, tile.batch)
                one = kept[number][here] if kept else None
                _add_gradients(tile, into, (by, y), (weights[number][here], one), buffer)
        return (None, None, *into, *(None for _ in kept))


def _gradients_of(given: WindowInputs) -> WindowInputs:
    """Return zeros in the shapes of the inputs, to which the backward pass adds."""
    given = given._replace(mask=None)
    tensors = {name: each for name, each in given._asdict().items() if each is not None}
    return given._replace(**{name: each.new_zeros(each.shape) for name, each in tensors.items()})


def _add_gradients(
    tile: _Tile,
    into: WindowInputs,
    output: tuple[Tensor, Tensor],
    weights: tuple[Tensor, Tensor | None],
    buffer: Tensor,
) -> None:
    """Add a tile's contribution to the gradients of the inputs.

    `output` has the output's gradient and the output, `weights` the tile's weights and its dropout mask.
    """
    given, (p, kept) = tile.given, weights
    q, dy = tile.of_queries(given.q).contiguous(), tile.of_queries(output[0]).contiguous()
    if tile.form.keyless(tile.piece):
        # not in place, because dy may share memory with the gradient that autograd has passed
        dy = dy.index_fill(1, dy.new_zeros(1, dtype=torch.int64), 0.0)
    level = (dy * tile.of_queries(output[1])).sum(-1, keepdim=True)
    read = p
    if kept is not None:
        dy, read = dy * tile.form.kept_scale, p * kept
    _add_by_key(tile, (into.v, into.extra_values), dy, read)
    if tile.form.pos_values and into.vectors is not None:
        _add_by_distance(tile, into.vectors, dy, tile.by_distance(read))
    ds = _by_weights(tile, dy, buffer)
    if kept is not None:
        ds.mul_(kept)
    ds.sub_(level).mul_(p)
    _add_to_scores(tile, into, q, ds)


def _by_weights(tile: _Tile, dy: Tensor, buffer: Tensor) -> Tensor:
    within = tile.within(buffer)
    torch.bmm(dy, tile.of_keys(tile.given.v).mT, out=within)
    if tile.given.num_extra:
        torch.mm(dy.flatten(0, 1), tile.extra_values.T, out=tile.outside(buffer))
    if tile.form.pos_values and (vectors := tile.vectors) is not None:
        if tile.is_band:
            tile.band(buffer).baddbmm_(dy, vectors.mT)
        else:
            within.add_(skew(torch.bmm(dy, vectors.mT), tile.piece, 0.0))
    return buffer


def _add_to_scores(tile: _Tile, into: WindowInputs, q: Tensor, ds: Tensor) -> None:
    """Add to the gradients of all that scores depend on; `ds` is the gradient of the scores."""
    _add_by_key(tile, (into.k, into.extra_keys), q, ds)
    within, keys = tile.within(ds), tile.of_keys(tile.given.k)
    if into.extra_keys is None:
        dq = torch.bmm(within, keys)
    else:
        dq = torch.mm(tile.outside(ds), tile.extra_keys).view(q.shape)
        dq.baddbmm_(within, keys)
    if into.vectors is not None or into.fading is not None:
        by_distance = tile.by_distance(ds)
        if into.vectors is not None and (vectors := tile.vectors) is not None:
            dq.baddbmm_(by_distance, vectors)
            _add_by_distance(tile, into.vectors, q, by_distance)
        if into.fading is not None:
            into.fading[tile.head, 0, 0, tile.distances] += by_distance.sum((0, 1))
    tile.of_queries(into.q).copy_(dq)


def _add_by_key(tile: _Tile, into: tuple[Tensor, Tensor | None], rows: Tensor, numbers: Tensor) -> None:
    """Add rowsᵀ · numbers (queries, keys) to the gradients of keys or values, and of the extra ones."""
    keys, extra = into
    found = torch.bmm(rows.mT, numbers)
    tile.of_keys(keys).mT.add_(tile.within(found))
    if extra is not None:
        extra[tile.head].mT.add_(found[:, :, tile.piece.key_count :].sum(0))


def _add_by_distance(tile: _Tile, into: Tensor, rows: Tensor, by_distance: Tensor) -> None:
    """Add rowsᵀ · by_distance (sequences, queries, distances) to the gradients of distance vectors."""
    across = into[tile.distances].mT
    for row, numbers in zip(rows, by_distance, strict=True):
        across.addmm_(row.mT, numbers)
