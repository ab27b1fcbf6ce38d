"""How a member of a space is chosen: settled dimensions that lead to it; there may be several ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar

from ..nodes import (
    Block,
    Choice,
    Dimension,
    Integer,
    Real,
    Repeat,
    Scalar,
    Series,
    Sum,
    Tied,
    Value,
    children,
    walk,
)
from ..vocabulary import lookup
from .numbers import span

Way = dict[int, tuple[Dimension, Scalar]]
"""The dimensions that are taken, by their place in the order of the text, and what each is settled to.

A choice is settled to the place of its option.
"""

_Place = tuple[Value, int]
"""A part of the space, and the place of its first dimension."""

_Leaf = tuple[Value, int, Way]
"""An option that is no choice itself, the place of its first dimension, and the choices that lead to it."""

Item = TypeVar("Item")


def size(value: Value) -> int:
    """How many dimensions stand in a part, in options that exclude each other too."""
    return sum(isinstance(one, Dimension) for one in walk(value))


def starts(value: Value, start: int) -> list[_Place]:
    """What stands directly inside a part whose first dimension has that place, each with its own."""
    place = start + isinstance(value, Dimension)
    found: list[_Place] = []
    for inner in children(value):
        found.append((inner, place))
        place += size(inner)
    return found


class Matcher:
    """Finds a way; with a random generator any of them, without one always the same."""

    def __init__(self, rng: Random | None = None) -> None:
        self._rng = rng

    def way(self, space: Value, start: int, member: Value) -> Way | None:  # noqa: PLR0911 -- one return for each kind
        """A way in which a part of the space becomes the member, a canonical one; None if there is none."""
        match space, member:
            case Choice(), _:
                return self._first(_leaves(space, start), member)
            case (Integer(), int()) if not isinstance(member, bool) and member in span(space):
                return {start: (space, member)}
            case (Real(), float()) if space.low <= member <= space.high:
                return {start: (space, member)}
            case Block(), Block():
                return self._block(space, start, member)
            case (Repeat(), Repeat()) | (Tied(), Tied()):
                return self._each(starts(space, start), children(member))
            case Sum(), Sum():
                return self._sum(space, start, member)
            case Series(), Series():
                return self._series(tuple(starts(space, start)), member.parts, set())
            case _:
                return {} if type(space) is type(member) and space == member else None

    def _first(self, leaves: Sequence[_Leaf], member: Value) -> Way | None:
        """The way of an option that becomes the member."""
        for leaf, start, choices in self._shuffled(leaves):
            found = self.way(leaf, start, member)
            if found is not None:
                return {**choices, **found}
        return None

    def _block(self, space: Block, start: int, member: Block) -> Way | None:
        """The way of a block's arguments; those that it does not give must be at their defaults."""
        spec, named = lookup(space.name), [name for name, _ in space.arguments]
        if (
            space.name != member.name
            or spec is None
            or not {name for name, _ in member.arguments} <= {*named}
        ):
            return None
        settings = spec.settings(member)
        return self._each(starts(space, start), [settings[name] for name in named])

    def _each(self, spaces: Sequence[_Place], found: Sequence[Value]) -> Way | None:
        """The way in which each of the parts becomes its own counterpart."""
        whole: Way = {}
        for (space, start), member in zip(spaces, found, strict=True):
            way = self.way(space, start, member)
            if way is None:
                return None
            whole |= way
        return whole

    def _series(
        self, todo: tuple[_Place, ...], found: tuple[Value, ...], dead: set[tuple[tuple[_Place, ...], int]]
    ) -> Way | None:
        """The way of parts one after another; a series among their options gives its own parts.

        `dead` remembers how much was left of both sides when there was no way.
        """
        if not todo or len(todo) > len(found):
            return {} if len(todo) == len(found) else None
        key = (todo, len(found))
        if key in dead:
            return None
        for leaf, start, choices in self._shuffled(_leaves(*todo[0])):
            if isinstance(leaf, Series):
                way, then, left = choices, (*starts(leaf, start), *todo[1:]), found
            else:
                way, then, left = self.way(leaf, start, found[0]), todo[1:], found[1:]
            rest = None if way is None else self._series(then, left, dead)
            if way is not None and rest is not None:
                return {**choices, **way, **rest}
        dead.add(key)
        return None

    def _sum(self, space: Sum, start: int, member: Sum) -> Way | None:
        """The way of a sum: each part of the member is matched with one of the space, in any order."""
        found = member.parts
        for choices, slots in self._slots(starts(space, start), len(found)):
            if len(slots) == len(found) and (paired := self._paired(slots, found)) is not None:
                return choices | paired
        return None

    def _slots(self, parts: Sequence[_Place], room: int) -> Iterator[tuple[Way, list[list[_Leaf]]]]:
        """The options for each single part of a sum, in every way in which its options make it longer."""
        if not parts or len(parts) > room:
            yield from [] if parts else [({}, [])]
            return
        leaves = _leaves(*parts[0])
        single = [leaf for leaf in leaves if not isinstance(leaf[0], Sum)]
        heads: list[_Leaf | None] = [leaf for leaf in leaves if isinstance(leaf[0], Sum)]
        for head in self._shuffled([*heads, None] if single else heads):
            inner, choices = (starts(head[0], head[1]), head[2]) if head else ([], {})
            own = [single] if head is None else []
            for more, slots in self._slots([*inner, *parts[1:]], room - len(own)):
                yield choices | more, own + slots

    def _paired(self, slots: Sequence[list[_Leaf]], found: Sequence[Value]) -> Way | None:
        """Each slot with a part of its own that it can become: bipartite matching by augmenting paths."""
        known: dict[tuple[int, int], Way | None] = {}

        def fits(slot: int, part: int) -> bool:
            if (slot, part) not in known:
                known[slot, part] = self._first(slots[slot], found[part])
            return known[slot, part] is not None

        pairs = _matching(len(slots), fits, self._shuffled)
        if pairs is None:
            return None
        whole: Way = {}
        for part, slot in pairs.items():
            whole |= known[slot, part] or {}
        return whole

    def _shuffled(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items, in any order if there is a random generator."""
        return items if self._rng is None else self._rng.sample(items, len(items))


def _leaves(part: Value, start: int) -> list[_Leaf]:
    """The options of choices inside choices in one row; a part that is no choice by itself."""
    if not isinstance(part, Choice):
        return [(part, start, {})]
    return [
        (leaf, first, {start: (part, place), **choices})
        for place, (option, inner) in enumerate(starts(part, start))
        for leaf, first, choices in _leaves(option, inner)
    ]


def _matching(
    count: int, fits: Callable[[int, int], bool], shuffled: Callable[[Sequence[int]], Sequence[int]]
) -> dict[int, int] | None:
    """A part for each slot, as slots by part; None if there is none.

    A slot that finds no free part makes another slot move (Kuhn 1955). With shuffled tries any matching can
    be the outcome, for each slot may meet its own part first.
    """
    slots: dict[int, int] = {}

    def augment(slot: int, seen: set[int]) -> bool:
        free = [part for part in range(count) if part not in slots]
        taken = [part for part in range(count) if part in slots]
        for part in [*shuffled(free), *shuffled(taken)]:
            if part not in seen and fits(slot, part):
                seen.add(part)
                if part not in slots or augment(slots[part], seen):
                    slots[part] = slot
                    return True
        return False

    return slots if all(augment(slot, set()) for slot in shuffled(range(count))) else None
