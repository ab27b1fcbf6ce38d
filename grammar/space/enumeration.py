"""The members of a space in the order of its text, and the ways of choosing, numbered in the same order.

The first dimension of the text varies slowest, options come as they are listed and numbers as they rise. A
member that several ways of choosing lead to comes with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..canonical import identity
from ..nodes import (
    BlockNode,
    ChoiceDimension,
    IntegerDimension,
    RealDimension,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    children,
)
from .partition_integers import as_range, range_length
from .rebuild import rebuild


def iter_members(value: Value, may_repeat: Callable[[Value], bool]) -> Iterator[Value]:
    """Everything that a part can become, each once; ranges of real numbers are left open.

    `repeats` says of a sum, a series or a choice whether several ways of choosing may give the same.
    """
    match value:
        case IntegerDimension():
            yield from as_range(value)
        case ChoiceDimension():
            seen = set[str]() if may_repeat(value) else None
            for option in value.options:
                yield from (one for one in iter_members(option, may_repeat) if _is_new(one, seen))
        case SumNode() | SeriesNode():
            seen = [set[str]() for _ in value.parts] if may_repeat(value) else [None] * len(value.parts)
            yield from _iter_composites(value, (), seen, may_repeat)
        case BlockNode() | RepeatNode() | TiedNode():
            for inside in _iter_combinations(children(value), may_repeat):
                yield rebuild(value, inside)
        case RealDimension() if value.low == value.high:
            yield value.low
        case _:
            yield value


def count_derivations(value: Value) -> int:
    """In how many ways a part can be chosen, though some may lead to the same; a real range is one."""
    match value:
        case IntegerDimension():
            return range_length(as_range(value))
        case ChoiceDimension():
            return sum(map(count_derivations, value.options))
        case _:
            count = 1
            for inner in children(value):
                count *= count_derivations(inner)
            return count


def derive(value: Value, index: int) -> Value:
    """What the way of choosing of that number, from 0, leads to; ranges of real numbers are left open."""
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


def _iter_combinations(
    values: Sequence[Value], may_repeat: Callable[[Value], bool]
) -> Iterator[tuple[Value, ...]]:
    """Every combination of what the values can become, the last one varying fastest."""
    if not values:
        yield ()
        return
    for first in iter_members(values[0], may_repeat):
        for others in _iter_combinations(values[1:], may_repeat):
            yield (first, *others)


def _iter_composites(
    node: SumNode | SeriesNode,
    prefix: tuple[Value, ...],
    seen: Sequence[set[str] | None],
    may_repeat: Callable[[Value], bool],
) -> Iterator[Value]:
    """Everything that a sum or series can become whose first parts are these.

    First parts that together give what others gave before lead to nothing new.
    """
    place = len(prefix)
    if place == len(node.parts):
        yield rebuild(node, prefix)
        return
    for part in iter_members(node.parts[place], may_repeat):
        if _is_new(rebuild(node, (*prefix, part)), seen[place]):
            yield from _iter_composites(node, (*prefix, part), seen, may_repeat)


def _is_new(value: Value, seen: set[str] | None) -> bool:
    """Whether the value has not been seen, which it is from now on; without a memory everything is new."""
    if seen is None:
        return True
    name = identity(value)
    new = name not in seen
    seen.add(name)
    return new
