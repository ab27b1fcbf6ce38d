"""A space split into classes, so that its architectures are counted, each once, and found by their numbers.

A sum is the same in any order, a series in a series is one series, and options overlap: so several choices
can lead to one architecture. The time depends on the text and on how its options overlap, not on how many
architectures there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from ..nodes import Block, Integer, Real, Repeat, Series, Sum, Tied, Value
from .numbers import split_numbers
from .sets import Alternatives, Class, One, Owned, union
from .sums import split_sums
from .words import split_blocks, split_repeats, split_series, split_tied

MOST_WORK = 1_000_000
"""So many steps may the splitting of one space take, about two seconds."""


class EntangledError(Exception):
    """The options of a space overlap in more ways than there is time to tell apart."""


class Splitter:
    """Splits sets of parts into classes, each family of sets once."""

    def __init__(self) -> None:
        self._known: dict[Hashable, list[tuple[int, Class]]] = {}
        self._work = 0

    def split(self, sets: Sequence[Alternatives]) -> list[tuple[int, Class]]:
        """The classes that make up the sets, each with the bits of the sets that have it.

        Raises EntangledError when all that was split so far has taken too many steps.
        """
        key = tuple(tuple((type(value), value) for value in values) for values in sets)  # 1 is not true
        if key not in self._known:
            self.spend(sum(map(len, sets)))
            self._known[key] = list(_split(self, sets))
        return self._known[key]

    def spend(self, steps: int) -> None:
        """Count steps that are about to be taken; EntangledError if they are too many."""
        self._work += steps
        if self._work > MOST_WORK:
            raise EntangledError(f"more than {MOST_WORK:,} steps")


def _split(splitter: Splitter, sets: Sequence[Alternatives]) -> Iterator[tuple[int, Class]]:
    """The classes, by how parts begin: those that begin differently are different."""
    heads: dict[Hashable, list[tuple[int, Value]]] = {}
    for place, values in enumerate(sets):
        for value in values:
            heads.setdefault(_head(value), []).append((1 << place, value))
    for owned in heads.values():
        yield from _split_alike(splitter, owned)


def _head(value: Value) -> Hashable:
    """What parts have in common before their insides are looked at."""
    match value:
        case Block():
            return (Block, value.name)
        case Repeat() | Tied() | Series() | Sum():
            return type(value)
        case Integer():
            return int
        case bool() | float() | str() | Real():
            return (type(value), value)
        case int():
            return int
        case _:
            return (type(value), value)


def _split_alike(splitter: Splitter, owned: Owned) -> Iterator[tuple[int, Class]]:  # noqa: PLR0911 -- one return for each kind
    """The classes of parts with the same head."""
    match owned[0][1]:
        case Block():
            return split_blocks(splitter, owned)
        case Repeat():
            return split_repeats(splitter, owned)
        case Tied():
            return split_tied(splitter, owned)
        case Series():
            return split_series(splitter, owned)
        case Sum():
            return split_sums(splitter, owned)
        case bool():
            return iter([_one(owned)])
        case int() | Integer():
            return split_numbers(splitter, owned)
        case _:
            return iter([_one(owned)])


def _one(owned: Owned) -> tuple[int, Class]:
    return union([bit for bit, _ in owned]), One(owned[0][1])
