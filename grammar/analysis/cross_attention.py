"""Where a decoder attends to the source: behind each sub-layer of its stack in which positions mix."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..nodes import BlockNode, RepeatNode, SeriesNode, TiedNode, Value, walk
from ..vocabulary.output_kinds import mixes_positions
from ..vocabulary.recurrent import INPUT_MAPS
from ..vocabulary.registry import lookup
from ..vocabulary.spec import as_int

DEFAULT_HEADS, DEFAULT_HEAD_WIDTH = 8, 64
"""The heads of an attention to the source behind a sub-layer that has none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossAttentionShape:
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


def is_recurrent(part: Value) -> bool:
    """Whether the part is a recurrent block by itself, whose last state a decoder can go on from."""
    return isinstance(part, BlockNode) and part.name in INPUT_MAPS


def cross_attention_heads(node: Value) -> tuple[int, int]:
    """The number and the width of the heads of the attention to the source behind that sub-layer."""
    for block in walk(node):
        spec = lookup(block.name) if isinstance(block, BlockNode) else None
        if spec is None or not isinstance(block, BlockNode):
            continue
        settings = spec.settings(block)
        if "heads" in settings and "head_width" in settings:
            return as_int(settings, "heads"), as_int(settings, "head_width")
    return DEFAULT_HEADS, DEFAULT_HEAD_WIDTH


def find_cross_attentions(node: Value) -> tuple[CrossAttentionShape, ...]:
    """The sub-layers of a decoder's stack in which positions mix, repeats not written out."""
    match node:
        case SeriesNode():
            return tuple(found for part in node.parts for found in find_cross_attentions(part))
        case RepeatNode(count=int(count)):
            return tuple(
                replace(found, copies=count * found.copies) for found in find_cross_attentions(node.body)
            )
        case TiedNode(body=RepeatNode(body=body)):
            return find_cross_attentions(body)
        case _ if mixes_positions(node):
            number, width = cross_attention_heads(node)
            return (CrossAttentionShape(heads=number, head_width=width, copies=1),)
        case _:
            return ()
