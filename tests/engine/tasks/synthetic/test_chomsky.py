"""The fifteen problems against machines that read the string symbol by symbol."""

from functools import reduce

import pytest
import torch

import activemem.engine.tasks  # noqa: F401  registers how examples are drawn
from activemem.studies.catalog.tasks import IGNORED, read_task_settings
from activemem.studies.catalog.tasks.synthetic import EMPTY, FIRST_SYMBOL, PROBLEMS

SIGNS = dict(enumerate(["0", "1", "2", "3", "4", "+", "-", "*", "=", "(", ")", "x"]))


def automaton(table, start=0):
    """Return the final state of a finite automaton."""
    return lambda string: [reduce(lambda state, symbol: table[state][symbol], string, start)]


def expression(string):
    return "".join(SIGNS[symbol] for symbol in string)


def modular(string):
    return [eval(expression(string[: len(string) - (len(string) + 1) % 2])) % 5]


def brackets(string):
    return [eval(expression(string)) % 5]


def stack(string):
    """Return the stack as a rewritten tape, with the top at the front."""
    tape = ""
    for symbol in string:
        tape = tape[1:] if symbol == 2 else str(symbol if symbol < 2 else symbol - 3) + tape
    return [*map(int, tape), 2]


def missing(string):
    string = [symbol for symbol in string if symbol != 3]
    place = string.index(2)
    return [string[(place + len(string) // 2) % len(string)]]


def operands(string):
    cut = string.index(2)
    return [int("".join(map(str, bits[::-1])), 2) for bits in (string[:cut], string[cut + 1 :])]


def little(number):
    return [*map(int, bin(number)[:1:-1]), 2]


def root(string):
    number = int("".join(map(str, string)), 2)
    found = 0
    while (found + 1) ** 2 <= number:
        found += 1
    return [int(bit) for bit in bin(found)[2:].zfill((len(string) + 1) // 2)]


CHECKED = {
    # states: nothing read; begun with 0 or 1, and the last one of it
    "even_pairs": lambda string: [automaton([[1, 4], [1, 2], [1, 2], [3, 4], [3, 4]])(string)[0] in (2, 3)],
    "parity_check": automaton([[0, 1], [1, 0]]),
    "cycle_navigation": automaton([[s, (s + 1) % 5, (s - 1) % 5] for s in range(5)]),
    "modular_arithmetic": modular,
    "stack_manipulation": stack,
    "reverse_string": lambda string: [*reversed(string)],
    "modular_arithmetic_brackets": brackets,
    "duplicate_string": lambda string: [*string, *string],
    "missing_duplicate_string": missing,
    "odds_first": lambda string: [*string[0::2], *string[1::2]],
    "binary_addition": lambda string: little(sum(operands(string))),
    "binary_multiplication": lambda string: little(operands(string)[0] * operands(string)[1]),
    "compute_sqrt": root,
    "bucket_sort": lambda string: sorted(string),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_has_the_answer_of_another_program(problem):
    low = PROBLEMS[problem].shortest
    task = read_task_settings({"name": "chomsky_hierarchy", "problem": problem, "lengths": [low, 12]})
    inputs, targets, _ = task.draw(150, torch.Generator().manual_seed(0))
    lengths = set()
    for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
        length = row.index(EMPTY)
        string = [symbol - FIRST_SYMBOL for symbol in row[:length]]
        answer = [symbol - FIRST_SYMBOL for symbol in answers if symbol != IGNORED]
        asked = [place for place, symbol in enumerate(answers) if symbol != IGNORED]
        assert asked == [*range(length, length + len(answer))]
        assert row.count(EMPTY) == PROBLEMS[problem].answer_length(length) >= len(answer)
        assert not any(row[length + row.count(EMPTY) :])
        if problem == "solve_equation":
            left, right = expression(string).replace("x", str(answer[0])).split("=")
            assert eval(left) % 5 == int(right)
        else:
            assert answer == CHECKED[problem](string)
        lengths.add(length)
    assert lengths == set(range(low, 13))
