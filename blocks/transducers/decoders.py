"""Decoders, which write a target from an encoded source.

A decoder is a recurrent block, or a stack that attends to the source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Generic, cast

import torch
from torch import Tensor, nn

from ...grammar import nodes
from ...grammar.seq2seq import cross_attention_heads
from ...grammar.vocabulary.output_kinds import mixes_positions
from ..core.block import Context
from ..core.dropout import Dropout
from ..core.initialisation import Linear
from ..core.normalisation import build_final_norm
from ..core.positional_encoding import PositionalEncoding
from ..core.residual_stack import SideInputs, Sublayer, build_body, recomputed
from ..core.streaming import StreamChunk
from ..core.transducer import State, StateT
from ..layers.recurrent import Recurrent, RecurrentState
from .alignment import Alignment, EncodedSource, KeysValues
from .cross_attention import CrossAttention


class Decoder(nn.Module, ABC, Generic[StateT]):
    """A map of the outputs so far to the next one, given an encoded source."""

    output_width: int

    @abstractmethod
    def begin(self, source: EncodedSource) -> StateT:
        """Return the state before the first output."""

    @abstractmethod
    def forward(self, state: StateT, target: Tensor) -> Tensor:
        """Return all outputs (batch, m, outputs) from the beginning, target (batch, m, width)."""

    @abstractmethod
    def step(self, state: StateT, previous: Tensor) -> tuple[Tensor, StateT]:
        """Return one output (batch, outputs) after the previous one (batch, width), and the next state."""

    def attention_weights(self, state: StateT) -> Tensor | None:
        """Return the attention of the last output to each position of the source, (batch, n)."""
        return None


AnyDecoder = Decoder[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentDecoderState(State):
    """The state of a recurrent decoder, and what it attends to, if anything.

    Where it is fed back, `context` (batch, 1, units) is the last mean of what was attended to.
    """

    recurrent_state: RecurrentState
    source: KeysValues | None
    context: Tensor | None


class RecurrentDecoder(Decoder[RecurrentDecoderState]):
    """A recurrent block that begins in the last state of one like it, or in zeros.

    An output is its own h′, or with an attention [c ; h′], c the mean of what h′ attends to; dropout acts on
    it. A map `merge`, if there is one, makes the next input of that input and c, which is 0 at first (input
    feeding: Luong et al. 2015, section 3.3; Vinyals et al. 2015, section 2.1).
    """

    def __init__(
        self, *, block: Recurrent, alignment: Alignment | None, merge: Linear | None, dropout: float
    ) -> None:
        super().__init__()
        self.block = block
        self.alignment = alignment
        self.merge = merge
        self.dropout = Dropout(dropout)
        self.output_width = block.width * (1 if alignment is None else 2)

    def begin(self, source: EncodedSource) -> RecurrentDecoderState:
        carried = self.block.zero_state(source.inputs) if source.final_state is None else source.final_state
        attended = None if self.alignment is None else self.alignment.project_source(source)
        nothing = (
            None if self.merge is None else source.outputs.new_zeros(len(source.outputs), 1, self.block.width)
        )
        return RecurrentDecoderState(recurrent_state=carried, source=attended, context=nothing)

    def forward(self, state: RecurrentDecoderState, target: Tensor) -> Tensor:
        """Run the recurrence first, then attend; step by step where the context is fed back."""
        return self._advance(state, target)[0]

    def step(self, state: RecurrentDecoderState, previous: Tensor) -> tuple[Tensor, RecurrentDecoderState]:
        outputs, state = self._advance(state, previous.unsqueeze(1))
        return outputs.squeeze(1), state

    def attention_weights(self, state: RecurrentDecoderState) -> Tensor | None:
        """Return the weights (batch, n) of the last h′; None without an attention."""
        if self.alignment is None or state.source is None:
            return None
        hidden = state.recurrent_state.tensors[0][:, -1:]  # of the last layer: (batch, 1, width)
        return self.alignment.weights(hidden, state.source).squeeze(1)

    def alignment_matrix(self, state: RecurrentDecoderState, target: Tensor) -> Tensor | None:
        """Return the attention of each output to the source, (batch, m, n), or None."""
        if self.alignment is None or state.source is None:
            return None
        return self.alignment.weights(self._run(state, target)[0], state.source)

    def _advance(self, state: RecurrentDecoderState, target: Tensor) -> tuple[Tensor, RecurrentDecoderState]:
        hidden, context, state = self._run(state, target)
        return self.dropout(hidden if context is None else torch.cat([context, hidden], -1)), state

    def _run(
        self, state: RecurrentDecoderState, target: Tensor
    ) -> tuple[Tensor, Tensor | None, RecurrentDecoderState]:
        """Return all h′ and c (batch, m, units), or None for those, and the state behind them."""
        if self.merge is None:
            return self._attend(state, target)
        found: list[tuple[Tensor, Tensor]] = []
        for each in target.split(1, 1):
            assert state.context is not None, "what is fed back begins as zeros"
            hidden, context, state = self._attend(state, self.merge(torch.cat([each, state.context], -1)))
            assert context is not None, "an attention is fed back"
            state = replace(state, context=context)
            found.append((hidden, context))
        hidden, context = (torch.cat(each, 1) for each in zip(*found, strict=True))
        return hidden, context, state

    def _attend(
        self, state: RecurrentDecoderState, target: Tensor
    ) -> tuple[Tensor, Tensor | None, RecurrentDecoderState]:
        hidden, carried = self.block.run(target, state.recurrent_state)
        state = replace(state, recurrent_state=carried)
        if self.alignment is None or state.source is None:
            return hidden, None, state
        return hidden, self.alignment(hidden, state.source), state


@dataclass(frozen=True, slots=True, kw_only=True)
class StackDecoderState(State):
    """The source's keys and values by layer, and what the blocks of a stack keep of the target."""

    source: tuple[tuple[Tensor, Tensor] | None, ...]
    mask: Tensor | None
    past_length: int = 0
    block_states: tuple[Tensor | None, ...] = ()


class StackDecoder(Decoder[StackDecoderState]):
    """A causal residual stack; behind each sub-layer in which positions mix comes an attention to the source.

    That is a sub-layer of its own, with the heads that `cross_attention_heads` finds, and with norm, residual
    and dropout as around any. Sub-layers with tied weights have one such attention in common. With pre-norm a
    last normalisation follows.
    """

    def __init__(self, node: nodes.Node, context: Context) -> None:
        super().__init__()
        self.body = build_body(node, context)
        found = iter(_mixing(node))
        self.crossings = nn.ModuleList(
            _crossing(next(found), context) if isinstance(layer, Sublayer) and layer.mixes else nn.Identity()
            for layer in self.body.layers
        )
        self.norm = build_final_norm(context.config)
        self.positions = PositionalEncoding(context.config)
        self.output_width = context.width

    def begin(self, source: EncodedSource) -> StackDecoderState:
        made = tuple(
            crossing.project_source(source.outputs) if isinstance(crossing, CrossAttention) else None
            for crossing in self.crossings
        )
        return StackDecoderState(source=made, mask=source.mask)

    def forward(self, state: StackDecoderState, target: Tensor) -> Tensor:
        return self._layers(state, target, None)

    def step(self, state: StackDecoderState, previous: Tensor) -> tuple[Tensor, StackDecoderState]:
        chunk = StreamChunk(state.block_states, with_grad=True)
        y = self._layers(state, previous.unsqueeze(1), chunk).squeeze(1)
        return y, replace(state, past_length=state.past_length + 1, block_states=chunk.next_states())

    def _layers(self, state: StackDecoderState, x: Tensor, chunk: StreamChunk | None) -> Tensor:
        x, signal = self.positions(x, state.past_length)
        for place in self.body.order:
            x = self.body.apply_layer(place, x, SideInputs(signal=signal, chunk=chunk))
            known = state.source[place]
            if known is not None:
                x = self._cross(cast("CrossAttention", self.crossings[place]), x, known, state.mask)
        return x if self.norm is None else self.norm(x)

    def _cross(
        self, crossing: CrossAttention, x: Tensor, known: tuple[Tensor, Tensor], mask: Tensor | None
    ) -> Tensor:
        """Apply a cross-attention, and recompute it in the backward pass where sub-layers are."""
        if not self.body.recomputes:
            return crossing(x, known, mask)

        def apply(x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            return crossing(x, (keys, values), mask)

        return recomputed(apply, apply, x, *known)


def _mixing(node: nodes.Node) -> list[nodes.Node]:
    """Return the sub-layers of a stack in which positions mix, those with weights of their own, in order."""
    match node:
        case nodes.SeriesNode():
            return [found for part in node.parts for found in _mixing(part)]
        case nodes.RepeatNode(count=int() as count):
            return _mixing(node.body) * count
        case nodes.TiedNode():
            return _mixing(node.body.body)
        case _:
            return [node] if mixes_positions(node) else []


def _crossing(node: nodes.Node, context: Context) -> CrossAttention:
    number, width = cross_attention_heads(node)
    return CrossAttention(heads=number, head_width=width, context=context)
