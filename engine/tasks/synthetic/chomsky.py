"""The fifteen tasks of the Chomsky hierarchy: functions that draw one string and its answer at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from math import isqrt

import torch
from torch import Generator

from ....studies.catalog.tasks import IGNORED, Examples
from ....studies.catalog.tasks.synthetic import RULES, ChomskySettings, Rule
from ....studies.catalog.tasks.synthetic.chomsky import EMPTY, FIRST_SYMBOL, PROBLEMS
from .lengths import PADDING, draw_lengths

Draws = Iterator[int]
"""Uniform numbers below 2 ** 62."""

Written = tuple[list[int], list[int]]
"""A string and its answer, as symbol numbers from 0 on."""

MODULUS, END, UNKNOWN = 5, 2, 11
PLUS, MINUS, EQUALS, OPEN, CLOSE = 5, 6, 8, 9, 10  # 7 would be a product; numbers are themselves


def draw_chomsky(task: ChomskySettings, count: int, test_set: str | None, generator: Generator) -> Examples:
    """Draw strings, each followed by empty tokens.

    The model predicts the answer at the empty tokens. Tokens after the answer are not scored.
    """
    lengths = draw_lengths(task, count, test_set, generator)
    problem = PROBLEMS[task.problem]
    longest = int(lengths.max())
    width = longest + problem.answer_length(longest)
    inputs = torch.full((count, width), PADDING)
    targets = torch.full((count, width), IGNORED)
    # numbers of such a range are practically uniform after a modulo
    draws = torch.randint(1 << 62, (count, longest + 2), generator=generator)
    for row, (length, numbers) in enumerate(zip(lengths.tolist(), draws.tolist(), strict=True)):
        string, answer = _write(task.problem, length, iter(numbers))
        inputs[row, :length] = torch.tensor(string) + FIRST_SYMBOL
        inputs[row, length : length + problem.answer_length(length)] = EMPTY
        targets[row, length : length + len(answer)] = torch.tensor(answer) + FIRST_SYMBOL
    return Examples(inputs, targets)


def _symbols(length: int, draws: Draws, count: int = 2) -> list[int]:
    return [next(draws) % count for _ in range(length)]


_ANSWERS: dict[str, tuple[int, Callable[[list[int]], list[int]]]] = {
    "even_pairs": (2, lambda string: [int(string[0] != string[-1])]),
    "parity_check": (2, lambda string: [sum(string) % 2]),
    # moves on a cycle of five positions: 0 stays, 1 moves forward, 2 moves back
    "cycle_navigation": (3, lambda string: [(string.count(1) - string.count(2)) % MODULUS]),
    "reverse_string": (2, lambda string: string[::-1]),
    "duplicate_string": (2, lambda string: string * 2),
    "odds_first": (2, lambda string: [*string[::2], *string[1::2]]),
    "bucket_sort": (5, sorted),
}
"""The problems of a random string: its number of different symbols, and the function that answers it."""


def _write(problem: str, length: int, draws: Draws) -> Written:
    if problem not in _ANSWERS:
        return _WRITERS[problem](length, draws)
    symbols, answer = _ANSWERS[problem]
    string = _symbols(length, draws, symbols)
    return string, answer(string)


def _modular(length: int, draws: Draws) -> Written:
    """Draw alternating numbers and operations; the answer is the value of the expression.

    If the length is even, the last operation is ignored. Products bind tighter than sums.
    """
    string = [next(draws) % (3 if place % 2 else MODULUS) for place in range(length)]
    total, product, sign = 0, string[0], 1
    for place in range(2, length, 2):
        if string[place - 1] == 2:
            product *= string[place]
        else:
            total += sign * product
            product, sign = string[place], 1 - 2 * string[place - 1]
    written = [MODULUS + each if place % 2 else each for place, each in enumerate(string)]
    return written, [(total + sign * product) % MODULUS]


def _stack(length: int, draws: Draws) -> Written:
    """Draw the initial bits of a stack, then actions on it.

    The answer is the final stack, top first. Action 2 pops a bit, 3 pushes 0, and 4 pushes 1.
    """
    size = 1 + next(draws) % max(1, length - 1)
    string = [*_symbols(size, draws), *(2 + each for each in _symbols(length - size, draws, 3))]
    stack = string[:size]
    for action in string[size:]:
        if action > 2:
            stack.append(action - 3)
        elif stack:
            stack.pop()
    return string, [*stack[::-1], END]


def _brackets(length: int, draws: Draws) -> Written:
    string, value = _write_expression(length, draws)
    return string, [value]


def _write_expression(length: int, draws: Draws) -> tuple[list[int], int]:
    """Draw an expression with `length` symbols; return its symbols and its value.

    It is a number, or a sum or difference of two shorter expressions in brackets. At most one draw is used
    for each symbol.
    """
    drawn = next(draws)
    if length < 5:
        number = drawn % MODULUS
        written = [number]
        if length % 2 == 0:
            number, written = -number % MODULUS, [MINUS, *written]
        return (written, number) if length < 3 else ([OPEN, *written, CLOSE], number)
    # one draw serves for two choices
    operation, drawn = (PLUS, MINUS)[drawn % 2], drawn // 3
    first = 1 + drawn % (length - 4)
    left, one = _write_expression(first, draws)
    right, other = _write_expression(length - 3 - first, draws)
    value = (one + other if operation == PLUS else one - other) % MODULUS
    return [OPEN, *left, operation, *right, CLOSE], value


def _equation(length: int, draws: Draws) -> Written:
    string, value = _write_expression(length - 2, draws)
    numbers = [place for place, symbol in enumerate(string) if symbol < MODULUS]
    unknown = numbers[next(draws) % len(numbers)]
    answer, string[unknown] = string[unknown], UNKNOWN
    return [*string, EQUALS, value], [answer]


def _missing(length: int, draws: Draws) -> Written:
    """Draw a string, repeat it, and remove one symbol.

    The missing symbol is the target. A placeholder marks its position. If the length is odd, an empty symbol
    is added at the end.
    """
    string = _symbols(length // 2, draws) * 2
    missing = next(draws) % len(string)
    answer, string[missing] = string[missing], 2
    return [*string, *[3] * (length % 2)], [answer]


def _numbers(length: int, draws: Draws) -> tuple[list[int], int, int]:
    """Draw two positive binary numbers; return the row and both values.

    The lowest bit is first, and a 2 separates the numbers.
    """
    size = 1 + next(draws) % (length - 2)
    one, other = (_above_zero(bits, draws) for bits in (size, length - 1 - size))
    return [*one, 2, *other], _value(one), _value(other)


def _above_zero(size: int, draws: Draws) -> list[int]:
    bits = _symbols(size, draws)
    return bits if any(bits) else [1, *bits[1:]]


def _value(bits: list[int]) -> int:
    return sum(bit << place for place, bit in enumerate(bits))


def _binary(operation: Callable[[int, int], int], length: int, draws: Draws) -> Written:
    string, one, other = _numbers(length, draws)
    return string, [*map(int, reversed(f"{operation(one, other):b}")), END]


def _sqrt(length: int, draws: Draws) -> Written:
    """Draw a positive binary number, highest bit first; the target is the integer part of its square root."""
    string = _above_zero(length, draws)[::-1]
    root = isqrt(_value(string[::-1]))
    # as many bits as the root of the largest number of this length has
    return string, [int(bit) for bit in f"{root:0{(length + 1) // 2}b}"]


_WRITERS: dict[str, Callable[[int, Draws], Written]] = {
    "modular_arithmetic": _modular,
    "stack_manipulation": _stack,
    "modular_arithmetic_brackets": _brackets,
    "solve_equation": _equation,
    "missing_duplicate_string": _missing,
    "binary_addition": partial(_binary, operator.add),
    "binary_multiplication": partial(_binary, operator.mul),
    "compute_sqrt": _sqrt,
}

RULES["chomsky_hierarchy"] = Rule(draw_chomsky)
