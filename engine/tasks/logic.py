"""Logic on bits: not, and the gates on pairs of neighbours.

As in the released program, a gate reads the bits at positions 2i and 2i + 1 and answers at 2i. Position
2i + 1, and the last one of an odd length, hold a constant: 1 for nand and nor, which flip whole rows, else 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from .base import register

Gate = Callable[[Tensor, Tensor], Tensor]


def bits(_vocab: int, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """Fair bits; the vocabulary's third symbol is never used."""
    return torch.randint(2, (batch_size, length), generator=generator)


def negate(inputs: Tensor) -> Tensor:
    """1 for 0 and 0 for 1."""
    return 1 - inputs


def apply_gate(inputs: Tensor, *, gate: Gate, filler: int) -> Tensor:
    """Return the gate's answer at the first position of each pair, the filler everywhere else."""
    targets = torch.full_like(inputs, filler)
    second = inputs[:, 1::2]  # (batch, pairs)
    targets[:, : 2 * second.shape[1] : 2] = gate(inputs[:, : 2 * second.shape[1] : 2], second)
    return targets


register("not", bits, negate)
register("and", bits, partial(apply_gate, gate=lambda a, b: a & b, filler=0))
register("nand", bits, partial(apply_gate, gate=lambda a, b: 1 - (a & b), filler=1))
register("or", bits, partial(apply_gate, gate=lambda a, b: a | b, filler=0))
register("nor", bits, partial(apply_gate, gate=lambda a, b: 1 - (a | b), filler=1))
register("xor", bits, partial(apply_gate, gate=lambda a, b: a ^ b, filler=0))
register("xnor", bits, partial(apply_gate, gate=lambda a, b: 1 - (a ^ b), filler=0))
