"""Addition and multiplication of binary numbers of any length, in bits.

A sequence of L = 2n + 1 tokens holds a, the separator 2 and b, n bits each, the highest first; its target
holds the result in L bits. The released program draws the operands of addition below 2^n − 1 and those of
multiply below ⌊√(2^(L−1) − 1)⌋, which is 2^n − 1 as well: in both tasks every number of n bits but the one of
all ones, uniformly.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from .base import register

_SEPARATOR = 2
_BYTE = 8  # bits
_REJECTION_BITS = 64  # rejection stops at a chance of 2^-64


def operands(_vocab: int, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """Return a separator b, each operand uniform over the n-bit numbers that are not all ones.

    Draws so many candidates for each operand that all are refused with a chance of at most 2^-64, and takes
    the first good one, without a loop. (No bounded number of bits gives 2^n − 1 equal chances exactly.)
    If all are refused, the last bit is cleared.
    """
    bits = (length - 1) // 2
    tries = math.ceil(_REJECTION_BITS / bits)
    candidates = torch.randint(2, (batch_size * 2, tries, bits), generator=generator)
    refused = candidates.all(dim=-1)  # (2 batch, tries)
    first = refused.long().argmin(dim=-1)  # the first that is not refused
    chosen = candidates[torch.arange(batch_size * 2), first]  # (2 batch, bits)
    chosen[:, -1] &= ~chosen.all(dim=-1)
    a, b = chosen.view(batch_size, 2, bits).unbind(1)
    return torch.cat([a, a.new_full((batch_size, 1), _SEPARATOR), b], dim=-1)


def read_numbers(bits: Tensor) -> list[int]:
    """Return the numbers whose bits are the rows (batch, n), the highest first."""
    padded = torch.nn.functional.pad(bits, (-bits.shape[-1] % _BYTE, 0))
    return [int.from_bytes(row.tobytes()) for row in np.packbits(padded.to(torch.uint8).numpy(), axis=-1)]


def write_bits(numbers: Sequence[int], length: int) -> Tensor:
    """Return the lowest bits (batch, length) of numbers that have no more, the highest first."""
    size = math.ceil(length / _BYTE)
    packed = np.frombuffer(b"".join(number.to_bytes(size) for number in numbers), dtype=np.uint8)
    return torch.from_numpy(np.unpackbits(packed.reshape(-1, size), axis=-1)[:, -length:]).long()


def combine(inputs: Tensor, *, operation: Callable[[int, int], int]) -> Tensor:
    """Return the result of an operation on a and b, in whole numbers of any size."""
    length = inputs.shape[-1]
    a, b = (read_numbers(inputs[:, part]) for part in (slice(length // 2), slice(length // 2 + 1, None)))
    return write_bits([operation(*each) for each in zip(a, b, strict=True)], length)


register("addition", operands, partial(combine, operation=operator.add))
register("multiply", operands, partial(combine, operation=operator.mul))
