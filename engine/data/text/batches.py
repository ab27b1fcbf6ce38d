"""What a step gets: inputs, the tokens that follow them, and which of these are scored."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class StreamBatch(NamedTuple):
    """One block of each row's text; both (batch, block), int64, all targets are scored.

    `reset` where the rows begin: the model must forget what it remembers of other rows.
    """

    inputs: Tensor
    targets: Tensor
    reset: bool


class ScoredBatch(NamedTuple):
    """One block of each row's text, of which only some targets are scored; all (batch, block)."""

    inputs: Tensor
    targets: Tensor
    scored: Tensor  # bool
    reset: bool


class LineBatch(NamedTuple):
    """Whole lines, padded with 0; inputs and targets (batch, max length), lengths (batch,), int64.

    Row i is scored at its first `lengths[i]` positions; all rows together stand for `words` words. `numbers`
    (batch,) are the lines' numbers in their split.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor
    words: int
    numbers: Tensor
