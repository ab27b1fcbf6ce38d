"""What writes a target from an encoded source: a recurrent block, or any stack that attends to the source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Generic, cast

import torch
from torch import Tensor, nn

from ..grammar import nodes
from ..grammar.crossing import heads
from ..grammar.roles import mixes
from .alignment import Alignment, Attended, Encoded
from .block import Block, Context
from .crossing import CrossAttention
from .dropout import Dropout
from .recurrent import Carried, Recurrent
from .stack import Sublayer, build_body
from .streams import Piece, Stream
from .timing import timing_signal
from .transducer import State, StateOf


class Decoder(nn.Module, ABC, Generic[StateOf]):
    """A map of the outputs so far to the next one, as of a transducer, on a source that has been read."""

    outputs: int

    @abstractmethod
    def begin(self, source: Encoded) -> StateOf:
        """The state before the first output."""

    @abstractmethod
    def forward(self, state: StateOf, target: Tensor) -> Tensor:
        """All outputs (batch, m, outputs) from the beginning, target (batch, m, width)."""

    @abstractmethod
    def step(self, state: StateOf, previous: Tensor) -> tuple[Tensor, StateOf]:
        """One output (batch, outputs) from the previous one (batch, width), and the next state."""

    def attended(self, state: StateOf) -> Tensor | None:
        """As of a transducer: how much the last output attended to each position of the source."""
        return None


AnyDecoder = Decoder[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring(State):
    """The state of a recurrent decoder, and what it attends to, if anything."""

    carried: Carried
    source: Attended | None


class RecurrentDecoder(Decoder[Recurring]):
    """A recurrent block that begins in the last state of one like it, or in zeros.

    An output is its own h′, or with an attention [c ; h′], c the mean of what h′ attends to; dropout acts on
    it.
    """

    def __init__(self, *, block: Recurrent, alignment: Alignment | None, dropout: float) -> None:
        super().__init__()
        self.block = block
        self.alignment = alignment
        self.dropout = Dropout(dropout)
        self.outputs = block.width * (1 if alignment is None else 2)

    def begin(self, source: Encoded) -> Recurring:
        """Go on from the encoder."""
        carried = self.block.zeros(source.inputs) if source.last is None else source.last
        attended = None if self.alignment is None else self.alignment.attended(source)
        return Recurring(carried=carried, source=attended)

    def forward(self, state: Recurring, target: Tensor) -> Tensor:
        """The recurrence first, then all that is attended to."""
        return self._go_on(state, target)[0]

    def step(self, state: Recurring, previous: Tensor) -> tuple[Tensor, Recurring]:
        """One position."""
        outputs, state = self._go_on(state, previous.unsqueeze(1))
        return outputs.squeeze(1), state

    def attended(self, state: Recurring) -> Tensor | None:
        """The weights (batch, n) of the last h′; None without an attention."""
        if self.alignment is None or state.source is None:
            return None
        hidden = state.carried.parts[0][:, -1:]  # of the last layer: (batch, 1, width)
        return self.alignment.weights(hidden, state.source).squeeze(1)

    def weights(self, state: Recurring, target: Tensor) -> Tensor | None:
        """How much each output attends to each position of the source: (batch, m, n); None if to nothing."""
        if self.alignment is None or state.source is None:
            return None
        hidden, _ = self.block.run(target, state.carried)
        return self.alignment.weights(hidden, state.source)

    def _go_on(self, state: Recurring, target: Tensor) -> tuple[Tensor, Recurring]:
        hidden, carried = self.block.run(target, state.carried)
        state = replace(state, carried=carried)
        if self.alignment is None or state.source is None:
            return self.dropout(hidden), state
        context = self.alignment(hidden, state.source)
        return self.dropout(torch.cat([context, hidden], -1)), state


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacked(State):
    """The source's keys and values by layer, and what the blocks of a stack keep of the target."""

    source: tuple[tuple[Tensor, Tensor] | None, ...]
    mask: Tensor | None
    seen: int = 0
    kept: tuple[Tensor | None, ...] = ()


class _Step(Piece):
    """The next position of a target on its way through a stack; gradients pass through what is kept."""

    def __init__(self, kept: tuple[Tensor | None, ...]) -> None:
        super().__init__(Stream(kept=kept))
        self._past = kept
        self._next: list[Tensor | None] = []

    def apply(self, block: Block, x: Tensor) -> Tensor:
        """The outputs of a causal block at x (batch, 1, width)."""
        kept = self._past[len(self._next)] if self._past else None
        y, keep = block.resume(x, kept)
        self._next.append(keep)
        return y

    def kept(self) -> tuple[Tensor | None, ...]:
        """What the blocks keep."""
        return tuple(self._next)


class StackDecoder(Decoder[Stacked]):
    """A causal residual stack; behind each sub-layer in which positions mix comes an attention to the source.

    That is a sub-layer of its own, with the heads that `heads` finds, norm, residual and dropout as around
    any. Sub-layers with tied weights have one such attention in common. With pre-norm a last normalisation
    follows.
    """

    def __init__(self, node: nodes.Node, context: Context) -> None:
        super().__init__()
        self.body = build_body(node, context)
        found = iter(_mixing(node))
        self.crossings = nn.ModuleList(
            _crossing(next(found), context) if isinstance(layer, Sublayer) and layer.mixes else nn.Identity()
            for layer in self.body.layers
        )
        self.norm = nn.LayerNorm(context.width) if context.norm == "pre" else None
        self.timing = context.timing
        self.outputs = context.width

    def begin(self, source: Encoded) -> Stacked:
        """Keys and values of the source, for each layer that attends to it."""
        made = tuple(
            crossing.known(source.outputs) if isinstance(crossing, CrossAttention) else None
            for crossing in self.crossings
        )
        return Stacked(source=made, mask=source.mask)

    def forward(self, state: Stacked, target: Tensor) -> Tensor:
        """All positions at once."""
        return self._layers(state, target, None)

    def step(self, state: Stacked, previous: Tensor) -> tuple[Tensor, Stacked]:
        """One position."""
        piece = _Step(state.kept)
        y = self._layers(state, previous.unsqueeze(1), piece)
        return y.squeeze(1), replace(state, seen=state.seen + 1, kept=piece.kept())

    def _layers(self, state: Stacked, x: Tensor, piece: Piece | None) -> Tensor:
        """The sub-layers in turn, each followed by its attention to the source."""
        signal = timing_signal(x.shape[1], x.shape[2], like=x, start=state.seen) if self.timing else None
        x = x if signal is None else x + signal
        for place in self.body.order:
            x = self.body.layers[place](x, None, signal, piece)
            known = state.source[place]
            if known is not None:
                x = cast("CrossAttention", self.crossings[place])(x, known, state.mask)
        return x if self.norm is None else self.norm(x)


def _mixing(node: nodes.Node) -> list[nodes.Node]:
    """The sub-layers of a stack in which positions mix, those with weights of their own, in order."""
    match node:
        case nodes.Series():
            return [found for part in node.parts for found in _mixing(part)]
        case nodes.Repeat(count=int() as count):
            return _mixing(node.body) * count
        case nodes.Tied():
            return _mixing(node.body.body)
        case _:
            return [node] if mixes(node) else []


def _crossing(node: nodes.Node, context: Context) -> CrossAttention:
    number, width = heads(node)
    return CrossAttention(heads=number, head_width=width, context=context)
