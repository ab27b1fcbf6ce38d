"""Encoder-decoder models: an encoder reads the source, and a decoder writes the target.

A decoder is a recurrent block with or without attention to the source, or a stack that attends to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Generic

import torch
from torch import Tensor, nn

from ...grammar import configure, nodes
from ...grammar.seq2seq import cross_attention_heads, is_recurrent, mixing_sublayers, recurrent_units
from ...grammar.vocabulary.spec import Settings, as_bool, as_int, as_word
from ..core.block import Context, StreamChunk, build_block
from ..core.dropout import Dropout
from ..core.initialisation import Linear
from ..core.positions import PositionalEncoding, sinusoidal_encoding
from ..core.residual_stack import ResidualStep, SideInputs, Sublayer, build_body, build_final_norm
from ..core.transducer import State, StateT, Transducer, register_transducer
from ..layers.attention import attend
from ..layers.recurrent import Recurrent, RecurrentState


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedSource(State):
    """An encoded source.

    `inputs` and `outputs` are those of the encoder, each (batch, n, width). The outputs may have another
    width. `mask` (batch, n) is true at valid positions; `final_state` is the last state of a recurrent
    encoder.
    """

    inputs: Tensor
    outputs: Tensor
    mask: Tensor | None
    final_state: RecurrentState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysValues(State):
    """The source vectors that a decoder attends to.

    `keys` and `values` are (batch, n, width) each; the values are the source vectors. `padding` (batch, n) is
    true at padding.
    """

    keys: Tensor
    values: Tensor
    padding: Tensor | None


class Alignment(nn.Module, ABC):
    """Attention of a decoder to the encoder's outputs, or to the encoder's inputs.

    In the second case, position vectors are appended to the inputs. The position vectors are a timing signal
    of `positions` channels. They only affect the scores; the means are over the plain inputs. With 0
    `positions`, attention reads the encoder's outputs.
    """

    def __init__(self, *, width: int, positions: int, dropout: float) -> None:
        super().__init__()
        self.positions = positions
        self.keys = Linear(width + positions, width, bias=False)
        self.dropout = Dropout(dropout)

    @abstractmethod
    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """Return attention scores (batch, m, n) of states (batch, m, width) and keys (batch, n, width)."""

    def project_source(self, source: EncodedSource) -> KeysValues:
        """Return the keys and values of a source. They are the same for all outputs."""
        values = source.inputs if self.positions else source.outputs
        known = values
        if self.positions:
            signal = sinusoidal_encoding(values.shape[1], self.positions, like=values)
            known = torch.cat([values, signal.expand(len(values), -1, -1)], 2)
        padding = None if source.mask is None else ~source.mask
        if padding is not None:
            values = values.masked_fill(padding.unsqueeze(-1), 0.0)
        return KeysValues(keys=self.keys(known), values=values, padding=padding)

    def weights(self, states: Tensor, source: KeysValues) -> Tensor:
        """Return the attention weights (batch, m, n) of states (batch, m, width) over source positions."""
        scores = self.scores(states, source.keys)
        if source.padding is not None:
            scores = scores.masked_fill(source.padding[:, None, :], -torch.inf)
        return torch.softmax(scores, -1)

    def forward(self, states: Tensor, source: KeysValues) -> Tensor:
        """Return the weighted mean of the source vectors for each state, (batch, m, width)."""
        return self.dropout(self.weights(states, source)) @ source.values


class Luong(Alignment):
    """Attention with the score h′ᵀ W m (Luong et al. 2015, equation 8, "general").

    h′ is the decoder's state, and m is a source vector.
    """

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        return states @ keys.transpose(1, 2)


class Bahdanau(Alignment):
    """Attention with score = vᵀ tanh(W_k m + W_q h′), for decoder state h′ and source vector m.

    Bahdanau et al. 2015, section A.1.2.
    """

    def __init__(self, *, width: int, positions: int, dropout: float) -> None:
        super().__init__(width=width, positions=positions, dropout=dropout)
        self.queries = Linear(width, width, bias=False)
        self.vector = Linear(width, 1, bias=False)

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        pairs = self.queries(states).unsqueeze(2) + keys.unsqueeze(1)  # (batch, m, n, width)
        return self.vector(torch.tanh(pairs)).squeeze(-1)


ALIGNMENTS: dict[str, type[Alignment]] = {"luong": Luong, "bahdanau": Bahdanau}


class CrossAttention(ResidualStep):
    """A residual sub-layer of a decoder that attends to the source.

    Multi-head softmax attention without biases, scores scaled by head_width^-0.5 (Vaswani et al. 2017).
    """

    def __init__(self, heads: int, head_width: int, context: Context) -> None:
        super().__init__()
        width = context.width
        self.heads = heads
        self.queries = Linear(width, heads * head_width, bias=False)
        self.keys_values = Linear(width, heads * head_width, bias=False, maps=2)
        self.output = Linear(heads * head_width, width, bias=False)
        self._add_norm_and_dropout(context)
        self.attention_dropout = Dropout(context.config.settings.attention_dropout)

    def project_source(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of a source (batch, n, width), each (batch, heads, n, head_width)."""
        found = self.keys_values(source).unflatten(2, (2, self.heads, -1))
        keys, values = found.permute(2, 0, 3, 1, 4).unbind(0)
        return keys, values

    def forward(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Add cross-attention to `x` (batch, m, width).

        It is a residual sub-layer. `mask` (batch, n) is the mask of the source.
        """
        return self._step(x, self._attend, keys_values, mask)

    def _attend(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        queries = self.queries(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        y = attend(queries, *keys_values, mask, self.attention_dropout)
        return self.output(y.transpose(1, 2).flatten(2))


class Decoder(nn.Module, ABC, Generic[StateT]):
    """Base class of modules that compute each output from an encoded source and the earlier outputs."""

    output_width: int

    @abstractmethod
    def begin(self, source: EncodedSource) -> StateT:
        """Return the decoder's state before the first output, given the encoded source."""

    @abstractmethod
    def forward(self, state: StateT, target: Tensor) -> Tensor:
        """Return all outputs (batch, m, outputs) for a whole target (batch, m, width)."""

    @abstractmethod
    def step(self, state: StateT, previous: Tensor) -> tuple[Tensor, StateT]:
        """Return the next output (batch, outputs) and state, given the previous output (batch, width)."""

    def attention_weights(self, state: StateT) -> Tensor | None:
        """Return the attention of the last output to each position of the source, (batch, n)."""
        return None


AnyDecoder = Decoder[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentDecoderState(State):
    """The state of a recurrent decoder.

    If the decoder has attention, `source` has the source vectors to attend to. With input feeding, `context`
    (batch, 1, units) is the last weighted mean of these vectors.
    """

    recurrent_state: RecurrentState
    source: KeysValues | None
    context: Tensor | None


class RecurrentDecoder(Decoder[RecurrentDecoderState]):
    """A decoder that is a recurrent block.

    Its first state is the encoder's last state, or zeros. An output is h′ or, with attention, [c ; h′], where
    c is the mean attended to by h′; dropout is applied to it. With a map `merge`, the next input is computed
    from the input and c, which is 0 at first (input feeding: Luong et al. 2015, section 3.3; Vinyals et al.
    2015, section 2.1).
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
        """Attend after the whole recurrence or, with input feeding, before each next step."""
        return self._advance(state, target)[0]

    def step(self, state: RecurrentDecoderState, previous: Tensor) -> tuple[Tensor, RecurrentDecoderState]:
        outputs, state = self._advance(state, previous.unsqueeze(1))
        return outputs.squeeze(1), state

    def attention_weights(self, state: RecurrentDecoderState) -> Tensor | None:
        """Return the attention weights (batch, n) for the last hidden state h′; None without attention."""
        if self.alignment is None or state.source is None:
            return None
        hidden = state.recurrent_state.tensors[0][:, -1:]  # last layer's state, (batch, 1, width)
        return self.alignment.weights(hidden, state.source).squeeze(1)

    def alignment_matrix(self, state: RecurrentDecoderState, target: Tensor) -> Tensor | None:
        """Return the attention of each output to the source, (batch, m, n); None without attention."""
        if self.alignment is None or state.source is None:
            return None
        return self.alignment.weights(self._run(state, target)[0], state.source)

    def _advance(self, state: RecurrentDecoderState, target: Tensor) -> tuple[Tensor, RecurrentDecoderState]:
        hidden, context, state = self._run(state, target)
        return self.dropout(hidden if context is None else torch.cat([context, hidden], -1)), state

    def _run(
        self, state: RecurrentDecoderState, target: Tensor
    ) -> tuple[Tensor, Tensor | None, RecurrentDecoderState]:
        """Return all hidden states h′ and contexts c (batch, m, units), and the new state."""
        if self.merge is None:
            return self._attend(state, target)
        found: list[tuple[Tensor, Tensor]] = []
        for each in target.split(1, 1):
            assert state.context is not None, "the first context is zeros, not None"
            hidden, context, state = self._attend(state, self.merge(torch.cat([each, state.context], -1)))
            assert context is not None, "only a decoder with attention feeds its context back"
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
    """The state of a stack decoder.

    `source` has the keys and values of the source for each cross-attention, and `block_states` the states of
    the stack's blocks.
    """

    source: tuple[tuple[Tensor, Tensor] | None, ...]
    mask: Tensor | None
    past_length: int = 0
    block_states: tuple[Tensor | None, ...] = ()


class StackDecoder(Decoder[StackDecoderState]):
    """A causal residual stack with a cross-attention after each sub-layer that mixes positions.

    The cross-attention is a separate sub-layer, with heads by `cross_attention_heads`, and with norm,
    residual and dropout like any other. Sub-layers with tied weights share their cross-attention. With
    pre-norm a last normalisation follows.
    """

    def __init__(self, node: nodes.Node, context: Context) -> None:
        super().__init__()
        self.body = build_body(node, context)
        heads = iter([cross_attention_heads(each) for each in mixing_sublayers(node)])
        self.crossings = nn.ModuleList(
            CrossAttention(*next(heads), context)
            if isinstance(layer, Sublayer) and layer.mixes
            else nn.Identity()
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
            x = self.body.layers[place](x, SideInputs(signal=signal, chunk=chunk))
            known = state.source[place]
            if known is not None:
                x = self.crossings[place](x, known, state.mask)
        return x if self.norm is None else self.norm(x)


class StackEncoder(nn.Module):
    """An encoder that is a non-causal residual stack, with a final norm if norms come before sub-layers."""

    def __init__(self, node: nodes.Node, context: Context) -> None:
        super().__init__()
        self.body = build_body(node, context)
        self.norm = build_final_norm(context.config)
        self.positions = PositionalEncoding(context.config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x, signal = self.positions(x)
        y = self.body(x, SideInputs(mask, signal))
        return y if self.norm is None else self.norm(y)


@register_transducer("seq2seq")
class Seq2Seq(Transducer[State]):
    """An encoder and a decoder, each a recurrent block or a residual stack.

    A recurrent block has no norm, residual sum or timing signal, and its last state initialises a recurrent
    decoder. Any other encoder is non-causal, and any other decoder is a StackDecoder.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        # blocks share modules only within the encoder or the decoder
        both, past = (Context(config=configure(context.config, causal=causal)) for causal in (False, True))
        node = _recipe(settings, "encoder")
        recurrent = is_recurrent(node)
        self.encoder = _block(node, both, settings) if recurrent else StackEncoder(node, both)
        self.decoder = _decoder(settings, past)
        self.output_width = self.decoder.output_width

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Ignore the target's mask: padding comes last, and no output depends on later symbols."""
        return self.decoder(self.decoder.begin(self.encode(source, source_mask)), target)

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> State:
        """Return the decoder's state before the first output, which does not depend on lengths of targets."""
        return self.decoder.begin(self.encode(source, source_mask))

    def step(self, state: State, previous: Tensor) -> tuple[Tensor, State]:
        return self.decoder.step(state, previous)

    def attention_weights(self, state: State) -> Tensor | None:
        return self.decoder.attention_weights(state)

    def encode(self, source: Tensor, source_mask: Tensor | None) -> EncodedSource:
        """Return the encoded source (batch, n, width)."""
        encoder = self.encoder
        if isinstance(encoder, Recurrent):
            outputs, last = encoder.run(source, encoder.zero_state(source), source_mask)
        else:
            outputs, last = encoder(source, source_mask), None
        return EncodedSource(inputs=source, outputs=outputs, mask=source_mask, final_state=last)

    def alignment(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor | None:
        """Return the attention of each output to the source, (batch, m, n).

        None for a decoder without attention, or with one in every layer.
        """
        if not isinstance(self.decoder, RecurrentDecoder):
            return None
        return self.decoder.alignment_matrix(self.decoder.begin(self.encode(source, source_mask)), target)


def _decoder(settings: Settings, context: Context) -> AnyDecoder:
    node, attention = _recipe(settings, "decoder"), as_word(settings, "attention")
    if not is_recurrent(node):
        return StackDecoder(node, context)
    block, alignment, merge = _block(node, context, settings), None, None
    if attention != "none":
        positions = as_int(settings, "positions") if as_word(settings, "attend") == "inputs" else 0
        alignment = ALIGNMENTS[attention](
            width=block.width, positions=positions, dropout=context.config.settings.attention_dropout
        )
    if as_bool(settings, "feed"):
        merge = Linear(context.width + block.width, context.width, bias=True)
    return RecurrentDecoder(
        block=block, alignment=alignment, merge=merge, dropout=context.config.settings.dropout
    )


def _block(node: nodes.Node, context: Context, settings: Settings) -> Recurrent:
    """Build a recurrent encoder or decoder, which reads vectors of the model's width."""
    assert isinstance(node, nodes.BlockNode)
    units = recurrent_units(settings, context.width)
    block = build_block(node, Context(config=configure(context.config, d_model=units)))
    assert isinstance(block, Recurrent)
    if units != context.width:
        block.set_input_width(context.width)
    return block


def _recipe(settings: Settings, name: str) -> nodes.Node:
    node = settings[name]
    assert isinstance(node, nodes.Node), f"{name} has no recipe: {node}"
    return node
