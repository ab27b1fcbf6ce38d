"""A space split into classes, so that its architectures are counted, each once, and found by their numbers.

A sum is the same in any order, a series in a series is one series, and options overlap: so several choices
can lead to one architecture. The time depends on the text and on how its options overlap, not on how many
architectures there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from ...errors import ActivememError
from ..nodes import (
    BlockNode,
    IntegerDimension,
    RealDimension,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
)
from .partition_integers import split_integers
from .partition_multisets import split_sums
from .partition_sequences import split_blocks, split_repeats, split_series, split_tied
from .partition_types import Alternatives, DisjointClass, Singleton, TaggedParts, union_bits

MAX_STEPS = 1_000_000
"""The splitting of one space takes at most this many steps, about two seconds."""


class PartitionLimitError(ActivememError):
    """The options of a space overlap in more ways than there is time to tell apart."""


class Splitter:
    """Splits sets of parts into classes, each family of sets once."""

    def __init__(self) -> None:
        self._known: dict[Hashable, list[tuple[int, DisjointClass]]] = {}
        self._work = 0

    def split(self, sets: Sequence[Alternatives]) -> list[tuple[int, DisjointClass]]:
        """The classes that make up the sets, each with the bits of the sets that have it.

        Raises PartitionLimitError when all that was split so far has taken too many steps.
        """
        key = tuple(tuple((type(value), value) for value in values) for values in sets)  # 1 is not true
        if key not in self._known:
            self.count_steps(sum(map(len, sets)))
            self._known[key] = list(_split(self, sets))
        return self._known[key]

    def count_steps(self, steps: int) -> None:
        """Count steps that are about to be taken; PartitionLimitError if they are too many."""
        self._work += steps
        if self._work > MAX_STEPS:
            raise PartitionLimitError(f"more than {MAX_STEPS:,} steps")


def _split(splitter: Splitter, sets: Sequence[Alternatives]) -> Iterator[tuple[int, DisjointClass]]:
    """The classes, by how parts begin: those that begin differently are different."""
    heads: dict[Hashable, list[tuple[int, Value]]] = {}
    for place, values in enumerate(sets):
        for value in values:
            heads.setdefault(_head_key(value), []).append((1 << place, value))
    for owned in heads.values():
        yield from _split_same_head(splitter, owned)


def _head_key(value: Value) -> Hashable:
    """What parts have in common before their insides are looked at."""
    match value:
        case BlockNode():
            return (BlockNode, value.name)
        case RepeatNode() | TiedNode() | SeriesNode() | SumNode():
            return type(value)
        case IntegerDimension():
            return int
        case bool() | float() | str() | RealDimension():
            return (type(value), value)
        case int():
            return int
        case _:
            return (type(value), value)


def _split_same_head(splitter: Splitter, tagged: TaggedParts) -> Iterator[tuple[int, DisjointClass]]:  # noqa: PLR0911 -- one return for each kind
    """The classes of parts with the same head."""
    match tagged[0][1]:
        case BlockNode():
            return split_blocks(splitter, tagged)
        case RepeatNode():
            return split_repeats(splitter, tagged)
        case TiedNode():
            return split_tied(splitter, tagged)
        case SeriesNode():
            return split_series(splitter, tagged)
        case SumNode():
            return split_sums(splitter, tagged)
        case bool():
            return iter([_singleton(tagged)])
        case int() | IntegerDimension():
            return split_integers(splitter, tagged)
        case _:
            return iter([_singleton(tagged)])


def _singleton(tagged: TaggedParts) -> tuple[int, DisjointClass]:
    return union_bits([bit for bit, _ in tagged]), Singleton(tagged[0][1])
