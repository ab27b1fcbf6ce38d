"""Tasks that give the symbols of x back in another order: copy, reverse, sort.

The released program's argsort is left out: its answers are positions, so that a fixed vocabulary would bound
the length, which the curriculum grows; and the order of equal symbols is left to its sorting routine.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...studies.tasks import AlgorithmicTask
from .task import register


def symbols(spec: AlgorithmicTask, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """Rows uniform over the vocabulary, symbol 0 included."""
    return torch.randint(spec.vocab, (batch_size, length), generator=generator, device=generator.device)


def same(inputs: Tensor) -> Tensor:
    """X itself, in its own memory."""
    return inputs.clone()


def backwards(inputs: Tensor) -> Tensor:
    """The last symbol first."""
    return inputs.flip(-1)


def ascending(inputs: Tensor) -> Tensor:
    """The smallest symbol first."""
    return inputs.sort(dim=-1).values


register("copy", symbols, same)
register("reverse", symbols, backwards)
register("sort", symbols, ascending)
