"""Sequences of different lengths in one batch, with padding."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from ....studies.catalog.tasks import IGNORED
from ....studies.catalog.tasks.synthetic import LengthTask

PADDING = 0


def draw_lengths(task: LengthTask, count: int, test_set: str | None, generator: Generator) -> Tensor:
    """Draw the lengths of `count` sequences. In a test set, every length is the number in the set's name."""
    if test_set is not None:
        return torch.full((count,), int(test_set))
    low, high = task.lengths
    return torch.randint(low, high + 1, (count,), generator=generator)


def pad_behind(inputs: Tensor, ends: Tensor) -> Tensor:
    """Replace tokens in `inputs` (count, tokens) after the `ends` (count,) of their sequences by padding."""
    return inputs.masked_fill(torch.arange(inputs.shape[1]) >= ends[:, None], PADDING)


def only_last(targets: Tensor, ends: Tensor) -> Tensor:
    """Mark targets (count, tokens) as ignored, except the last of each sequence of length `ends` (count,)."""
    return targets.masked_fill(torch.arange(targets.shape[1]) != ends[:, None] - 1, IGNORED)
