"""How blocks are joined: sums on one input, and residual series with their norms, dropout and timing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from ..grammar import nodes
from ..grammar.roles import mixes
from ..grammar.text import identity
from .block import Block, BuildError, Context, build_block
from .dropout import Dropout


class Joined(nn.Module, ABC):
    """Blocks as one: as a block, but the timing signal (length, width), if there is one, passes through."""

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None = None, signal: Tensor | None = None) -> Tensor:
        """Map (batch, length, width) to the same."""


class Sum(Joined):
    """All parts on the same input, their outputs added."""

    def __init__(self, parts: Sequence[Block | Joined]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Tensor, mask: Tensor | None = None, signal: Tensor | None = None) -> Tensor:
        """Add in the order in which the parts were given."""
        first, *others = (_apply(part, x, mask, signal) for part in self.parts)
        return sum(others, start=first)


class Sublayer(Joined):
    """One residual step: x + drop(part(norm(x))), or with post-norm norm(x + drop(part(x))).

    If positions mix in it, the timing signal is first added to the residual stream.
    """

    def __init__(self, part: Block | Joined, *, mixes: bool, context: Context) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(context.width)
        self.part = part
        self.dropout = Dropout(context.dropout)
        self.mixes = mixes
        self.before = context.norm == "pre"

    def forward(self, x: Tensor, mask: Tensor | None = None, signal: Tensor | None = None) -> Tensor:
        """One step of the residual stream."""
        if signal is not None and self.mixes:
            x = x + signal
        y = x + self.dropout(_apply(self.part, self.norm(x) if self.before else x, mask, signal))
        return y if self.before else self.norm(y)


class Residual(Joined):
    """A residual stack: its sub-layers in the given order, one that comes again with the same weights."""

    def __init__(self, sublayers: Sequence[Sublayer]) -> None:
        super().__init__()
        distinct = list(dict.fromkeys(sublayers))
        self.order = tuple(distinct.index(sublayer) for sublayer in sublayers)
        self.layers = nn.ModuleList(distinct)

    def forward(self, x: Tensor, mask: Tensor | None = None, signal: Tensor | None = None) -> Tensor:
        """All sub-layers in turn."""
        for place in self.order:
            x = self.layers[place](x, mask, signal)
        return x


def build_body(root: nodes.Node, context: Context) -> Residual:
    """The residual stack of a whole recipe; a lone block or sum is a stack of one part."""
    return Residual(_sublayers(root, context))


def _build_part(node: nodes.Node, context: Context) -> Block | Joined:
    """The module of what stands in a sum or in a sub-layer."""
    match node:
        case nodes.Block():
            return build_block(node, context)
        case nodes.Sum():
            # one order for all spellings, so that a + b and b + a are the same model to the last bit
            return Sum([_build_part(part, context) for part in sorted(node.parts, key=identity)])
        case _:
            return build_body(node, context)


def _sublayers(node: nodes.Node, context: Context) -> list[Sublayer]:
    """The sub-layers that a node contributes to the series around it, repeats unrolled."""
    match node:
        case nodes.Series():
            return [sublayer for part in node.parts for sublayer in _sublayers(part, context)]
        case nodes.Repeat(count=int() as count):
            return [sublayer for _ in range(count) for sublayer in _sublayers(node.body, context)]
        case nodes.Tied(body=nodes.Repeat(count=int() as count)):
            return _sublayers(node.body.body, context) * count
        case nodes.Block() | nodes.Sum():
            return [Sublayer(_build_part(node, context), mixes=mixes(node), context=context)]
        case _:
            raise BuildError(f"expected a block, a sum or a series, got {identity(node)}")


def _apply(part: nn.Module, x: Tensor, mask: Tensor | None, signal: Tensor | None) -> Tensor:
    return part(x, mask, signal) if isinstance(part, Joined) else part(x, mask)
