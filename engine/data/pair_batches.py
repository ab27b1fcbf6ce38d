"""Batches of pairs of similar lengths, starting at any batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.random_streams import derive_seed
from ..corpora.files import DataError
from .sentence_pairs import PairSplit


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
    split: PairSplit,
    *,
    batch_size: int,
    batch_tokens: int | None = None,
    max_length: int,
    seed: int,
    width: int = 5,
    position: int = 0,
) -> Iterator[PairBatch]:
    """Yield endless batches from batch number `position` on, which is all that resuming needs.

    The longer sides of a batch's pairs differ by less than `width`, except where one bucket ends and the
    next begins. Each pass draws its batches and their order from the seed and the number of the pass, and
    leaves out a random remainder that does not fill a batch. With `batch_tokens` batches are filled as
    `fill_batches` says, and a pass has each pair. Pairs with a side of more than `max_length` tokens, not
    counting its end, are always left out.
    """
    lengths = _max_side_lengths(split)
    fitting = torch.nonzero(lengths <= max_length + 1).flatten()
    sizes = [batch_size] * (len(fitting) // batch_size)
    if batch_tokens is not None:
        sizes = fill_batches(lengths[fitting], batch_size, batch_tokens)
        width = 1
    if not sizes:
        least = batch_size if batch_tokens is None else 1
        raise DataError(f"expected at least {least} pairs of at most {max_length} tokens, got {len(fitting)}")
    drawn, chosen = -1, list[Tensor]()
    for number in count(position):
        if number // len(sizes) != drawn:
            drawn = number // len(sizes)
            generator = torch.Generator().manual_seed(derive_seed(seed, f"pairs of pass {drawn}"))
            kept = fitting[torch.randperm(len(fitting), generator=generator)[: sum(sizes)]]
            buckets = torch.div(lengths[kept], width, rounding_mode="floor")
            rows = kept[torch.argsort(buckets, stable=True)].split(sizes)
            chosen = [rows[place] for place in torch.randperm(len(sizes), generator=generator).tolist()]
        yield collate(split, chosen[number % len(sizes)].tolist())


def fill_batches(lengths: Tensor, batch_size: int, batch_tokens: int) -> list[int]:
    """Return the number of pairs in each batch, from the shortest pairs to the longest.

    As many as fit into `batch_tokens` where all are as long as the longest of them, at most `batch_size`, and
    one at least. It depends on the lengths alone, so that all passes have as many batches. Batches are filled
    from the longest pair on; a few short ones that are left over share two batches evenly with those before.
    """
    longest_first = torch.sort(lengths, descending=True).values.tolist()
    sizes, place = list[int](), 0
    while place < len(longest_first):
        sizes.append(max(1, min(batch_size, batch_tokens // longest_first[place])))
        place += sizes[-1]
    if sizes:
        sizes[-1] -= place - len(longest_first)
    if len(sizes) > 1 and sizes[-1] < sizes[-2]:
        both = sizes[-2] + sizes[-1]
        sizes[-2:] = [both - both // 2, both // 2]
    return sizes[::-1]


def iter_pair_eval(
    split: PairSplit, *, batch_size: int, batch_tokens: int | None = None, max_length: int | None = None
) -> Iterator[PairBatch]:
    """Yield each pair of at most `max_length` tokens once, short ones first; the last batch may be smaller.

    With `batch_tokens` batches are filled as `fill_batches` says.
    """
    lengths = _max_side_lengths(split)
    order = torch.argsort(lengths, stable=True)
    if max_length is not None:
        order = order[lengths[order] <= max_length + 1]
    sizes = batch_size if batch_tokens is None else fill_batches(lengths[order], batch_size, batch_tokens)
    for rows in order.split(sizes) if len(order) else ():
        yield collate(split, rows.tolist())


def collate(split: PairSplit, chosen: Sequence[int]) -> PairBatch:
    """Return the batch of the pairs of these numbers."""
    sources, source_lengths = split.source.padded_lines(chosen)
    targets, target_lengths = split.target.padded_lines(chosen)
    numbers = torch.tensor(chosen)
    words = int(split.target.line_words[numbers].sum())
    return PairBatch(sources, source_lengths, targets, target_lengths, numbers, words)


def _max_side_lengths(split: PairSplit) -> Tensor:
    return torch.maximum(split.source.line_lengths, split.target.line_lengths)
