"""Whole numbers and ranges of them, split into classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ..nodes import Integer, Value
from .sets import Class, Owned, Splits, union


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Ranges without a number in common."""

    ranges: tuple[range, ...]
    size: int

    def at(self, index: int) -> Value:
        """The number of that place, range by range."""
        for numbers in self.ranges:
            if index < (count := length(numbers)):
                return numbers[index]
            index -= count
        raise IndexError(index)


def length(numbers: range) -> int:
    """How many numbers a range has; len() refuses to say it of very long ones."""
    return (numbers[-1] - numbers[0]) // numbers.step + 1


def span(value: Value) -> range:
    """The numbers of a dimension, or a number by itself."""
    if isinstance(value, Integer):
        return range(value.low, value.high + 1, value.step)
    assert isinstance(value, int)
    return range(value, value + 1)


def split_numbers(splits: Splits, owned: Owned) -> Iterator[tuple[int, Class]]:
    """The classes of whole numbers.

    Between two neighbouring ends of ranges, numbers with the same remainder by all of their steps are alike.
    """
    spans = [(bit, span(value)) for bit, value in owned]
    found: dict[int, list[range]] = {}
    for low, high in pairwise(sorted({end for _, each in spans for end in (each[0], each[-1] + 1)})):
        here = [(bit, each) for bit, each in spans if each[0] <= low <= each[-1]]
        cycle = math.lcm(*(each.step for _, each in here))
        splits.spend(min(cycle, high - low))
        for first in range(low, min(low + cycle, high)):
            mask = union([bit for bit, each in here if (first - each[0]) % each.step == 0])
            if mask:
                found.setdefault(mask, []).append(range(first, high, cycle))
    for mask, parts in found.items():
        yield mask, _Numbers(tuple(parts), sum(map(length, parts)))
