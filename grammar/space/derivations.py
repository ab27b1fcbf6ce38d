"""Derivations: the ways of choosing a value for each dimension of a recipe, in the order of its text.

The first dimension varies slowest, options come as they are listed, numbers as they rise. A range of real
numbers counts as one value. Two derivations may give the same member.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    make_series,
    make_sum,
    walk,
)
from ..vocabulary.registry import lookup, spec_of

Derivation = dict[int, tuple[Dimension, Scalar]]
"""Each dimension that is taken, by its place in the text, with its value; of a choice the option's place."""

_Placed = tuple[Value, int]
"""A part of the space, and the place of its first dimension."""

_Leaf = tuple[Value, int, Derivation]
"""An option that is no choice itself, the place of its first dimension, and the choices that lead to it."""


def as_range(value: Value) -> range:
    """Return the numbers of a dimension, or of a number."""
    if isinstance(value, IntegerDimension):
        return range(value.low, value.high + 1, value.step)
    assert isinstance(value, int)
    return range(value, value + 1)


def rebuild(node: Value, new_children: Sequence[Value]) -> Value:
    """Return a node with other children, in the form that parsing its text gives."""
    match node:
        case BlockNode():
            defaults = {parameter.name: parameter.default for parameter in spec_of(node.name).parameters}
            pairs = zip((name for name, _ in node.arguments), new_children, strict=True)
            return BlockNode(node.name, tuple(pair for pair in pairs if pair[1] != defaults[pair[0]]))
        case SumNode():
            return make_sum(new_children)  # pyright: ignore[reportArgumentType] -- what stands in a sum are parts
        case SeriesNode():
            return make_series(new_children)  # pyright: ignore[reportArgumentType] -- as above
        case RepeatNode() | TiedNode():
            return type(node)(*new_children)  # pyright: ignore[reportArgumentType] -- a count and a part, or a repeat
        case _:
            return node


def count_derivations(value: Value) -> int:
    """Return the number of derivations of a part, some of which may give the same member."""
    match value:
        case IntegerDimension():
            return (value.high - value.low) // value.step + 1  # len() of a range refuses very long ones
        case ChoiceDimension():
            return sum(map(count_derivations, value.options))
        case _:
            return math.prod(map(count_derivations, children(value)))


def derive(value: Value, index: int) -> Value:
    """Return what a derivation, counted from 0, gives; ranges of real numbers stay open."""
    match value:
        case IntegerDimension():
            return as_range(value)[index]
        case ChoiceDimension():
            for option in value.options:
                if index < (count := count_derivations(option)):
                    return derive(option, index)
                index -= count
            raise IndexError(index)
        case RealDimension() if value.low == value.high:
            return value.low
        case _:
            inside: list[Value] = []
            for inner in reversed(children(value)):
                index, own = divmod(index, count_derivations(inner))
                inside.append(derive(inner, own))
            return rebuild(value, inside[::-1])


def find_derivation(space: Value, member: Value, start: int = 0) -> Derivation | None:  # noqa: PLR0911 -- one return for each kind
    """Return the first derivation that gives a member, or None; `start` is the first dimension's place."""
    match space, member:
        case ChoiceDimension(), _:
            for leaf, place, choices in _leaves(space, start):
                if (found := find_derivation(leaf, member, place)) is not None:
                    return choices | found
            return None
        case (IntegerDimension(), int()) if not isinstance(member, bool) and member in as_range(space):
            return {start: (space, member)}
        case (RealDimension(), float()) if space.low <= member <= space.high:
            return {start: (space, member)}
        case BlockNode(), BlockNode():
            named, spec = [name for name, _ in space.arguments], lookup(space.name)
            if space.name != member.name or spec is None or {each for each, _ in member.arguments} - {*named}:
                return None
            settings = spec.settings(member)
            return _find_each(_placed_children(space, start), [settings[name] for name in named])
        case (RepeatNode(), RepeatNode()) | (TiedNode(), TiedNode()):
            return _find_each(_placed_children(space, start), children(member))
        case (SumNode(), SumNode()) | (SeriesNode(), SeriesNode()):
            return _find_parts(type(space), _placed_children(space, start), member.parts, set())
        case _:
            return {} if type(space) is type(member) and space == member else None


def _find_each(spaces: Sequence[_Placed], members: Sequence[Value]) -> Derivation | None:
    """Return the derivation in which each part gives the member at the same position."""
    derivation: Derivation = {}
    for (space, start), member in zip(spaces, members, strict=True):
        if (found := find_derivation(space, member, start)) is None:
            return None
        derivation |= found
    return derivation


def _find_parts(
    kind: type[SumNode] | type[SeriesNode],
    todo: tuple[_Placed, ...],
    members: tuple[Value, ...],
    failed: set[tuple[tuple[_Placed, ...], tuple[Value, ...]]],
) -> Derivation | None:
    """Return the derivation in which parts give members: in order for a series, in any order for a sum.

    An option that is a sum in a sum, or a series in a series, gives several parts. `failed` caches
    failures.
    """
    if not todo or len(todo) > len(members):
        return {} if len(todo) == len(members) else None
    if (todo, members) in failed:
        return None
    for leaf, start, choices in _leaves(*todo[0]):
        if isinstance(leaf, kind):
            inner = _find_parts(kind, (*_placed_children(leaf, start), *todo[1:]), members, failed)
            if inner is not None:
                return choices | inner
            continue
        for place in range(len(members) if kind is SumNode else 1):
            if (found := find_derivation(leaf, members[place], start)) is None:
                continue
            rest = _find_parts(kind, todo[1:], members[:place] + members[place + 1 :], failed)
            if rest is not None:
                return choices | found | rest
    failed.add((todo, members))
    return None


def _placed_children(value: Value, start: int) -> tuple[_Placed, ...]:
    """Return the children of a part, each with the place of its first dimension."""
    place = start + isinstance(value, Dimension)
    found: list[_Placed] = []
    for inner in children(value):
        found.append((inner, place))
        place += sum(isinstance(one, Dimension) for one in walk(inner))
    return tuple(found)


def _leaves(part: Value, start: int) -> list[_Leaf]:
    """Return the options of a choice, with nested choices expanded; return any other part alone."""
    if not isinstance(part, ChoiceDimension):
        return [(part, start, {})]
    return [
        (leaf, first, {start: (part, place), **choices})
        for place, (option, inner) in enumerate(_placed_children(part, start))
        for leaf, first, choices in _leaves(option, inner)
    ]
