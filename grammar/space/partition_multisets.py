"""Sums as multisets of their parts, split into classes.

All parts that the sums can have are split first; a sum is then counted by how many parts of each class it
has, for any parts of those classes can be chosen, in any order.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..nodes import Node, SumNode, Value
from .partition_types import Alternatives, DisjointClass, SetSplitter, TaggedParts, alternatives

_Bag = tuple[int, ...]
"""The classes of a sum's parts by their numbers, in order."""


@dataclass(frozen=True, slots=True)
class _SumClass:
    """The sums of these bags; `ends` has how many there are up to each bag."""

    classes: Sequence[DisjointClass]
    bags: Sequence[_Bag]
    cumulative_counts: Sequence[int]

    @property
    def size(self) -> int:
        return self.cumulative_counts[-1]

    def at(self, index: int) -> Value:
        """The sum of that number, bag by bag; its parts stand in the order of the classes."""
        place = bisect(self.cumulative_counts, index)
        index -= self.cumulative_counts[place - 1] if place else 0
        parts: list[Value] = []
        for number, count in Counter(self.bags[place]).items():
            found = self.classes[number]
            index, own = divmod(index, _count_multisets(found.size, count))
            parts += [found.at(each) for each in unrank_multiset(found.size, count, own)]
        return SumNode(tuple(parts))  # pyright: ignore[reportArgumentType] -- what stands in a sum are parts


def split_sums(splitter: SetSplitter, tagged: TaggedParts) -> Iterator[tuple[int, DisjointClass]]:
    """The classes of sums, which may be of different lengths."""
    bags = _Bags(splitter, [node for _, node in tagged if isinstance(node, SumNode)])
    owners: dict[_Bag, int] = {}
    for bit, node in tagged:
        assert isinstance(node, SumNode)
        for bag in sorted(bags.of_sum(node)):
            owners[bag] = owners.get(bag, 0) | bit
    together: dict[int, list[_Bag]] = {}
    for bag, mask in owners.items():
        together.setdefault(mask, []).append(bag)
    for mask, found in together.items():
        yield mask, _SumClass(bags.classes, found, list(accumulate(map(bags.size, found))))


class _Bags:
    """The bags of some sums, whose parts are split together."""

    def __init__(self, splitter: SetSplitter, sums: Sequence[SumNode]) -> None:
        labels = list(dict.fromkeys(label for node in sums for label in _alternative_sets(node)))
        split = splitter.split(labels)
        self.classes = [found for _, found in split]
        self._splits = splitter
        self._of_label = {
            label: frozenset((number,) for number, (mask, _) in enumerate(split) if mask >> place & 1)
            for place, label in enumerate(labels)
        }

    def of_sum(self, node: SumNode) -> frozenset[_Bag]:
        """The bags that a sum can be."""
        bags = frozenset[_Bag]({()})
        for part in node.parts:
            options = self._of_part(part)
            self._splits.count_steps(len(bags) * len(options))
            bags = frozenset(tuple(sorted(bag + option)) for bag in bags for option in options)
        return bags

    def size(self, bag: _Bag) -> int:
        """How many sums of parts of these classes there are."""
        return math.prod(
            _count_multisets(self.classes[number].size, count) for number, count in Counter(bag).items()
        )

    def _of_part(self, part: Node) -> frozenset[_Bag]:
        """The bags that a part gives to its sum."""
        single, sums = _split_options(part)
        return frozenset[_Bag]().union(self._of_label.get(single, ()), *map(self.of_sum, sums))


def unrank_multiset(size: int, count: int, index: int) -> list[int]:
    """The multiset with that number, of `count` numbers below `size`.

    Adding its place to each number, in order, makes it a combination; those are numbered by the combinatorial
    number system (Knuth 2011, volume 4A, section 7.2.1.3).
    """
    found: list[int] = []
    for left in range(count, 0, -1):
        low, high = left - 1, size + count - 2
        while low < high:  # the greatest number below which at most `index` combinations lie
            middle = (low + high + 1) // 2
            low, high = (middle, high) if math.comb(middle, left) <= index else (low, middle - 1)
        index -= math.comb(low, left)
        found.append(low - (left - 1))
    return found[::-1]


def _count_multisets(size: int, count: int) -> int:
    """How many multisets of `count` numbers below `size` there are."""
    return math.comb(size + count - 1, count)


def _split_options(part: Node) -> tuple[Alternatives, list[SumNode]]:
    """What a part can be: single parts, and sums that join the one around them."""
    options = alternatives(part)
    single = tuple(one for one in options if not isinstance(one, SumNode))
    return single, [one for one in options if isinstance(one, SumNode)]


def _alternative_sets(node: SumNode) -> Iterator[Alternatives]:
    """Every set of single parts that stands somewhere in a sum."""
    for part in node.parts:
        single, sums = _split_options(part)
        if single:
            yield single
        for inner in sums:
            yield from _alternative_sets(inner)
