"""Tasks that ask for x again after as many zeros as x is long: remember, duplicate."""

from __future__ import annotations

import torch
from torch import Tensor

from ...studies.tasks import AlgorithmicTask
from .permuting import symbols
from .task import register


def symbols_then_zeros(
    spec: AlgorithmicTask, batch_size: int, length: int, generator: torch.Generator
) -> Tensor:
    """[x ; 0…0], x uniform over the vocabulary; symbol 0 is one of x's too, as in the released program."""
    return torch.nn.functional.pad(symbols(spec, batch_size, length, generator), (0, length))


def later(inputs: Tensor) -> Tensor:
    """[0…0 ; x]."""
    return inputs.roll(inputs.shape[-1] // 2, dims=-1)


def twice(inputs: Tensor) -> Tensor:
    """[x ; x]."""
    return inputs + later(inputs)


register("remember", symbols_then_zeros, later)
register("duplicate", symbols_then_zeros, twice)
