"""Batches of sequences with their labels, starting at any batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ....studies.catalog.tasks import IGNORED
from ...core.seeds import derive_seed
from ...corpora import DataError
from .corpus import LabelledSplit


class LabelledBatch(NamedTuple):
    """Sequences (batch, n), int64, padded at the end with 0, of `lengths` (batch,).

    `labels` are (batch,), or of tokens (batch, n), with IGNORED at padding.
    """

    sequences: Tensor
    lengths: Tensor
    labels: Tensor


def iter_labelled_batches(
    split: LabelledSplit, *, batch_size: int, longest: int, seed: int, position: int = 0
) -> Iterator[LabelledBatch]:
    """Yield endless batches from batch number `position` on, which is all that resuming needs.

    Each pass draws its order from the seed and the number of the pass, and leaves out what does not fill a
    batch. Of each sequence the first `longest` tokens are read.
    """
    rows = len(split.sequences.line_lengths)
    batches = rows // batch_size
    if not batches:
        raise DataError(f"expected at least {batch_size} sequences, got {rows}")
    drawn, order = -1, torch.arange(rows)
    for number in count(position):
        if number // batches != drawn:
            drawn = number // batches
            generator = torch.Generator().manual_seed(derive_seed(seed, f"rows of pass {drawn}"))
            order = torch.randperm(rows, generator=generator)
        place = number % batches * batch_size
        yield _collate(split, order[place : place + batch_size].tolist(), longest)


def iter_labelled_eval(split: LabelledSplit, *, batch_size: int, longest: int) -> Iterator[LabelledBatch]:
    """Yield each sequence once, short ones first; the last batch may be smaller."""
    order = torch.argsort(split.sequences.line_lengths, stable=True).tolist()
    for place in range(0, len(order), batch_size):
        yield _collate(split, order[place : place + batch_size], longest)


def _collate(split: LabelledSplit, chosen: Sequence[int], longest: int) -> LabelledBatch:
    """Return the batch of the sequences of these numbers."""
    sequences, lengths = split.sequences.padded_lines(chosen)
    if split.of_tokens:
        bounds = split.sequences.lines
        rows = [split.labels[bounds[number] : bounds[number + 1]].long() for number in chosen]
        labels = pad_sequence(rows, batch_first=True, padding_value=IGNORED)[:, :longest]
    else:
        labels = split.labels[torch.tensor(chosen)]
        labels = labels if labels.is_floating_point() else labels.long()
    return LabelledBatch(sequences[:, :longest], lengths.clamp(max=longest), labels)
