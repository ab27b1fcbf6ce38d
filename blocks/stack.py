"""How blocks are joined: sums on one input, and residual series with their norms, dropout and timing.

Behind a pool a vector goes on as a sequence of one position, without mask and timing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from ..grammar import nodes
from ..grammar.roles import VECTOR, mixes, output
from ..grammar.text import identity
from .block import Block, BuildError, Context, build_block
from .dropout import Dropout
from .streams import Piece


class Joined(nn.Module, ABC):
    """Blocks as one: as a block, but the timing signal (length, width), if there is one, passes through.

    So does a piece of a stream, which hands each block what it has kept.
    """

    @abstractmethod
    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        signal: Tensor | None = None,
        piece: Piece | None = None,
    ) -> Tensor:
        """Map (batch, length, width) to the same, or to (batch, 1, width) where a pool ends the sequence."""


class Sum(Joined):
    """All parts on the same input, their outputs added."""

    def __init__(self, parts: Sequence[Block | Joined]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        signal: Tensor | None = None,
        piece: Piece | None = None,
    ) -> Tensor:
        """Add in the order in which the parts were given."""
        first, *others = (_apply(part, x, mask, signal, piece) for part in self.parts)
        return sum(others, start=first)


class Sublayer(Joined):
    """One residual step: x + drop(part(norm(x))), or with post-norm norm(x + drop(part(x))).

    Without residuals the step is part(norm(x)), or norm(part(x)). If positions mix in it, the timing signal
    is first added to its input.
    """

    def __init__(self, part: Block | Joined, *, mixes: bool, context: Context) -> None:
        super().__init__()
        self.norm = None if context.norm == "none" else nn.LayerNorm(context.width)
        self.part = part
        self.dropout = Dropout(context.dropout) if context.residual else None
        self.mixes = mixes
        self.before = context.norm == "pre"

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        signal: Tensor | None = None,
        piece: Piece | None = None,
    ) -> Tensor:
        """One step of the residual stream."""
        if signal is not None and self.mixes:
            x = x + signal
        norm = self.norm
        y = _apply(self.part, norm(x) if norm is not None and self.before else x, mask, signal, piece)
        if self.dropout is not None:
            y = x + self.dropout(y)
        return y if norm is None or self.before else norm(y)


class Pooled(Joined):
    """The end of a sequence: a pool, or a sum of branches that pool; no norm and no residual around it."""

    def __init__(self, part: Block | Joined) -> None:
        super().__init__()
        self.part = part

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        signal: Tensor | None = None,
        piece: Piece | None = None,
    ) -> Tensor:
        """Map (batch, length, width) to (batch, 1, width)."""
        y = _apply(self.part, x, mask, signal, piece)
        return y if y.dim() == x.dim() else y.unsqueeze(1)


class Residual(Joined):
    """A residual stack: its sub-layers in the given order, one that comes again with the same weights."""

    def __init__(self, sublayers: Sequence[Sublayer | Pooled]) -> None:
        super().__init__()
        distinct = list(dict.fromkeys(sublayers))
        self.order = tuple(distinct.index(sublayer) for sublayer in sublayers)
        self.layers = nn.ModuleList(distinct)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        signal: Tensor | None = None,
        piece: Piece | None = None,
    ) -> Tensor:
        """All sub-layers in turn."""
        for place in self.order:
            layer = self.layers[place]
            x = layer(x, mask, signal, piece)
            if isinstance(layer, Pooled):
                mask = signal = None
        return x


def build_body(root: nodes.Node, context: Context) -> Residual:
    """The residual stack of a whole recipe; a lone block or sum is a stack of one part."""
    return Residual(_sublayers(root, context))


def _build_part(node: nodes.Node, context: Context) -> Block | Joined:
    """The module of what stands in a sum or in a sub-layer."""
    match node:
        case nodes.Block():
            block = build_block(node, context)
            return Pooled(block) if output(node) == VECTOR else block
        case nodes.Sum():
            # one order for all spellings, so that a + b and b + a are the same model to the last bit
            return Sum([_build_part(part, context) for part in sorted(node.parts, key=identity)])
        case _:
            return build_body(node, context)


def _sublayers(node: nodes.Node, context: Context) -> list[Sublayer | Pooled]:
    """The sub-layers that a node contributes to the series around it, repeats unrolled."""
    match node:
        case nodes.Series():
            return [sublayer for part in node.parts for sublayer in _sublayers(part, context)]
        case nodes.Repeat(count=int() as count):
            return [sublayer for _ in range(count) for sublayer in _sublayers(node.body, context)]
        case nodes.Tied(body=nodes.Repeat(count=int() as count)):
            return _sublayers(node.body.body, context) * count
        case nodes.Block() | nodes.Sum():
            part = _build_part(node, context)
            if output(node) == VECTOR:
                return [part if isinstance(part, Pooled) else Pooled(part)]
            return [Sublayer(part, mixes=mixes(node), context=context)]
        case _:
            raise BuildError(f"expected a block, a sum or a series, got {identity(node)}")


def _apply(
    part: nn.Module, x: Tensor, mask: Tensor | None, signal: Tensor | None, piece: Piece | None
) -> Tensor:
    if isinstance(part, Joined):
        return part(x, mask, signal, piece)
    return part(x, mask) if piece is None else piece.apply(cast("Block", part), x)
