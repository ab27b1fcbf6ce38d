"""The algorithmic tasks, with random inputs and computed targets.

Copy, reverse and sort return the symbols of x. Remember and duplicate require x again after as many zeros.
The released program's argsort is left out for two reasons. Its answers are positions, so a fixed vocabulary
would bound the length, which the curriculum grows. And its sorting routine decides the order of equal
symbols.

Addition and multiply read L = 2n + 1 tokens: a, the separator 2 and b, with n bits each, the highest first.
The target holds the result in L bits. As in the released program, the operands are uniform below 2^n − 1. For
multiply the program writes the bound as ⌊√(2^(L−1) − 1)⌋, which is the same number.

A gate reads the bits at positions 2i and 2i + 1 and answers at 2i, as in the released program. Position 2i +
1, and the last one of an odd length, hold a constant: 1 for nand and nor, which flip whole rows, else 0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ...studies.catalog.tasks import AlgorithmicSettings, AlgorithmicTask, Examples, require_algorithmic
from ..core.process import derive_seed

Draw = Callable[[int, int, int, torch.Generator], Tensor]
"""Draws inputs (batch, tokens) from number of symbols, batch size, nominal length and generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task: a function that draws inputs, and a function that computes their targets."""

    spec: AlgorithmicTask
    draw: Draw
    solve: Callable[[Tensor], Tensor]

    def batch(
        self, batch_size: int, length: int, generator: torch.Generator, *, vocab: int | None = None
    ) -> Examples:
        """Draw a batch of inputs (batch, tokens), and compute their targets at each position.

        `length` is the nominal length in the study file; the inputs of some tasks are longer. The same state
        of the CPU generator gives the same batch. The batch has `vocab` symbols, by default as many as in the
        paper; bit tasks always have two. Raise TaskError if the task does not allow the length.
        """
        self.spec.check_length(length)
        inputs = self.draw(vocab or self.spec.vocab, batch_size, length, generator)
        return Examples(inputs, self.solve(inputs))


def symbols(vocab: int, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """Draw rows of symbols. All symbols, including 0, are equally likely."""
    return torch.randint(vocab, (batch_size, length), generator=generator)


def symbols_then_zeros(vocab: int, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """Draw `length` symbols x for each row, and append as many zeros: [x ; 0…0].

    The symbols are uniform over the vocabulary. As in the released program, x may contain symbol 0.
    """
    return torch.nn.functional.pad(symbols(vocab, batch_size, length, generator), (0, length))


def swap_halves(inputs: Tensor) -> Tensor:
    """Swap the halves of each row: [x ; 0…0] becomes [0…0 ; x]."""
    return inputs.roll(inputs.shape[-1] // 2, dims=-1)


def repeat(inputs: Tensor) -> Tensor:
    """Add each row to its copy with swapped halves: [x ; 0…0] becomes [x ; x]."""
    return inputs + swap_halves(inputs)


_SEPARATOR = 2
_BYTE = 8  # bits
_REJECTION_BITS = 64  # rejection stops at a chance of 2^-64


def operands(_vocab: int, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """Draw rows that hold two binary numbers a and b: [a ; separator ; b].

    Both have n bits, and each is uniform over all n-bit numbers except the one whose bits are all 1. Enough
    candidates are drawn for each operand that all are rejected with a chance of at most 2^-64; the first
    valid one is taken, without a loop. (No bounded number of bits gives 2^n − 1 equal chances exactly.) If
    all are rejected, the last bit is cleared.
    """
    bits = (length - 1) // 2
    tries = math.ceil(_REJECTION_BITS / bits)
    candidates = torch.randint(2, (batch_size * 2, tries, bits), generator=generator)
    refused = candidates.all(dim=-1)  # (2 batch, tries)
    first = refused.long().argmin(dim=-1)  # the first accepted draw
    chosen = candidates[torch.arange(batch_size * 2), first]  # (2 batch, bits)
    chosen[:, -1] &= ~chosen.all(dim=-1)
    a, b = chosen.view(batch_size, 2, bits).unbind(1)
    return torch.cat([a, a.new_full((batch_size, 1), _SEPARATOR), b], dim=-1)


def read_numbers(bits: Tensor) -> list[int]:
    """Return the numbers that rows of bits (batch, n) represent; the first bit is the highest."""
    padded = torch.nn.functional.pad(bits, (-bits.shape[-1] % _BYTE, 0))
    return [int.from_bytes(row.tobytes()) for row in np.packbits(padded.to(torch.uint8).numpy(), axis=-1)]


def write_bits(numbers: Sequence[int], length: int) -> Tensor:
    """Return numbers as rows of bits (batch, length), with the highest bit first."""
    size = math.ceil(length / _BYTE)
    packed = np.frombuffer(b"".join(number.to_bytes(size) for number in numbers), dtype=np.uint8)
    return torch.from_numpy(np.unpackbits(packed.reshape(-1, size), axis=-1)[:, -length:]).long()


def combine(inputs: Tensor, *, operation: Callable[[int, int], int]) -> Tensor:
    """Apply an operation to the numbers a and b of each row; return the results as bits."""
    length = inputs.shape[-1]
    a, b = (read_numbers(inputs[:, part]) for part in (slice(length // 2), slice(length // 2 + 1, None)))
    return write_bits([operation(*each) for each in zip(a, b, strict=True)], length)


def bits(_vocab: int, batch_size: int, length: int, generator: torch.Generator) -> Tensor:
    """Draw bits 0 and 1 with equal chances. The vocabulary has a third symbol, which inputs never contain."""
    return torch.randint(2, (batch_size, length), generator=generator)


def apply_gate(inputs: Tensor, *, gate: Callable[[Tensor, Tensor], Tensor], filler: int) -> Tensor:
    """Apply a logic gate to each pair of bits: those at positions 0 and 1, 2 and 3, and so on.

    The output is at the first position of the pair, and `filler` at the second.
    """
    targets = torch.full_like(inputs, filler)
    second = inputs[:, 1::2]  # (batch, pairs)
    targets[:, : 2 * second.shape[1] : 2] = gate(inputs[:, : 2 * second.shape[1] : 2], second)
    return targets


_RULES: dict[str, tuple[Draw, Callable[[Tensor], Tensor]]] = {
    "copy": (symbols, torch.clone),
    "reverse": (symbols, lambda inputs: inputs.flip(-1)),
    "sort": (symbols, lambda inputs: inputs.sort(dim=-1).values),
    "remember": (symbols_then_zeros, swap_halves),
    "duplicate": (symbols_then_zeros, repeat),
    "addition": (operands, partial(combine, operation=operator.add)),
    "multiply": (operands, partial(combine, operation=operator.mul)),
    "not": (bits, lambda inputs: 1 - inputs),
    "and": (bits, partial(apply_gate, gate=operator.and_, filler=0)),
    "nand": (bits, partial(apply_gate, gate=lambda a, b: 1 - (a & b), filler=1)),
    "or": (bits, partial(apply_gate, gate=operator.or_, filler=0)),
    "nor": (bits, partial(apply_gate, gate=lambda a, b: 1 - (a | b), filler=1)),
    "xor": (bits, partial(apply_gate, gate=operator.xor, filler=0)),
    "xnor": (bits, partial(apply_gate, gate=lambda a, b: 1 - (a ^ b), filler=0)),
}

_TASKS = {
    name: Task(spec=require_algorithmic(name), draw=draw, solve=solve)
    for name, (draw, solve) in _RULES.items()
}


def get_task(name: str) -> Task:
    """Return the task with this name; raise TaskError with the nearest name if there is none."""
    return _TASKS[require_algorithmic(name).name]


def registered_tasks() -> tuple[str, ...]:
    """Return the names of all tasks that have a generator, sorted."""
    return tuple(sorted(_TASKS))


_TEST_SEED = 0
"""The seed of the test sequences, which are the same for every trial."""


def draw_test_batch(task: Task, settings: AlgorithmicSettings, length: int) -> Examples:
    """Draw a task's test sequences of one length. They are the same for every trial."""
    seed = derive_seed(
        _TEST_SEED, f"test sequences of {task.spec.name}, {settings.symbols} symbols, {length}"
    )
    generator = torch.Generator().manual_seed(seed)
    return task.batch(settings.test_examples, length, generator, vocab=settings.symbols)


def draw_dev_batches(
    task: Task, lengths: Sequence[int], *, count: int, vocab: int | None, seed: int
) -> tuple[Examples, ...]:
    """Draw `count` sequences, divided among these lengths as equally as possible."""
    generator = torch.Generator().manual_seed(seed)
    ends = [place * count // len(lengths) for place in range(len(lengths) + 1)]
    return tuple(
        task.batch(end - begin, length, generator, vocab=vocab)
        for length, (begin, end) in zip(lengths, pairwise(ends), strict=True)
        if end > begin
    )
