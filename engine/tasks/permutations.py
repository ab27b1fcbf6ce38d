"""Tasks that give the symbols of x back in another order: copy, reverse, sort.

The released program's argsort is left out: its answers are positions, so that a fixed vocabulary would bound
the length, which the curriculum grows; and the order of equal symbols is left to its sorting routine.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .base import register


def symbols(vocab: int, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """Rows uniform over the vocabulary, symbol 0 included."""
    return torch.randint(vocab, (batch_size, length), generator=generator)


def identity(inputs: Tensor) -> Tensor:
    """X itself, in its own memory."""
    return inputs.clone()


def reverse(inputs: Tensor) -> Tensor:
    """Return the last symbol first."""
    return inputs.flip(-1)


def ascending(inputs: Tensor) -> Tensor:
    """Return the smallest symbol first."""
    return inputs.sort(dim=-1).values


register("copy", symbols, identity)
register("reverse", symbols, reverse)
register("sort", symbols, ascending)
