"""Addition and multiplication of binary numbers of any length, in bits.

A sequence of L = 2n + 1 tokens holds a, the separator 2 and b, n bits each, the highest first; its target
holds the result in L bits. The released program draws the operands of addition below 2^n − 1 and those of
multiply below ⌊√(2^(L−1) − 1)⌋, which is 2^n − 1 as well: in both tasks every number of n bits but the one of
all ones, uniformly.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...studies.catalog.tasks import AlgorithmicTask
from .base import register

_SEPARATOR = 2
_LIMB = 32  # bits that are carried at once; with n < 2^31 no sum of a limb leaves 64 bits
_REJECTION_BITS = 64  # rejection stops at a chance of 2^-64


def operands(_spec: AlgorithmicTask, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """A separator b, each operand uniform over the n-bit numbers that are not all ones.

    Draws so many candidates for each operand that all are refused with a chance of at most 2^-64, and takes
    the first good one: no loop, no wait for the device. (No bounded number of bits gives 2^n − 1 equal
    chances exactly.) If all are refused, the last bit is cleared.
    """
    bits = (length - 1) // 2
    tries = math.ceil(_REJECTION_BITS / bits)
    shape = (batch_size * 2, tries, bits)
    candidates = torch.randint(2, shape, generator=generator, device=generator.device)
    refused = candidates.all(dim=-1)  # (2 batch, tries)
    first = refused.long().argmin(dim=-1)  # the first that is not refused
    chosen = candidates[torch.arange(batch_size * 2, device=generator.device), first]  # (2 batch, bits)
    chosen[:, -1] &= ~chosen.all(dim=-1)
    a, b = chosen.view(batch_size, 2, bits).unbind(1)
    return torch.cat([a, a.new_full((batch_size, 1), _SEPARATOR), b], dim=-1)


def split_operands(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """The operands' bits, the lowest first; (batch, n) each."""
    bits = inputs.shape[-1] // 2
    lowest_first = inputs.flip(-1)
    return lowest_first[:, bits + 1 :], lowest_first[:, :bits]


def propagate_carries(columns: Tensor, length: int) -> Tensor:
    """The number with digits `columns` (batch, width), the lowest first, as `length` bits, the highest first.

    Digits may be of any size below 2^31; the width must not exceed the length.
    """
    limbs = math.ceil(length / _LIMB)
    padded = torch.nn.functional.pad(columns, (0, limbs * _LIMB - columns.shape[-1]))
    place = torch.arange(_LIMB, device=columns.device)
    sums = (padded.view(-1, limbs, _LIMB) << place).sum(dim=-1)  # (batch, limbs)
    for limb in range(1, limbs):
        sums[:, limb] += sums[:, limb - 1] >> _LIMB
    bits = (sums.unsqueeze(-1) >> place) & 1  # (batch, limbs, 32)
    return bits.flatten(1)[:, :length].flip(-1)


def total(inputs: Tensor) -> Tensor:
    """A + b."""
    a, b = split_operands(inputs)
    return propagate_carries(a + b, inputs.shape[-1])


def product(inputs: Tensor) -> Tensor:
    """A · b: the schoolbook's columns, then one pass of carries."""
    a, b = split_operands(inputs)
    bits = a.shape[-1]
    # column w = sum of a[v] b[w - v]: b slides over a reversed a, all columns in one product of matrices
    windows = (
        torch.nn.functional.pad(b, (bits - 1, bits - 1)).float().unfold(-1, bits, 1)
    )  # (batch, 2n - 1, n)
    columns = (windows @ a.flip(-1).float().unsqueeze(-1)).squeeze(
        -1
    )  # whole numbers up to n: exact in float32
    return propagate_carries(columns.long(), inputs.shape[-1])


register("addition", operands, total)
register("multiply", operands, product)
