"""The parts in the analysis of a whole model have the parameters of the built modules."""

from __future__ import annotations

import pytest
from torch import nn

from activemem import build
from activemem.blocks.transducers.seq2seq import Seq2Seq
from activemem.grammar import PartKind, analyse


def told(text: str) -> dict[str, int]:
    """Return the number of parameters of each part of a transducer."""
    tree = analyse(text, d_model=12, length=5, vocab=6, source_vocab=7).tree
    (whole,) = (part for part in tree.parts if part.kind is PartKind.TRANSDUCER)
    return {part.label: part.parameters + sum(part.shared.values()) for part in whole.parts}


def body(text: str) -> nn.Module:
    return build(text, d_model=12, source_vocab=7, vocab=6).body


def size(*modules: nn.Module | None) -> int:
    return sum(one.numel() for module in modules if module is not None for one in module.parameters())


@pytest.mark.parametrize(
    "text",
    [
        "seq2seq(lstm, lstm)",
        "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)",
        "seq2seq(sa >> ff(8), gru, attention=luong, attend=inputs, positions=3)",
    ],
)
def test_those_of_a_recurrent_decoder(text: str):
    model = body(text)
    assert isinstance(model, Seq2Seq)
    encoder, decoder, *attention = (count for label, count in told(text).items() if label != "dropout")
    found = size(model.encoder), size(model.decoder.block), size(model.decoder.alignment)
    assert (encoder, decoder, sum(attention)) == found


@pytest.mark.parametrize(
    "text",
    [
        "seq2seq(gru, 2 * (sa(heads=2, head_width=3) >> ff(8)))",
        "seq2seq(2 * persistent_conv(k=3), tied(2 * (sa(heads=1, head_width=4) + cgru(k=3) >> ff(8))))",
        "seq2seq(sa, sa + (conv(k=3) >> sa(heads=2)) >> 3 * persistent_conv(k=3))",
    ],
)
def test_those_of_a_decoder_that_is_a_stack(text: str):
    model, parts = body(text), told(text)
    assert isinstance(model, Seq2Seq)
    assert parts == {"encoder": size(model.encoder), "decoder": size(model.decoder)}
