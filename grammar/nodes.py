"""The tree of a recipe: immutable nodes without positions, equal when they say the same."""

from __future__ import annotations

from collections.abc import Iterator
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
    """A block by name with its arguments, in declared order, values equal to their default left out."""

    name: str
    arguments: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Sum:
    """`a + b`: all parts see the same input, their outputs are added; at least two parts, no Sum among them."""

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
Node = Block | Sum | Series | Repeat | Tied | Hole | Choice
Value = int | float | bool | str | Hole | Integer | Real | Choice | Block | Sum | Series | Repeat | Tied


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
