"""How a member of a space is chosen: settled dimensions that lead to it; there may be several ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar

from ..nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    IntegerDimension,
    RealDimension,
    RepeatNode,
    Scalar,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    children,
    walk,
)
from ..vocabulary.registry import lookup
from .partition_integers import as_range

Derivation = dict[int, tuple[Dimension, Scalar]]
"""The dimensions that are taken, by their place in the order of the text, and what each is settled to.

A choice is settled to the place of its option.
"""

_PositionedPart = tuple[Value, int]
"""A part of the space, and the place of its first dimension."""

_LeafOption = tuple[Value, int, Derivation]
"""An option that is no choice itself, the place of its first dimension, and the choices that lead to it."""

Item = TypeVar("Item")


def count_dimensions(value: Value) -> int:
    """How many dimensions stand in a part, in options that exclude each other too."""
    return sum(isinstance(one, Dimension) for one in walk(value))


def positioned_children(value: Value, start: int) -> list[_PositionedPart]:
    """What stands directly inside a part whose first dimension has that place, each with its own."""
    place = start + isinstance(value, Dimension)
    found: list[_PositionedPart] = []
    for inner in children(value):
        found.append((inner, place))
        place += count_dimensions(inner)
    return found


class DerivationFinder:
    """Finds a way; with a random generator any of them, without one always the same."""

    def __init__(self, rng: Random | None = None) -> None:
        self._rng = rng

    def find(self, space: Value, start: int, member: Value) -> Derivation | None:  # noqa: PLR0911 -- one return for each kind
        """A way in which a part of the space becomes the member, a canonical one; None if there is none."""
        match space, member:
            case ChoiceDimension(), _:
                return self._find_option(_leaf_options(space, start), member)
            case (IntegerDimension(), int()) if not isinstance(member, bool) and member in as_range(space):
                return {start: (space, member)}
            case (RealDimension(), float()) if space.low <= member <= space.high:
                return {start: (space, member)}
            case BlockNode(), BlockNode():
                return self._block(space, start, member)
            case (RepeatNode(), RepeatNode()) | (TiedNode(), TiedNode()):
                return self._find_each(positioned_children(space, start), children(member))
            case SumNode(), SumNode():
                return self._sum(space, start, member)
            case SeriesNode(), SeriesNode():
                return self._series(tuple(positioned_children(space, start)), member.parts, set())
            case _:
                return {} if type(space) is type(member) and space == member else None

    def _find_option(self, leaves: Sequence[_LeafOption], member: Value) -> Derivation | None:
        """The way of an option that becomes the member."""
        for leaf, start, choices in self._shuffled(leaves):
            found = self.find(leaf, start, member)
            if found is not None:
                return {**choices, **found}
        return None

    def _block(self, space: BlockNode, start: int, member: BlockNode) -> Derivation | None:
        """The way of a block's arguments; those that it does not give must be at their defaults."""
        spec, named = lookup(space.name), [name for name, _ in space.arguments]
        if (
            space.name != member.name
            or spec is None
            or not {name for name, _ in member.arguments} <= {*named}
        ):
            return None
        settings = spec.settings(member)
        return self._find_each(positioned_children(space, start), [settings[name] for name in named])

    def _find_each(self, spaces: Sequence[_PositionedPart], found: Sequence[Value]) -> Derivation | None:
        """The way in which each of the parts becomes its own counterpart."""
        derivation: Derivation = {}
        for (space, start), member in zip(spaces, found, strict=True):
            way = self.find(space, start, member)
            if way is None:
                return None
            derivation |= way
        return derivation

    def _series(
        self,
        todo: tuple[_PositionedPart, ...],
        found: tuple[Value, ...],
        failed: set[tuple[tuple[_PositionedPart, ...], int]],
    ) -> Derivation | None:
        """The way of parts one after another; a series among their options gives its own parts.

        `dead` remembers how much was left of both sides when there was no way.
        """
        if not todo or len(todo) > len(found):
            return {} if len(todo) == len(found) else None
        key = (todo, len(found))
        if key in failed:
            return None
        for leaf, start, choices in self._shuffled(_leaf_options(*todo[0])):
            if isinstance(leaf, SeriesNode):
                way, then, left = choices, (*positioned_children(leaf, start), *todo[1:]), found
            else:
                way, then, left = self.find(leaf, start, found[0]), todo[1:], found[1:]
            rest = None if way is None else self._series(then, left, failed)
            if way is not None and rest is not None:
                return {**choices, **way, **rest}
        failed.add(key)
        return None

    def _sum(self, space: SumNode, start: int, member: SumNode) -> Derivation | None:
        """The way of a sum: each part of the member is matched with one of the space, in any order."""
        found = member.parts
        for choices, slots in self._iter_slots(positioned_children(space, start), len(found)):
            if len(slots) == len(found) and (paired := self._match_slots(slots, found)) is not None:
                return choices | paired
        return None

    def _iter_slots(
        self, parts: Sequence[_PositionedPart], max_parts: int
    ) -> Iterator[tuple[Derivation, list[list[_LeafOption]]]]:
        """The options for each single part of a sum, in every way in which its options make it longer."""
        if not parts or len(parts) > max_parts:
            yield from [] if parts else [({}, [])]
            return
        leaves = _leaf_options(*parts[0])
        single = [leaf for leaf in leaves if not isinstance(leaf[0], SumNode)]
        heads: list[_LeafOption | None] = [leaf for leaf in leaves if isinstance(leaf[0], SumNode)]
        for head in self._shuffled([*heads, None] if single else heads):
            inner, choices = (positioned_children(head[0], head[1]), head[2]) if head else ([], {})
            own = [single] if head is None else []
            for more, slots in self._iter_slots([*inner, *parts[1:]], max_parts - len(own)):
                yield choices | more, own + slots

    def _match_slots(self, slots: Sequence[list[_LeafOption]], found: Sequence[Value]) -> Derivation | None:
        """Each slot with a part of its own that it can become: bipartite matching by augmenting paths."""
        known: dict[tuple[int, int], Derivation | None] = {}

        def fits(slot: int, part: int) -> bool:
            if (slot, part) not in known:
                known[slot, part] = self._find_option(slots[slot], found[part])
            return known[slot, part] is not None

        pairs = _bipartite_matching(len(slots), fits, self._shuffled)
        if pairs is None:
            return None
        derivation: Derivation = {}
        for part, slot in pairs.items():
            derivation |= known[slot, part] or {}
        return derivation

    def _shuffled(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items, in any order if there is a random generator."""
        return items if self._rng is None else self._rng.sample(items, len(items))


def _leaf_options(part: Value, start: int) -> list[_LeafOption]:
    """The options of choices inside choices in one row; a part that is no choice by itself."""
    if not isinstance(part, ChoiceDimension):
        return [(part, start, {})]
    return [
        (leaf, first, {start: (part, place), **choices})
        for place, (option, inner) in enumerate(positioned_children(part, start))
        for leaf, first, choices in _leaf_options(option, inner)
    ]


def _bipartite_matching(
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
