"""Random expressions of ListOps: their length is drawn first, then divided randomly among lists."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator

from ....studies.catalog.tasks import Examples
from ....studies.catalog.tasks.synthetic import RULES, ListopsSettings, Rule
from ....studies.catalog.tasks.synthetic.listops import ASK, CLOSE, FIRST_DIGIT, FIRST_OPERATION, OPERATIONS
from .lengths import PADDING, draw_lengths, only_last

_MOST_ARGUMENTS = 10
_SHORTEST_LIST = 4  # tokens: an operation, two arguments, the end


def draw_listops(task: ListopsSettings, count: int, test_set: str | None, generator: Generator) -> Examples:
    """Draw expressions with a question token at the end; only its target, the value, is scored."""
    lengths = draw_lengths(task, count, test_set, generator)
    width = int(lengths.max()) + 1
    inputs = torch.full((count, width), PADDING)
    values = torch.zeros(count, 1, dtype=torch.int64)
    # numbers of such a range are practically uniform after a modulo
    draws = torch.randint(1 << 62, (count, 3 * width), generator=generator)
    for row, (length, numbers) in enumerate(zip(lengths.tolist(), draws.tolist(), strict=True)):
        tokens, value = _write_list(length, iter(numbers))
        inputs[row, : length + 1] = torch.tensor([*tokens, ASK])
        values[row] = FIRST_DIGIT + value
    return Examples(inputs, only_last(values.expand(-1, width), lengths + 1))


def _write_list(length: int, draws: Iterator[int]) -> tuple[list[int], int]:
    operation, found, values = next(draws) % len(OPERATIONS), list[int](), list[int]()
    for size in _sizes(length - 2, draws):
        if size == 1:
            values.append(next(draws) % 10)
            found.append(FIRST_DIGIT + values[-1])
        else:
            tokens, value = _write_list(size, draws)
            values.append(value)
            found += tokens
    return [FIRST_OPERATION + operation, *found, CLOSE], evaluate(operation, values)


def _sizes(length: int, draws: Iterator[int]) -> list[int]:
    """Divide `length` tokens randomly among the arguments of a list.

    Return the length of each argument. A length is 1, for a digit, or large enough for a list.
    """
    count = min(length, 2 + next(draws) % (_MOST_ARGUMENTS - 1))
    left = length - count  # tokens beyond one per argument
    # no list is that short: use only digits or, if these are too many, fewer digits and a list
    if left and left < _SHORTEST_LIST - 1:
        count = length if length <= _MOST_ARGUMENTS else length - _SHORTEST_LIST + 1
        left = length - count
    sizes = [1] * count
    lists = 1 + next(draws) % min(count, max(1, left // (_SHORTEST_LIST - 1)))
    for index in range(lists if left else 0):
        others = (lists - index - 1) * (_SHORTEST_LIST - 1)
        room = left - others - (_SHORTEST_LIST - 1)
        extra = left if index == lists - 1 else _SHORTEST_LIST - 1 + next(draws) % (room + 1)
        sizes[index] += extra
        left -= extra
    first = next(draws) % count
    return sizes[first:] + sizes[:first]


def evaluate(operation: int, values: list[int]) -> int:
    """Return the value of an operation on a list of numbers."""
    match OPERATIONS[operation]:
        case "MIN":
            return min(values)
        case "MAX":
            return max(values)
        case "MED":
            return sorted(values)[(len(values) - 1) // 2]
        case _:
            return sum(values) % 10


RULES["listops"] = Rule(draw_listops)
