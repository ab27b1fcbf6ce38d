"""Immutable nodes that form the tree of a recipe; nodes with the same meaning are equal.

`parse` returns a checked tree; nodes made by hand are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HoleNode:
    """A hole `{name}`, which is later filled with a value, a part or a search dimension."""

    name: str


@dataclass(frozen=True, slots=True)
class IntegerDimension:
    """A search dimension over the whole numbers from `low` to `high`, both included."""

    low: int
    high: int
    step: int = 1
    log: bool = False


@dataclass(frozen=True, slots=True)
class RealDimension:
    """A search dimension over the real numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, slots=True)
class ChoiceDimension:
    """A search dimension over listed options: numbers, words or parts of a recipe."""

    options: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class BlockNode:
    """A block and its arguments, in the order in which its specification declares them.

    Arguments that equal their default are left out.
    """

    name: str
    arguments: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class SumNode:
    """`a + b`: parts with the same input; their outputs are added.

    There are at least two parts, and none of them is a sum.
    """

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class SeriesNode:
    """`a >> b`: parts in series, each of which reads the output of the previous part.

    Each part is one residual sub-layer. There are at least two parts, and none of them is a series.
    """

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class RepeatNode:
    """`4 * a`: copies of a part in series, each with its own weights."""

    count: int | HoleNode | IntegerDimension | ChoiceDimension
    body: Node


@dataclass(frozen=True, slots=True)
class TiedNode:
    """`tied(4 * a)`: copies of a part in series, which share their weights."""

    body: RepeatNode


Dimension = IntegerDimension | RealDimension | ChoiceDimension
Scalar = int | float | bool | str
Node = BlockNode | SumNode | SeriesNode | RepeatNode | TiedNode | HoleNode | ChoiceDimension
Value = Scalar | Dimension | Node


def make_sum(parts: Iterable[Node]) -> Node:
    """Return the sum of the parts, with sums among them flattened."""
    return SumNode(
        tuple(one for part in parts for one in (part.parts if isinstance(part, SumNode) else (part,)))
    )


def make_series(parts: Iterable[Node]) -> Node:
    """Return the series of the parts, with series among them flattened."""
    return SeriesNode(
        tuple(one for part in parts for one in (part.parts if isinstance(part, SeriesNode) else (part,)))
    )


def children(node: Value) -> tuple[Value, ...]:
    """Return the direct children of a node in text order, including arguments and counts."""
    match node:
        case BlockNode():
            return tuple(value for _, value in node.arguments)
        case SumNode() | SeriesNode():
            return node.parts
        case RepeatNode():
            return (node.count, node.body)
        case TiedNode():
            return (node.body,)
        case ChoiceDimension():
            return node.options
        case _:
            return ()


def walk(node: Value) -> Iterator[Value]:
    """Yield a node and all nodes inside it in text order; each node comes before its children."""
    found: list[Value] = [node]
    while found:
        node = found.pop()
        yield node
        if inside := children(node):
            found.extend(reversed(inside))


def count_blocks(node: Value) -> int:
    """Return the number of blocks after all repeats are expanded.

    For each search dimension, the value with the most blocks counts.
    """
    match node:
        case RepeatNode():
            return _max_count(node.count) * count_blocks(node.body)
        case ChoiceDimension():
            return max(count_blocks(option) for option in node.options)
        case SumNode() | SeriesNode():
            return sum(count_blocks(part) for part in node.parts)
        case TiedNode():
            return count_blocks(node.body)
        case BlockNode():
            return 1 + sum(count_blocks(value) for _, value in node.arguments)
        case _:
            return 0


def _max_count(count: Value) -> int:
    match count:
        case int():
            return count
        case IntegerDimension():
            return count.high
        case ChoiceDimension():
            return max(_max_count(option) for option in count.options)
        case _:
            return 1  # a hole
