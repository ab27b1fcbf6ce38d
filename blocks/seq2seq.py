"""`seq2seq`: an encoder reads the source, a decoder writes the target."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from torch import Tensor, nn

from ..grammar import nodes
from ..grammar.crossing import recurrent
from ..grammar.vocabulary import Settings, whole, word
from .alignment import ALIGNMENTS, Encoded
from .block import BuildError, Context, build_block
from .decoders import AnyDecoder, RecurrentDecoder, StackDecoder
from .recurrent import Recurrent
from .stack import build_body
from .timing import timing_signal
from .transducer import State, Transducer, transducer


class StackEncoder(nn.Module):
    """A residual stack that sees both sides, with its last normalisation, if there is one."""

    def __init__(self, node: nodes.Node, context: Context) -> None:
        super().__init__()
        self.body = build_body(node, context)
        self.norm = nn.LayerNorm(context.width) if context.norm == "pre" else None
        self.timing = context.timing

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map (batch, n, width) to the same."""
        signal = timing_signal(x.shape[1], x.shape[2], like=x) if self.timing else None
        y = self.body(x if signal is None else x + signal, mask, signal)
        return y if self.norm is None else self.norm(y)


@transducer("seq2seq")
class Seq2Seq(Transducer[State]):
    """An encoder and a decoder, each a recurrent block or a residual stack.

    A recurrent block stands by itself, without norm, residual and timing; its last state is where a recurrent
    decoder begins. Of any other recipe the encoder sees both sides, and the decoder is a StackDecoder.
    """

    def __init__(self, *, encoder: Recurrent | StackEncoder, decoder: AnyDecoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.outputs = decoder.outputs

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The transducer of `seq2seq(encoder, decoder, attention, attend, positions)`.

        What blocks share, they share within the encoder or within the decoder.
        """
        both, past = (replace(context, causal=causal, shared={}) for causal in (False, True))
        return cls(encoder=_encoder(settings, both), decoder=_decoder(settings, past))

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """All outputs; the target's mask is not needed, since none of them sees the padding behind it."""
        return self.decoder(self.decoder.begin(self.encode(source, source_mask)), target)

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> State:
        """The decoder's state before its first output, whatever the lengths of the targets will be."""
        return self.decoder.begin(self.encode(source, source_mask))

    def step(self, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """One output of the decoder."""
        return self.decoder.step(state, previous)

    def attended(self, state: State) -> Tensor | None:
        """The weights of a recurrent decoder's attention at its last output."""
        return self.decoder.attended(state)

    def encode(self, source: Tensor, source_mask: Tensor | None) -> Encoded:
        """The source (batch, n, width), read."""
        encoder = self.encoder
        if isinstance(encoder, Recurrent):
            outputs, last = encoder.run(source, encoder.zeros(source), source_mask)
        else:
            outputs, last = encoder(source, source_mask), None
        return Encoded(inputs=source, outputs=outputs, mask=source_mask, last=last)

    def alignment(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor | None:
        """How much each output attends to each position of the source: (batch, m, n).

        None for a decoder without an attention of its own, or with one in every layer.
        """
        if not isinstance(self.decoder, RecurrentDecoder):
            return None
        return self.decoder.weights(self.decoder.begin(self.encode(source, source_mask)), target)


def _encoder(settings: Settings, context: Context) -> Recurrent | StackEncoder:
    node = _recipe(settings, "encoder")
    return _block(node, context) if recurrent(node) else StackEncoder(node, context)


def _decoder(settings: Settings, context: Context) -> AnyDecoder:
    node, attention = _recipe(settings, "decoder"), word(settings, "attention")
    if not recurrent(node):
        return StackDecoder(node, context)
    made = None
    if attention != "none":
        positions = whole(settings, "positions") if word(settings, "attend") == "inputs" else 0
        made = ALIGNMENTS[attention](
            width=context.width, positions=positions, dropout=context.attention_dropout
        )
    return RecurrentDecoder(block=_block(node, context), alignment=made, dropout=context.dropout)


def _block(node: nodes.Node, context: Context) -> Recurrent:
    assert isinstance(node, nodes.Block)
    block = build_block(node, context)
    assert isinstance(block, Recurrent)
    return block


def _recipe(settings: Settings, name: str) -> nodes.Node:
    """A recipe among the settings; raises BuildError where it is still open."""
    node = settings[name]
    if not isinstance(node, nodes.Block | nodes.Sum | nodes.Series | nodes.Repeat | nodes.Tied):
        raise BuildError(f"expected a recipe for {name}, got {node!r}")
    return node
