"""`seq2seq`: an encoder reads the source, a decoder writes the target."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from ...grammar import nodes
from ...grammar.seq2seq import is_recurrent, recurrent_units
from ...grammar.vocabulary.spec import Settings, as_bool, as_int, as_word
from ..core.block import BuildError, Context, build_block
from ..core.initialisation import Linear
from ..core.positional_encoding import PositionalEncoding
from ..core.residual_stack import SideInputs, build_body, build_final_norm
from ..core.transducer import State, Transducer, register_transducer
from ..layers.recurrent import Recurrent
from .decoders import ALIGNMENTS, AnyDecoder, EncodedSource, RecurrentDecoder, StackDecoder


class StackEncoder(nn.Module):
    """A non-causal residual stack, with its final norm, if any."""

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
        # what blocks share, they share within the encoder or within the decoder
        both, past = (Context(config=replace(context.config, causal=causal)) for causal in (False, True))
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
        """Return all outputs; none of them sees later padding, so the target's mask is not needed."""
        return self.decoder(self.decoder.begin(self.encode(source, source_mask)), target)

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> State:
        """Return the decoder's state before its first output, for any target lengths."""
        return self.decoder.begin(self.encode(source, source_mask))

    def step(self, state: State, previous: Tensor) -> tuple[Tensor, State]:
        return self.decoder.step(state, previous)

    def attention_weights(self, state: State) -> Tensor | None:
        return self.decoder.attention_weights(state)

    def encode(self, source: Tensor, source_mask: Tensor | None) -> EncodedSource:
        """Read the source (batch, n, width)."""
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
            width=block.width, positions=positions, dropout=context.config.attention_dropout
        )
    if as_bool(settings, "feed"):
        merge = Linear(context.width + block.width, context.width, bias=True)
    return RecurrentDecoder(block=block, alignment=alignment, merge=merge, dropout=context.config.dropout)


def _block(node: nodes.Node, context: Context, settings: Settings) -> Recurrent:
    """Return a recurrent block with the settings' units that reads vectors of the model's width."""
    assert isinstance(node, nodes.BlockNode)
    units = recurrent_units(settings, context.width)
    block = build_block(node, Context(config=replace(context.config, d_model=units)))
    assert isinstance(block, Recurrent)
    if units != context.width:
        block.set_input_width(context.width)
    return block


def _recipe(settings: Settings, name: str) -> nodes.Node:
    """Return a recipe from the settings; raise BuildError if it is still open."""
    node = settings[name]
    if not isinstance(
        node, nodes.BlockNode | nodes.SumNode | nodes.SeriesNode | nodes.RepeatNode | nodes.TiedNode
    ):
        raise BuildError(f"expected a recipe for {name}, got {node!r}")
    return node
