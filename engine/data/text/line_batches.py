"""A text line by line: each line is a sequence that begins anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import torch
from torch import Tensor
from torch.nn.functional import pad

from ...core.seeds import derive_seed
from ...corpora import DataError
from ..token_files import Split
from .batches import LineBatch

LINE_START = 0
"""What stands before the first token of a line."""


def iter_line_batches(
    split: Split, *, batch_size: int, max_length: int, seed: int, position: int = 0
) -> Iterator[LineBatch]:
    """Endless batches of whole lines from the batch number `position` on.

    Each pass draws the order of its lines from the seed and the number of the pass, and leaves out the last
    lines that do not fill a batch. Empty lines and lines of more than `max_length` tokens, not counting the
    end mark, are always left out.
    """
    fitting = _fitting(split, max_length)
    batches = len(fitting) // batch_size
    if not batches:
        raise DataError(
            f"expected at least {batch_size} lines of 1 to {max_length} tokens, got {len(fitting)}"
        )
    shuffled, order = -1, fitting
    for number in count(position):
        if number // batches != shuffled:
            shuffled = number // batches
            generator = torch.Generator().manual_seed(derive_seed(seed, f"lines of pass {shuffled}"))
            order = fitting[torch.randperm(len(fitting), generator=generator)]
        place = number % batches * batch_size
        yield _batch(split, order[place : place + batch_size].tolist())


def iter_line_eval(split: Split, *, batch_size: int, max_length: int) -> Iterator[LineBatch]:
    """Yield each line of a valid length once, short ones first; the last batch may be smaller."""
    fitting = _fitting(split, max_length)
    order = fitting[torch.argsort(split.line_lengths[fitting], stable=True)].tolist()
    for place in range(0, len(order), batch_size):
        yield _batch(split, order[place : place + batch_size])


def _fitting(split: Split, max_length: int) -> Tensor:
    """Return the numbers of the lines that are neither empty nor too long."""
    lengths = split.line_lengths
    return torch.nonzero((lengths > 1) & (lengths <= max_length + 1)).flatten()


def _batch(split: Split, chosen: Sequence[int]) -> LineBatch:
    targets, lengths = split.padded_lines(chosen)
    beyond = torch.arange(targets.shape[1]) >= lengths[:, None]  # batch, max length
    inputs = pad(targets, (1, -1), value=LINE_START).masked_fill(beyond, 0)
    numbers = torch.tensor(chosen)
    return LineBatch(inputs, targets, lengths, words=int(split.line_words[numbers].sum()), numbers=numbers)
