"""The long-term problems, which ask for the sum or product of two marked numbers.

A sequence has two columns. The first holds uniform, independent numbers; the second is -1 at both ends, 1 at
the two marked steps and 0 elsewhere. One marked step is among the first ten, the other before the middle.
Neither is the very first step, where the mark would overwrite the -1 (as in the program of Raffel and Ellis
2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...studies.catalog.tasks import Examples

_MAX_FIRST_MARK = 9  # possible steps of the first mark: 1 to 9
_DRAWS = 2**40  # far more values than steps, so that all steps are equally likely


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTermProblem:
    """One of the long-term problems.

    The numbers are between `low` and 1. `answer` maps the two marked numbers to the answer.
    """

    low: float
    answer: Callable[[Tensor, Tensor], Tensor]

    def batch(self, lengths: Tensor, max_length: int, generator: torch.Generator) -> Examples:
        """Draw a batch of sequences with the given lengths (batch,), each from 12 to `max_length`.

        Inputs are (batch, max_length, 2), padded with 0; targets are the answers (batch,). The generator is
        on the CPU.
        """
        rows = len(lengths)
        numbers = torch.rand(rows, max_length, generator=generator)
        draws = torch.randint(_DRAWS, (2, rows), generator=generator)
        first, second = _marks(draws, lengths)
        places, row = torch.arange(max_length), torch.arange(rows)
        inputs = numbers.new_zeros(rows, max_length, 2)
        torch.where(
            places < lengths[:, None],
            numbers.mul_(1.0 - self.low).add_(self.low),
            inputs.new_zeros(()),
            out=inputs[..., 0],
        )
        inputs[:, 0, 1] = inputs[row, lengths - 1, 1] = -1.0
        inputs[row, first, 1] = inputs[row, second, 1] = 1.0
        return Examples(inputs, self.answer(numbers[row, first], numbers[row, second]), lengths)


LONG_TERM_PROBLEMS = {
    "recall_addition": LongTermProblem(low=-1.0, answer=lambda one, other: 0.5 + (one + other) / 4),
    "recall_multiplication": LongTermProblem(low=0.0, answer=torch.mul),
}
"""The problems by task name."""


def draw_lengths(shortest: int, longest: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Draw uniform whole numbers (batch,), both bounds included."""
    return torch.randint(shortest, longest + 1, (batch_size,), generator=generator)


def _marks(draws: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Choose two different steps (not 0) to mark in each sequence: one up to 9, one before the middle."""
    first = 1 + draws[0] % _MAX_FIRST_MARK
    before = lengths // 2 - 1  # the number of possible steps of the second mark, if the first mark is ignored
    second = 1 + draws[1] % (before - (first <= before).long())
    return first, second + (second >= first).long()
