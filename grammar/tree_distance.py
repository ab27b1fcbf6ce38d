"""The distance between two recipes: the tree edit distance of Zhang and Shasha (1989), in blocks.

It is the minimum cost of turning one tree into the other. Trees are ordered; the parts of a sum are sorted by
their identity, so that `a + b` equals `b + a`. Adding, removing or replacing a block costs 1, an operator
(`>>`, `+`, `4 *`, `tied`) 0.5. In a kept block, each changed word costs 0.5, and each changed number 0.5 · (1
− smaller / larger). The changes of one block cost at most 0.9; omitted arguments have their defaults. A
changed count costs like a changed number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from .canonical import identity
from .nodes import BlockNode, Node, RepeatNode, Scalar, SeriesNode, SumNode, TiedNode, Value, children
from .vocabulary.spec import lookup

_NAME = re.compile(r"[A-Za-z_]\w*")

BLOCK, OPERATOR, PARAMETER, MOST_OF_PARAMETERS = 1.0, 0.5, 0.5, 0.9


@dataclass(frozen=True, slots=True)
class _Label:
    """A node's label: a block or an operator, with its numbers and words in declared order."""

    name: str
    weight: float
    settings: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class DistanceTree:
    """A recipe in the form for distances: nodes in postorder, with their leftmost leaves."""

    root: Node
    labels: tuple[_Label, ...] = field(init=False)
    leftmost: tuple[int, ...] = field(init=False)
    keyroots: tuple[int, ...] = field(init=False)
    blocks: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        labels: list[_Label] = []
        leftmost: list[int] = []

        def visit(node: Value) -> int:
            first = [visit(child) for child in _parts(node)]
            labels.append(_label(node))
            leftmost.append(first[0] if first else len(labels) - 1)
            return leftmost[-1]

        visit(self.root)
        last = {place: number for number, place in enumerate(leftmost)}
        object.__setattr__(self, "labels", tuple(labels))
        object.__setattr__(self, "leftmost", tuple(leftmost))
        object.__setattr__(self, "keyroots", tuple(sorted(last.values())))
        object.__setattr__(self, "blocks", Counter(each.name for each in labels if each.weight == BLOCK))

    def least_distance(self, text: str) -> float:
        """Return a lower bound of the distance to a canonical text, by counting unshared blocks."""
        blocks = Counter(name for name in _NAME.findall(text) if lookup(name) is not None)
        return BLOCK * max((self.blocks - blocks).total(), (blocks - self.blocks).total())

    def distance(self, other: DistanceTree) -> float:
        """Return the distance to another recipe."""
        between: dict[tuple[int, int], float] = {}
        for mine in self.keyroots:
            for theirs in other.keyroots:
                self._fill(other, mine, theirs, between)
        return between[len(self.labels) - 1, len(other.labels) - 1]

    def _fill(
        self, other: DistanceTree, mine: int, theirs: int, between: dict[tuple[int, int], float]
    ) -> None:
        """Compute the distances of all pairs of subtrees that share their first leaf with two keyroots."""
        first, start = self.leftmost[mine], other.leftmost[theirs]
        added = [0.0]
        for column in range(start, theirs + 1):
            added.append(added[-1] + other.labels[column].weight)
        rows = [added]
        for row in range(first, mine + 1):
            label, left = self.labels[row], self.leftmost[row]
            above = rows[-1]
            line = [above[0] + label.weight]
            for place, column in enumerate(range(start, theirs + 1), start=1):
                cost = min(above[place] + label.weight, line[-1] + other.labels[column].weight)
                if left == first and other.leftmost[column] == start:
                    cost = min(cost, above[place - 1] + _replacing(label, other.labels[column]))
                    between[row, column] = cost
                else:
                    before = rows[left - first][other.leftmost[column] - start]
                    cost = min(cost, before + between[row, column])
                line.append(cost)
            rows.append(line)


def tree_distance(first: Node, second: Node) -> float:
    """Return the distance between two recipes in blocks; 0 for equivalent recipes."""
    return DistanceTree(first).distance(DistanceTree(second))


def _parts(node: Value) -> Iterable[Value]:
    """Return the parts of a recipe below a node; parts of a sum are sorted by identity."""
    match node:
        case SumNode():
            return sorted(node.parts, key=identity)
        case BlockNode():
            return [value for value in children(node) if not isinstance(value, Scalar)]
        case RepeatNode():
            return [node.body]
        case _:
            return children(node)


def _label(node: Value) -> _Label:
    match node:
        case BlockNode():
            return _Label(node.name, BLOCK, _settings(node))
        case SumNode():
            return _Label("+", OPERATOR)
        case SeriesNode():
            return _Label(">>", OPERATOR)
        case RepeatNode():
            return _Label("*", OPERATOR, (node.count,))
        case TiedNode():
            return _Label("tied", OPERATOR)
        case _:
            return _Label(identity(node), BLOCK)  # what is still open


def _settings(block: BlockNode) -> tuple[object, ...]:
    """Return the numbers and words of a block, defaults included; inner recipes are separate tree nodes."""
    spec = lookup(block.name)
    assert spec is not None, f"no block {block.name}"
    values = spec.settings(block).values()
    return tuple(value if isinstance(value, Scalar) else None for value in values)


@lru_cache(maxsize=100_000)
def _replacing(label: _Label, other: _Label) -> float:
    if label.name != other.name:
        return max(label.weight, other.weight)
    pairs = zip(label.settings, other.settings, strict=True)
    return min(MOST_OF_PARAMETERS, sum(PARAMETER * _unlikeness(mine, theirs) for mine, theirs in pairs))


def _unlikeness(value: object, other: object) -> float:
    """Return the dissimilarity of two settings, from 0 to 1: for numbers of one sign by their ratio."""
    if type(value) is type(other) and value == other:
        return 0.0
    if not (_is_number(value) and _is_number(other)):
        return 1.0
    low, high = sorted((float(value), float(other)))  # pyright: ignore[reportArgumentType] -- both are numbers
    if low <= 0 <= high:
        return 0.0 if low == high else 1.0
    return 1 - min(abs(low), abs(high)) / max(abs(low), abs(high))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
