"""The sequences on which models of the algorithmic tasks are scored; with seeds of their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch

from ...studies.catalog.tasks import AlgorithmicSettings
from ..core.seeds import derive_seed
from .base import Batch, Task

_TEST_SEED = 0
"""Test sequences are the same for every trial."""


def draw_test_batch(task: Task, settings: AlgorithmicSettings, length: int) -> Batch:
    """Draw the test sequences of a length, the same for every trial."""
    seed = derive_seed(
        _TEST_SEED, f"test sequences of {task.spec.name}, {settings.symbols} symbols, {length}"
    )
    generator = torch.Generator().manual_seed(seed)
    return task.batch(settings.test_sequences, length, generator, vocab=settings.symbols)


def draw_dev_batches(
    task: Task, lengths: Sequence[int], *, count: int, vocab: int | None, seed: int
) -> tuple[Batch, ...]:
    """So many sequences of a seed, spread over lengths as evenly as they can be."""
    generator = torch.Generator().manual_seed(seed)
    ends = [place * count // len(lengths) for place in range(len(lengths) + 1)]
    return tuple(
        task.batch(end - begin, length, generator, vocab=vocab)
        for length, (begin, end) in zip(lengths, pairwise(ends), strict=True)
        if end > begin
    )
