"""Tasks that ask for x again after as many zeros as x is long: remember, duplicate."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import register
from .permutations import symbols


def symbols_then_zeros(vocab: int, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """[x ; 0…0], x uniform over the vocabulary; symbol 0 is one of x's too, as in the released program."""
    return torch.nn.functional.pad(symbols(vocab, batch_size, length, generator), (0, length))


def shift_right(inputs: Tensor) -> Tensor:
    """[0…0 ; x]."""
    return inputs.roll(inputs.shape[-1] // 2, dims=-1)


def repeat(inputs: Tensor) -> Tensor:
    """[x ; x]."""
    return inputs + shift_right(inputs)


register("remember", symbols_then_zeros, shift_right)
register("duplicate", symbols_then_zeros, repeat)
