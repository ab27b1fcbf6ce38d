"""Parity, modular arithmetic and word problems, solved token by token.

Their automata read a batch of sequences at once.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations

import torch
from torch import Generator, Tensor

from ....studies.catalog.tasks import IGNORED, Examples
from ....studies.catalog.tasks.synthetic import (
    RULES,
    ModularArithmeticSettings,
    ParitySettings,
    Rule,
    WordProblemSettings,
)
from ....studies.catalog.tasks.synthetic.state_tracking import (
    EQUALS,
    FIRST_NUMBER,
    MINUS,
    MODULUS,
    PLUS,
    TIMES,
)
from .lengths import draw_lengths, only_last, pad_behind


def draw_parity(task: ParitySettings, count: int, test_set: str | None, generator: Generator) -> Examples:
    """Draw sequences of bits, encoded as 1 and 2, one fewer than the length, which includes the answer."""
    ends = draw_lengths(task, count, test_set, generator) - 1
    bits = torch.randint(1, 3, (count, int(ends.max())), generator=generator)
    inputs = pad_behind(bits, ends)
    return Examples(inputs, only_last(solve_parity(task, inputs), ends))


def solve_parity(_task: ParitySettings, inputs: Tensor) -> Tensor:
    """Return the parity of the bits up to each token, encoded as 1 and 2."""
    return (inputs == 2).cumsum(1) % 2 + 1


def draw_modular(
    task: ModularArithmeticSettings, count: int, test_set: str | None, generator: Generator
) -> Examples:
    """Draw expressions that end in `=`, in which numbers and operations alternate."""
    lengths = draw_lengths(task, count, test_set, generator)
    ends = (lengths + 1) // 2 * 2 - 2  # odd lengths, without the answer
    shape = (count, int(ends.max()))
    inputs = torch.randint(MODULUS, shape, generator=generator) + FIRST_NUMBER
    operations = torch.randint(PLUS, TIMES + 1, shape, generator=generator)
    inputs[:, 1::2] = operations[:, 1::2]
    inputs[torch.arange(count), ends - 1] = EQUALS
    inputs = pad_behind(inputs, ends)
    return Examples(inputs, only_last(solve_modular(task, inputs), ends))


def solve_modular(_task: ModularArithmeticSettings, inputs: Tensor) -> Tensor:
    """Return the value of the expression up to each token.

    The loop tracks a sum, and the product of the last factors, which is not added to the sum yet.
    """
    values = []
    total, product = torch.zeros_like(inputs[:, 0]), torch.zeros_like(inputs[:, 0])
    operation = torch.full_like(total, PLUS)
    for token in inputs.unbind(1):
        number, is_number = token - FIRST_NUMBER, token >= FIRST_NUMBER
        times = operation == TIMES
        total = torch.where(is_number & ~times, total + product, total)
        signed = torch.where(operation == MINUS, -number, number)
        product = torch.where(is_number, torch.where(times, product * number, signed), product) % MODULUS
        operation = torch.where((token >= PLUS) & (token <= TIMES), token, operation)
        values.append((total + product) % MODULUS + FIRST_NUMBER)
    return torch.stack(values, 1)


@cache
def multiplication_table(group: str) -> Tensor:
    """Return the multiplication table of a group, such as "S5".

    Its entries are indices of elements. Row i, column j is the index of the element that results from
    applying element i first and then element j.
    """
    if group == "Z60":
        return (torch.arange(60)[:, None] + torch.arange(60)) % 60
    elements = group_elements(group)
    number = {element: index for index, element in enumerate(elements)}
    return torch.tensor(
        [[number[tuple(second[place] for place in first)] for second in elements] for first in elements]
    )


@cache
def group_elements(group: str) -> tuple[tuple[int, ...], ...]:
    """Return the permutations of a group in a fixed order.

    A permutation p maps i to p[i]. The number of an element is its index in this order.
    """
    if group == "A4xZ5":
        turns = [tuple(4 + (place + turn) % 5 for place in range(5)) for turn in range(5)]
        return tuple((*even, *turn) for even in _even(4) for turn in turns)
    letter, degree = group[0], int(group[1])
    return tuple(permutations(range(degree))) if letter == "S" else _even(degree)


def _even(degree: int) -> tuple[tuple[int, ...], ...]:
    return tuple(
        each
        for each in permutations(range(degree))
        if sum(each[i] > each[j] for j in range(degree) for i in range(j)) % 2 == 0
    )


def draw_word_problem(
    task: WordProblemSettings, count: int, test_set: str | None, generator: Generator
) -> Examples:
    """Draw uniform group elements. The target at an element is the product of all elements up to it."""
    ends = draw_lengths(task, count, test_set, generator)
    shape = (count, int(ends.max()))
    inputs = torch.randint(len(multiplication_table(task.group)), shape, generator=generator)
    behind = torch.arange(shape[1]) >= ends[:, None]
    targets = solve_word_problem(task, inputs).masked_fill(behind, IGNORED)
    return Examples(inputs.masked_fill(behind, 0), targets)


def solve_word_problem(task: WordProblemSettings, inputs: Tensor) -> Tensor:
    """Return the product of the group elements up to each position."""
    table = multiplication_table(task.group)
    products = [inputs[:, 0]]
    for element in inputs.unbind(1)[1:]:
        products.append(table[products[-1], element])
    return torch.stack(products, 1)


RULES["parity"] = Rule(draw_parity, solve_parity)
RULES["modular_arithmetic"] = Rule(draw_modular, solve_modular)
RULES["word_problem"] = Rule(draw_word_problem, solve_word_problem)
