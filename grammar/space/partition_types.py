"""Sets of parts of recipes, as their dimensions allow them, and the disjoint classes that make them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..nodes import ChoiceDimension, RealDimension, Value

Alternatives = tuple[Value, ...]
"""A set of parts: everything that any of these can become; no choice among them."""

TaggedParts = Sequence[tuple[int, Value]]
"""Parts that begin alike, each with the bit of the set that it stands in."""


class DisjointClass(Protocol):
    """Parts that no other class has, without search dimensions but for ranges of real numbers."""

    @property
    def size(self) -> int:
        """How many they are."""
        ...

    def at(self, index: int) -> Value:
        """The one of that number, from 0."""
        ...


class SetSplitter(Protocol):
    """Splits sets into classes."""

    def split(self, sets: Sequence[Alternatives]) -> list[tuple[int, DisjointClass]]:
        """The classes that make up the sets, each with the bits of the sets that have it."""
        ...

    def count_steps(self, steps: int) -> None:
        """Count steps that are about to be taken, of a limited number."""
        ...


@dataclass(frozen=True, slots=True)
class Singleton:
    """A class of a single part."""

    value: Value
    size: int = 1

    def at(self, index: int) -> Value:
        """The part."""
        return self.value


def alternatives(value: Value) -> Alternatives:
    """The options of choices inside choices in one row; anything else by itself."""
    match value:
        case ChoiceDimension():
            return tuple(one for option in value.options for one in alternatives(option))
        case RealDimension() if value.low == value.high:
            return (value.low,)
        case _:
            return (value,)


def union_bits(bits: Sequence[int]) -> int:
    """All of the bits together."""
    mask = 0
    for bit in bits:
        mask |= bit
    return mask
