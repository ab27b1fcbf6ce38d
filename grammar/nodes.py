"""The tree of a recipe: immutable nodes without positions, equal when they say the same.

A tree is made by `parse`, which has checked it; nodes made by hand are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hole:
    """A named gap, `{name}`, that a factor or a search parameter fills."""

    name: str


@dataclass(frozen=True, slots=True)
class Integer:
    """A search dimension over whole numbers, low and high included."""

    low: int
    high: int
    step: int = 1
    log: bool = False


@dataclass(frozen=True, slots=True)
class Real:
    """A search dimension over real numbers, low and high included."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A search dimension over listed options: numbers, words or whole sub-expressions."""

    options: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A block with its arguments, in declared order, values equal to their defaults left out."""

    name: str
    arguments: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Sum:
    """`a + b`: all parts see the same input, outputs are added; at least two parts, no Sum among them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """`a >> b`: each part is one residual sub-layer; at least two parts, no Series among them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`4 * a`: that many copies in series, each with its own weights."""

    count: int | Hole | Integer | Choice
    body: Node


@dataclass(frozen=True, slots=True)
class Tied:
    """`tied(4 * a)`: every copy in the repeat has the same weights."""

    body: Repeat


Dimension = Integer | Real | Choice
Scalar = int | float | bool | str
Node = Block | Sum | Series | Repeat | Tied | Hole | Choice
Value = int | float | bool | str | Hole | Integer | Real | Choice | Block | Sum | Series | Repeat | Tied


def sum_of(parts: Iterable[Node]) -> Node:
    """The sum of the parts; a Sum among them gives its own parts."""
    return Sum(tuple(one for part in parts for one in (part.parts if isinstance(part, Sum) else (part,))))


def series_of(parts: Iterable[Node]) -> Node:
    """The parts in series; a Series among them gives its own parts."""
    return Series(
        tuple(one for part in parts for one in (part.parts if isinstance(part, Series) else (part,)))
    )


def children(node: Value) -> tuple[Value, ...]:
    """Everything that stands directly inside a node, arguments and counts included, as written."""
    match node:
        case Block():
            return tuple(value for _, value in node.arguments)
        case Sum() | Series():
            return node.parts
        case Repeat():
            return (node.count, node.body)
        case Tied():
            return (node.body,)
        case Choice():
            return node.options
        case _:
            return ()


def walk(node: Value) -> Iterator[Value]:
    """The node and everything inside it, outside in, left to right."""
    yield node
    for child in children(node):
        yield from walk(child)


def expansion(node: Value) -> int:
    """How many blocks stand in the model when every repeat is written out; of dimensions, at their most."""
    match node:
        case Repeat():
            return _most(node.count) * expansion(node.body)
        case Choice():
            return max(expansion(option) for option in node.options)
        case Sum() | Series():
            return sum(expansion(part) for part in node.parts)
        case Tied():
            return expansion(node.body)
        case Block():
            return 1 + sum(expansion(value) for _, value in node.arguments)
        case _:
            return 0


def _most(count: Value) -> int:
    """The greatest number of copies that a count allows."""
    match count:
        case int():
            return count
        case Integer():
            return count.high
        case Choice():
            return max(_most(option) for option in count.options)
        case _:
            return 1  # a hole
