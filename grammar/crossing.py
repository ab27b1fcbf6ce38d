"""Where a decoder attends to the source: behind each sub-layer of its stack in which positions mix."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .nodes import Block, Repeat, Series, Tied, Value, walk
from .recurrent import RECURRENT
from .roles import mixes
from .text import render
from .vocabulary import lookup, whole

HEADS, HEAD_WIDTH = 8, 64
"""The heads of an attention to the source behind a sub-layer that has none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A sub-layer of a decoder behind which there is an attention to the source, and how often it is there.

    Its heads are those of the first block in the sub-layer that has heads.
    """

    heads: int
    head_width: int
    behind: str  # the sub-layer's text
    copies: int  # with weights of their own
    applied: int

    @property
    def often(self) -> str:
        """How often it is there, as repeats are labelled: `2 × tied 3 × `; nothing for once."""
        tied = self.applied // self.copies
        return (f"{self.copies} × " if self.copies > 1 else "") + (f"tied {tied} × " if tied > 1 else "")


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
            return tuple(
                replace(found, copies=count * found.copies, applied=count * found.applied)
                for found in crossings(node.body)
            )
        case Tied(body=Repeat(count=int(count), body=body)):
            return tuple(replace(found, applied=count * found.applied) for found in crossings(body))
        case _ if mixes(node):
            number, width = heads(node)
            return (Crossing(heads=number, head_width=width, behind=render(node), copies=1, applied=1),)
        case _:
            return ()
