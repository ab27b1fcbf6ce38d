"""Parts made anew from what stands in them, in the form that reading their text gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..nodes import BlockNode, RepeatNode, SeriesNode, SumNode, TiedNode, Value, make_series, make_sum
from ..vocabulary.registry import spec_of


def make_block(name: str, arguments: Iterable[tuple[str, Value]]) -> BlockNode:
    """A block without the arguments that equal their defaults."""
    defaults = {parameter.name: parameter.default for parameter in spec_of(name).parameters}
    return BlockNode(name, tuple(pair for pair in arguments if pair[1] != defaults[pair[0]]))


def rebuild(node: Value, new_children: Sequence[Value]) -> Value:
    """The node with other things inside, given in the order of `children`.

    A sum joins a sum around it, a series a series; a sum or series of one part is taken as it is.
    """
    match node:
        case BlockNode():
            return make_block(node.name, zip((name for name, _ in node.arguments), new_children, strict=True))
        case SumNode():
            return make_sum(new_children)  # pyright: ignore[reportArgumentType] -- what stands in a sum are parts
        case SeriesNode():
            return make_series(new_children)  # pyright: ignore[reportArgumentType] -- as above
        case RepeatNode():
            return RepeatNode(*new_children)  # pyright: ignore[reportArgumentType] -- a count and a part
        case TiedNode():
            return TiedNode(*new_children)  # pyright: ignore[reportArgumentType] -- a repeat stays one
        case _:
            return node
