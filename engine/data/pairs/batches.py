"""Batches of pairs of similar lengths, starting at any batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from ...core.seeds import derive_seed
from ...corpora import DataError
from .corpus import PairSplit


class PairBatch(NamedTuple):
    """Whole pairs, padded at the end with 0, int64.

    `sources` (batch, n) and `targets` (batch, m) end in an end, and have `source_lengths` and
    `target_lengths` (batch,) numbers with it. `pairs` says which pairs of the split these are. All targets
    together stand for `words` words.
    """

    sources: Tensor
    source_lengths: Tensor
    targets: Tensor
    target_lengths: Tensor
    pairs: Tensor
    words: int


def iter_pair_batches(
    split: PairSplit, *, batch_size: int, max_length: int, seed: int, width: int = 5, position: int = 0
) -> Iterator[PairBatch]:
    """Endless batches from the batch number `position` on, which is all that resuming needs.

    The longer sides of a batch's pairs differ by less than `width`, except where one bucket ends and the
    next begins. Each pass draws its batches and their order from the seed and the number of the pass, and
    leaves out a random remainder that does not fill a batch. Pairs with a side of more than `max_length`
    tokens, not counting its end, are always left out.
    """
    lengths = _max_side_lengths(split)
    fitting = torch.nonzero(lengths <= max_length + 1).flatten()
    batches = len(fitting) // batch_size
    if not batches:
        raise DataError(
            f"expected at least {batch_size} pairs of at most {max_length} tokens, got {len(fitting)}"
        )
    drawn, chosen = -1, fitting
    for number in count(position):
        if number // batches != drawn:
            drawn = number // batches
            generator = torch.Generator().manual_seed(derive_seed(seed, f"pairs of pass {drawn}"))
            kept = fitting[torch.randperm(len(fitting), generator=generator)[: batches * batch_size]]
            buckets = torch.div(lengths[kept], width, rounding_mode="floor")
            rows = kept[torch.argsort(buckets, stable=True)].view(batches, batch_size)
            chosen = rows[torch.randperm(batches, generator=generator)]
        yield collate(split, chosen[number % batches].tolist())


def iter_pair_eval(
    split: PairSplit, *, batch_size: int, max_length: int | None = None
) -> Iterator[PairBatch]:
    """Each pair of at most `max_length` tokens once, short ones first; the last batch may be smaller."""
    lengths = _max_side_lengths(split)
    order = torch.argsort(lengths, stable=True)
    if max_length is not None:
        order = order[lengths[order] <= max_length + 1]
    for place in range(0, len(order), batch_size):
        yield collate(split, order[place : place + batch_size].tolist())


def collate(split: PairSplit, chosen: Sequence[int]) -> PairBatch:
    """The batch of the pairs of these numbers."""
    sources, source_lengths = split.source.padded_lines(chosen)
    targets, target_lengths = split.target.padded_lines(chosen)
    numbers = torch.tensor(chosen)
    words = int(split.target.line_words[numbers].sum())
    return PairBatch(sources, source_lengths, targets, target_lengths, numbers, words)


def _max_side_lengths(split: PairSplit) -> Tensor:
    """The length of the longer side of each pair."""
    return torch.maximum(split.source.line_lengths, split.target.line_lengths)
