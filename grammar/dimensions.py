"""Functions that name the search dimensions of a recipe and replace them by values.

A dimension inside an option of a choice exists only if that option is taken. A repeat's body has its
dimensions once: all copies take the same values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .canonical import option_label, render
from .nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    IntegerDimension,
    Node,
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
)
from .vocabulary.spec import spec_of

Resolver = Callable[[str, Dimension], Scalar | Dimension]
"""A function of the name of a search dimension and the dimension.

It returns a value, the label of a choice's option, or the dimension itself to leave it open.
"""


def resolve(root: Node, resolver: Resolver) -> Node:
    """Return a copy of the recipe with a value for each search dimension.

    The resolver chooses the values. Dimensions inside options that are not chosen are skipped. Raise
    ValueError for a result outside its dimension.
    """
    return _DimensionResolver(resolver).value(root, "choice")  # pyright: ignore[reportReturnType] -- a part settles to a part


def representative_values(dimension: Dimension) -> tuple[Scalar, ...]:
    """Return the values of a dimension at which a study is checked: both ends of a range, or every option."""
    if isinstance(dimension, ChoiceDimension):
        return tuple(option_label(option) for option in dimension.options)
    return (dimension.low, dimension.high)


def dimensions(root: Node) -> tuple[tuple[str, Dimension], ...]:
    """Return each search dimension of a recipe with its name, in the order of the text.

    The name is `block.parameter` for a parameter, `count` for a repeat, and `choice` for a choice between
    parts. A second use of a name ends in `.2`, a third in `.3`, and so on.
    """
    found: list[tuple[str, Dimension]] = []

    def note(name: str, dimension: Dimension) -> Dimension:
        found.append((name, dimension))
        return dimension

    resolve(root, note)
    return tuple(found)


def rebuild(node: Value, new_children: Sequence[Value]) -> Value:
    """Return a copy of the node with other children, in normal form.

    For example, an argument that equals its default is left out, and a sum inside a sum becomes one sum.
    """
    match node:
        case BlockNode():
            defaults = {parameter.name: parameter.default for parameter in spec_of(node.name).parameters}
            pairs = zip((name for name, _ in node.arguments), new_children, strict=True)
            return BlockNode(node.name, tuple(pair for pair in pairs if pair[1] != defaults.get(pair[0])))
        case SumNode():
            return make_sum(new_children)  # pyright: ignore[reportArgumentType] -- what stands in a sum are parts
        case SeriesNode():
            return make_series(new_children)  # pyright: ignore[reportArgumentType] -- as above
        case RepeatNode() | TiedNode():
            return type(node)(*new_children)  # pyright: ignore[reportArgumentType] -- a count and a part, or a repeat
        case _:
            return node


@dataclass(slots=True)
class _DimensionResolver:
    """Visitor that replaces each search dimension of a recipe by the value that the resolver chooses.

    All options of a choice are visited, because each dimension is numbered after all dimensions before it.
    """

    resolver: Resolver
    name_counts: dict[str, int] = field(default_factory=dict)

    def value(self, value: Value, name: str) -> Value:
        """Settle a part; `name` is its name if it is itself a dimension, before a number is added."""
        match value:
            case IntegerDimension() | RealDimension():
                unique = self._unique(name)
                return _validate_answer(unique, value, self.resolver(unique, value))
            case ChoiceDimension():
                return self._choice(value, name)
            case BlockNode():
                names = [f"{value.name}.{argument}" for argument, _ in value.arguments]
            case RepeatNode():
                names = ["count", "choice"]
            case _:
                names = ["choice"] * len(children(value))
        return rebuild(value, [self.value(*pair) for pair in zip(children(value), names, strict=True)])

    def _choice(self, choice: ChoiceDimension, name: str) -> Value:
        unique = self._unique(name)
        answer = self.resolver(unique, choice)
        if isinstance(answer, IntegerDimension | RealDimension | ChoiceDimension):
            return ChoiceDimension(tuple(self.value(option, name) for option in choice.options))
        labels = [option_label(option) for option in choice.options]
        if answer not in labels:
            raise ValueError(f"{unique} must be one of {', '.join(map(str, labels))}, got {answer}")
        return self._settle_option(choice, name, labels.index(answer))

    def _settle_option(self, choice: ChoiceDimension, name: str, taken: int) -> Value:
        """Return the option at index `taken`, with values for its search dimensions.

        The others are visited as well, so that names of later dimensions do not depend on this choice.
        """
        ask, walked = self.resolver, list[Value]()
        for place, option in enumerate(choice.options):
            self.resolver = ask if place == taken else lambda _name, dimension: dimension
            walked.append(self.value(option, name))
        self.resolver = ask
        return walked[taken]

    def _unique(self, name: str) -> str:
        self.name_counts[name] = self.name_counts.get(name, 0) + 1
        return name if self.name_counts[name] == 1 else f"{name}.{self.name_counts[name]}"


def _validate_answer(
    name: str, dimension: IntegerDimension | RealDimension, answer: Scalar | Dimension
) -> Value:
    if answer is dimension:
        return dimension
    number = answer if isinstance(answer, int | float) and not isinstance(answer, bool) else math.nan
    if dimension.low <= number <= dimension.high:
        if isinstance(dimension, RealDimension):
            return float(number)
        if isinstance(number, int) and (number - dimension.low) % dimension.step == 0:
            return number
    raise ValueError(f"{name} must be a value of {render(dimension)}, got {answer}")
