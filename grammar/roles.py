"""What the parts of a recipe give, so that sums and series can be checked: a sequence or a vector.

Channel blocks map what they get: behind a pool, the vector, as a sequence of one. A hole gives what its
filling will give; it is checked once it is filled.
"""

from __future__ import annotations

from .nodes import Block, Choice, Repeat, Series, Sum, Tied, Value, walk
from .vocabulary import Role, lookup

GIVES = {
    Role.MIXER: "a sequence",
    Role.CHANNEL: "a sequence",
    Role.POOL: "a vector",
    Role.TRANSDUCER: "a sequence of another length",
}
"""The output of a block of each role, in words."""

BESIDE = ": a pool stands behind the sum"
"""The end of a message on the unlike parts of a sum: where what cannot stand in it can."""

SEQUENCE, VECTOR, OTHER_LENGTH = GIVES[Role.MIXER], GIVES[Role.POOL], GIVES[Role.TRANSDUCER]


def output(node: Value) -> str | None:
    """What the part gives, in the words of GIVES; None where a hole decides."""
    match node:
        case Block():
            spec = lookup(node.name)
            return GIVES[spec.role] if spec else None
        case Series():
            return _last(node.parts)
        case Sum():
            return _first(node.parts)
        case Choice():
            return _first(node.options)
        case Repeat() | Tied():
            return output(node.body)
        case _:
            return None


def mixes(node: Value) -> bool:
    """Whether positions see each other anywhere inside the part."""
    blocks = (inside for inside in walk(node) if isinstance(inside, Block))
    return any(spec.role is Role.MIXER for block in blocks if (spec := lookup(block.name)) is not None)


def single(node: Value) -> bool:
    """Whether all of the part works on each position by itself, so that it can map a vector; holes may."""
    match node:
        case Block():
            spec = lookup(node.name)
            return spec is not None and spec.role is Role.CHANNEL
        case Series() | Sum():
            return all(single(part) for part in node.parts)
        case Choice():
            return all(single(option) for option in node.options)
        case Repeat() | Tied():
            return single(node.body)
        case _:
            return True


def odd_one(parts: tuple[Value | None, ...]) -> tuple[int, int] | None:
    """Two parts that give different things: the first that gives anything and the first unlike it."""
    known = [(place, output(part)) for place, part in enumerate(parts) if part is not None]
    known = [(place, gives) for place, gives in known if gives is not None]
    return next(((known[0][0], place) for place, gives in known if gives != known[0][1]), None)


def _last(parts: tuple[Value, ...]) -> str | None:
    """What a series gives: that of its last part, unless a part before has made something else of it."""
    found = [output(part) for part in parts]
    if VECTOR in found:
        return VECTOR
    return OTHER_LENGTH if found[-1] == SEQUENCE and OTHER_LENGTH in found else found[-1]


def _first(parts: tuple[Value, ...]) -> str | None:
    return next((gives for part in parts if (gives := output(part)) is not None), None)
