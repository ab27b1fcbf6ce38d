"""Whole numbers and ranges of them, split into classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ..nodes import IntegerDimension, Value
from .partition_types import DisjointClass, SetSplitter, TaggedParts, union_bits


@dataclass(frozen=True, slots=True)
class _IntegerClass:
    """Ranges without a number in common."""

    ranges: tuple[range, ...]
    size: int

    def at(self, index: int) -> Value:
        """The number of that place, range by range."""
        for numbers in self.ranges:
            if index < (count := range_length(numbers)):
                return numbers[index]
            index -= count
        raise IndexError(index)


def range_length(numbers: range) -> int:
    """How many numbers a range has; len() refuses to say it of very long ones."""
    return (numbers[-1] - numbers[0]) // numbers.step + 1


def as_range(value: Value) -> range:
    """The numbers of a dimension, or a number by itself."""
    if isinstance(value, IntegerDimension):
        return range(value.low, value.high + 1, value.step)
    assert isinstance(value, int)
    return range(value, value + 1)


def split_integers(splitter: SetSplitter, tagged: TaggedParts) -> Iterator[tuple[int, DisjointClass]]:
    """The classes of whole numbers.

    Between two neighbouring ends of ranges, numbers with the same remainder by all of their steps are alike.
    """
    spans = [(bit, as_range(value)) for bit, value in tagged]
    found: dict[int, list[range]] = {}
    for low, high in pairwise(sorted({end for _, each in spans for end in (each[0], each[-1] + 1)})):
        here = [(bit, each) for bit, each in spans if each[0] <= low <= each[-1]]
        cycle = math.lcm(*(each.step for _, each in here))
        splitter.count_steps(min(cycle, high - low))
        for first in range(low, min(low + cycle, high)):
            mask = union_bits([bit for bit, each in here if (first - each[0]) % each.step == 0])
            if mask:
                found.setdefault(mask, []).append(range(first, high, cycle))
    for mask, parts in found.items():
        yield mask, _IntegerClass(tuple(parts), sum(map(range_length, parts)))
