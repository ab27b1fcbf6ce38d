"""Where a decoder attends to the source: behind each sub-layer of its stack in which positions mix."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .nodes import Block, Repeat, Series, Tied, Value, walk
from .recurrent import RECURRENT
from .roles import mixes
from .vocabulary import lookup, whole

HEADS, HEAD_WIDTH = 8, 64
"""The heads of an attention to the source behind a sub-layer that has none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The attention to the source behind a sub-layer of a decoder, and how often it has weights of its own.

    Its heads are those of the first block in the sub-layer that has heads.
    """

    heads: int
    head_width: int
    copies: int

    @property
    def width(self) -> int:
        """Of all heads together."""
        return self.heads * self.head_width


def recurrent(part: Value) -> bool:
    """Whether the part is a recurrent block by itself, whose last state a decoder can go on from."""
    return isinstance(part, Block) and part.name in RECURRENT


def heads(node: Value) -> tuple[int, int]:
    """The number and the width of the heads of the attention to the source behind that sub-layer."""
    for block in walk(node):
        spec = lookup(block.name) if isinstance(block, Block) else None
        if spec is None or not isinstance(block, Block):
            continue
        settings = spec.settings(block)
        if "heads" in settings and "head_width" in settings:
            return whole(settings, "heads"), whole(settings, "head_width")
    return HEADS, HEAD_WIDTH


def crossings(node: Value) -> tuple[Crossing, ...]:
    """The sub-layers of a decoder's stack in which positions mix, repeats not written out."""
    match node:
        case Series():
            return tuple(found for part in node.parts for found in crossings(part))
        case Repeat(count=int(count)):
            return tuple(replace(found, copies=count * found.copies) for found in crossings(node.body))
        case Tied(body=Repeat(body=body)):
            return crossings(body)
        case _ if mixes(node):
            number, width = heads(node)
            return (Crossing(heads=number, head_width=width, copies=1),)
        case _:
            return ()
