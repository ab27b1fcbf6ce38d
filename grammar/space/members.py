"""The members of a space in the order of its text, and the ways of choosing, numbered in the same order.

The first dimension of the text varies slowest, options come as they are listed and numbers as they rise. A
member that several ways of choosing lead to comes with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..nodes import Block, Choice, Integer, Real, Repeat, Series, Sum, Tied, Value, children
from ..text import identity
from .canonical import rebuilt
from .numbers import length, span


def members(value: Value, repeats: Callable[[Value], bool]) -> Iterator[Value]:
    """Everything that a part can become, each once; ranges of real numbers are left open.

    `repeats` says of a sum, a series or a choice whether several ways of choosing may give the same.
    """
    match value:
        case Integer():
            yield from span(value)
        case Choice():
            seen = set[str]() if repeats(value) else None
            for option in value.options:
                yield from (one for one in members(option, repeats) if _is_new(one, seen))
        case Sum() | Series():
            seen = [set[str]() for _ in value.parts] if repeats(value) else [None] * len(value.parts)
            yield from _joined(value, (), seen, repeats)
        case Block() | Repeat() | Tied():
            for inside in _combined(children(value), repeats):
                yield rebuilt(value, inside)
        case Real() if value.low == value.high:
            yield value.low
        case _:
            yield value


def ways(value: Value) -> int:
    """In how many ways a part can be chosen, though some may lead to the same; a real range is one."""
    match value:
        case Integer():
            return length(span(value))
        case Choice():
            return sum(map(ways, value.options))
        case _:
            count = 1
            for inner in children(value):
                count *= ways(inner)
            return count


def way(value: Value, index: int) -> Value:
    """What the way of choosing of that number, from 0, leads to; ranges of real numbers are left open."""
    match value:
        case Integer():
            return span(value)[index]
        case Choice():
            for option in value.options:
                if index < (count := ways(option)):
                    return way(option, index)
                index -= count
            raise IndexError(index)
        case Real() if value.low == value.high:
            return value.low
        case _:
            inside: list[Value] = []
            for inner in reversed(children(value)):
                index, own = divmod(index, ways(inner))
                inside.append(way(inner, own))
            return rebuilt(value, inside[::-1])


def _combined(values: Sequence[Value], repeats: Callable[[Value], bool]) -> Iterator[tuple[Value, ...]]:
    """Every combination of what the values can become, the last one varying fastest."""
    if not values:
        yield ()
        return
    for first in members(values[0], repeats):
        for others in _combined(values[1:], repeats):
            yield (first, *others)


def _joined(
    node: Sum | Series,
    taken: tuple[Value, ...],
    seen: Sequence[set[str] | None],
    repeats: Callable[[Value], bool],
) -> Iterator[Value]:
    """Everything that a sum or series can become whose first parts are these.

    First parts that together give what others gave before lead to nothing new.
    """
    place = len(taken)
    if place == len(node.parts):
        yield rebuilt(node, taken)
        return
    for part in members(node.parts[place], repeats):
        if _is_new(rebuilt(node, (*taken, part)), seen[place]):
            yield from _joined(node, (*taken, part), seen, repeats)


def _is_new(value: Value, seen: set[str] | None) -> bool:
    """Whether the value has not been seen, which it is from now on; without a memory everything is new."""
    if seen is None:
        return True
    name = identity(value)
    new = name not in seen
    seen.add(name)
    return new
