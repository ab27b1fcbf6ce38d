"""The output kind of a part of a recipe: a sequence, a vector, or a sequence of another length.

Sums and series are checked by the output kinds of their parts, because the parts must fit together. Channel
blocks keep the kind of their input: after a pool they map the vector, as a sequence of one. A hole has the
kind of its content, and is checked once it is filled.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..nodes import BlockNode, ChoiceDimension, RepeatNode, SeriesNode, SumNode, TiedNode, Value, walk
from ..positions import POSITIONS, RandomisedPairs
from .spec import Role, Spec, lookup

OUTPUT_KINDS = {
    Role.MIXER: "a sequence",
    Role.CHANNEL: "a sequence",
    Role.POOL: "a vector",
    Role.TRANSDUCER: "a sequence of another length",
}
"""The output of a block of each role, as messages name it."""

POOL_ADVICE = ": put a pool after the sum"
"""The end of a message about different parts of a sum, which says where a pool is allowed."""

SEQUENCE, VECTOR, OTHER_LENGTH = (
    OUTPUT_KINDS[Role.MIXER],
    OUTPUT_KINDS[Role.POOL],
    OUTPUT_KINDS[Role.TRANSDUCER],
)


def output_kind(node: Value) -> str | None:
    """Return the output kind of a part, one of OUTPUT_KINDS; None if it depends on an unfilled hole."""
    match node:
        case BlockNode():
            spec = lookup(node.name)
            return OUTPUT_KINDS[spec.role] if spec else None
        case SeriesNode():
            return _series_output(node.parts)
        case SumNode():
            return _first_known_output(node.parts)
        case ChoiceDimension():
            return _first_known_output(node.options)
        case RepeatNode() | TiedNode():
            return output_kind(node.body)
        case _:
            return None


def _blocks(node: Value) -> Iterator[tuple[BlockNode, Spec]]:
    """Yield each block inside a part with its specification."""
    for inside in walk(node):
        if isinstance(inside, BlockNode) and (spec := lookup(inside.name)) is not None:
            yield inside, spec


def mixes_positions(node: Value) -> bool:
    """Return whether a part contains a block that mixes positions (role "mixer")."""
    return any(spec.role is Role.MIXER for _, spec in _blocks(node))


def pair_position_fault(root: Value, position: str) -> str | None:
    """Return a message if the setting `position` is `randomised_pairs` but no block uses it, else None.

    Only blocks that compare pairs of positions use it, for example `sa(pos=rope)`.
    """
    if not isinstance(POSITIONS.get(position), RandomisedPairs):
        return None
    for block, spec in _blocks(root):
        if spec.compares_positions is not None and spec.compares_positions(spec.settings(block)):
            return None
    return f"{position} needs a mixer with pairwise positions, for example sa(pos=rope)"


def compiled_for_each_length(root: Value) -> tuple[BlockNode, ...]:
    """Return the distinct blocks that `torch.compile` must compile again for every new length."""
    found: dict[BlockNode, None] = {}
    for block, spec in _blocks(root):
        if spec.compiled_for_each_length is not None and spec.compiled_for_each_length(spec.settings(block)):
            found[block] = None
    return tuple(found)


def export_faults(root: Value) -> dict[BlockNode, str]:
    """Return a mapping from each block that cannot be exported to the reason."""
    faults: dict[BlockNode, str] = {}
    for block, spec in _blocks(root):
        if spec.export_fault is not None and (fault := spec.export_fault(spec.settings(block))) is not None:
            faults[block] = fault
    return faults


def uncounted_kernels(root: Value) -> str:
    """Return a text that names the kernels whose FLOPs the analysis of a recipe leaves out.

    It is "" if there are none, so that the FLOPs are exact.
    """
    found = {block.name: spec.package for block, spec in _blocks(root) if spec.package}
    return "; ".join(f"FLOPs of {name} leave out the kernels of {package}" for name, package in found.items())


def is_positionwise(node: Value) -> bool:
    """Return whether a part maps each position separately.

    Such a part can also map a single vector. A hole counts as such a part.
    """
    match node:
        case BlockNode():
            spec = lookup(node.name)
            return spec is not None and spec.role is Role.CHANNEL
        case SeriesNode() | SumNode():
            return all(is_positionwise(part) for part in node.parts)
        case ChoiceDimension():
            return all(is_positionwise(option) for option in node.options)
        case RepeatNode() | TiedNode():
            return is_positionwise(node.body)
        case _:
            return True


def find_mismatch(parts: tuple[Value | None, ...]) -> tuple[int, int] | None:
    """Return the indices of the first two parts with different output kinds; None if all kinds are equal."""
    known = [(place, output_kind(part)) for place, part in enumerate(parts) if part is not None]
    known = [(place, gives) for place, gives in known if gives is not None]
    return next(((known[0][0], place) for place, gives in known if gives != known[0][1]), None)


def _series_output(parts: tuple[Value, ...]) -> str | None:
    """Return the output kind of a series.

    Parts that map each position separately do not change it.
    """
    found = [output_kind(part) for part in parts]
    if VECTOR in found:
        return VECTOR
    return OTHER_LENGTH if found[-1] == SEQUENCE and OTHER_LENGTH in found else found[-1]


def _first_known_output(parts: tuple[Value, ...]) -> str | None:
    return next((gives for part in parts if (gives := output_kind(part)) is not None), None)
