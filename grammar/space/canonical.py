"""Parts made anew from what stands in them, in the form that reading their text gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..nodes import Block, Repeat, Series, Sum, Tied, Value, series_of, sum_of
from ..vocabulary import lookup


def block_of(name: str, arguments: Iterable[tuple[str, Value]]) -> Block:
    """A block without the arguments that equal their defaults."""
    spec = lookup(name)
    assert spec is not None, f"{name} has left the vocabulary"
    defaults = {parameter.name: parameter.default for parameter in spec.parameters}
    return Block(name, tuple(pair for pair in arguments if pair[1] != defaults[pair[0]]))


def rebuilt(node: Value, inside: Sequence[Value]) -> Value:
    """The node with other things inside, given in the order of `children`.

    A sum joins a sum around it, a series a series; a sum or series of one part is taken as it is.
    """
    match node:
        case Block():
            return block_of(node.name, zip((name for name, _ in node.arguments), inside, strict=True))
        case Sum():
            return sum_of(inside)  # pyright: ignore[reportArgumentType] -- what stands in a sum are parts
        case Series():
            return series_of(inside)  # pyright: ignore[reportArgumentType] -- as above
        case Repeat():
            return Repeat(*inside)  # pyright: ignore[reportArgumentType] -- a count and a part
        case Tied():
            return Tied(*inside)  # pyright: ignore[reportArgumentType] -- a repeat stays one
        case _:
            return node
