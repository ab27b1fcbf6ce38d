"""The search dimensions of a recipe: their names, and their replacement by values.

A dimension inside an option of a choice exists only if that option is taken. A repeat's body has its
dimensions once: all copies take the same values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from .canonical import render
from .nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    HoleNode,
    IntegerDimension,
    Node,
    RealDimension,
    RepeatNode,
    Scalar,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    make_series,
    make_sum,
)

Resolver = Callable[[str, Dimension], Scalar | Dimension | HoleNode]
"""A function that maps a name and its dimension to a value, a label of a choice, or a hole, or to the
dimension itself to leave it open."""


def option_label(option: Value) -> Scalar:
    """Return an option of a choice as plain data: a number or word unchanged, and a recipe part as text."""
    return option if isinstance(option, int | float | str) else render(option)


def resolve(root: Node, resolver: Resolver) -> Node:
    """Return the recipe with each dimension replaced by the resolver's value; skip options not chosen.

    Raise ValueError for a result outside its dimension.
    """
    return _DimensionResolver(resolver).node(root)


def settled_values(root: Node, resolver: Resolver) -> dict[str, Value]:
    """Return a mapping from the names of the dimensions to the values that the resolver gives."""
    walk = _DimensionResolver(resolver)
    walk.node(root)
    return walk.settled


def dimensions(root: Node) -> tuple[tuple[str, Dimension], ...]:
    """Return every dimension with its name, in the order of the text.

    The name is `block.parameter` for a parameter, `count` for a repeat, and `choice` for a choice between
    parts. A second use of a name ends in `.2`, a third in `.3`, and so on.
    """
    found: list[tuple[str, Dimension]] = []

    def note(name: str, dimension: Dimension) -> Dimension:
        found.append((name, dimension))
        return dimension

    resolve(root, note)
    return tuple(found)


@dataclass(slots=True)
class _DimensionResolver:
    """Walk over a recipe that resolves its dimensions; it visits all options, since names depend on all."""

    resolver: Resolver
    name_counts: dict[str, int] = field(default_factory=dict)
    settled: dict[str, Value] = field(default_factory=dict)

    def node(self, node: Node) -> Node:
        """Return a part of the recipe in which all dimensions are resolved."""
        match node:
            case BlockNode():
                arguments = [
                    (name, self.value(value, f"{node.name}.{name}")) for name, value in node.arguments
                ]
                return BlockNode(node.name, tuple(arguments))
            case SumNode():
                return make_sum([self.node(part) for part in node.parts])
            case SeriesNode():
                return make_series([self.node(part) for part in node.parts])
            case RepeatNode():
                count = self.value(node.count, "count")
                return RepeatNode(count, self.node(node.body))  # pyright: ignore[reportArgumentType] -- a count settles to a count
            case TiedNode():
                return TiedNode(self.node(node.body))  # pyright: ignore[reportArgumentType] -- a repeat stays a repeat
            case _:
                return self.value(node, "choice")  # pyright: ignore[reportReturnType] -- a part settles to a part

    def value(self, value: Value, name: str) -> Value:
        """Return the resolved value of a parameter or part; `name` is its name if it is a dimension."""
        match value:
            case IntegerDimension() | RealDimension():
                unique = self._unique(name)
                answer = _validate_answer(value, self.resolver(unique, value))
                self.settled[unique] = answer
                return answer
            case ChoiceDimension():
                return self._choice(value, name)
            case BlockNode() | SumNode() | SeriesNode() | RepeatNode() | TiedNode():
                return self.node(value)
            case _:
                return value

    def _choice(self, choice: ChoiceDimension, name: str) -> Value:
        """Return the option that the resolver chooses, with the dimensions inside it resolved.

        If the choice stays open, return it with the dimensions of all options resolved.
        """
        unique = self._unique(name)
        answer = self.resolver(unique, choice)
        if isinstance(answer, IntegerDimension | RealDimension | ChoiceDimension):
            return ChoiceDimension(tuple(self.value(option, name) for option in choice.options))
        labels = [option_label(option) for option in choice.options]
        if isinstance(answer, HoleNode):
            self._walk_options(choice, name, taken=None)
            return answer
        if answer not in labels:
            raise ValueError(f"{unique} must be one of {', '.join(map(str, labels))}, got {answer}")
        taken = labels.index(answer)
        self.settled[unique] = self._walk_options(choice, name, taken)[taken]
        return self.settled[unique]

    def _walk_options(self, choice: ChoiceDimension, name: str, taken: int | None) -> list[Value]:
        """Return all options, with dimensions resolved only in the chosen option."""
        ask, walked = self.resolver, list[Value]()
        for place, option in enumerate(choice.options):
            self.resolver = ask if place == taken else lambda _name, dimension: dimension
            known = dict(self.settled)
            walked.append(self.value(option, name))
            if place != taken:
                self.settled = known
        self.resolver = ask
        return walked

    def _unique(self, name: str) -> str:
        """Return the name, with a number added from its second use on."""
        self.name_counts[name] = self.name_counts.get(name, 0) + 1
        return name if self.name_counts[name] == 1 else f"{name}.{self.name_counts[name]}"


def _validate_answer(
    dimension: IntegerDimension | RealDimension, answer: Scalar | Dimension | HoleNode
) -> Value:
    """Return the resolver's answer; raise ValueError if the answer is outside the dimension."""
    if answer is dimension or isinstance(answer, HoleNode):
        return answer
    number = answer if isinstance(answer, int | float) and not isinstance(answer, bool) else math.nan
    if dimension.low <= number <= dimension.high:
        if isinstance(dimension, RealDimension):
            return float(number)
        if isinstance(number, int) and (number - dimension.low) % dimension.step == 0:
            return number
    raise ValueError(f"expected a value of {render(dimension)}, got {answer}")
