"""Encoder-decoders hold to the conformance suite and equal plain loops; what they share and where they begin."""

import pytest
import torch

from activemem.blocks import BuildError
from activemem.blocks.conformance import block_of
from activemem.blocks.crossing import CrossAttention
from activemem.blocks.examples import prefix_mask, seeded, sequences
from activemem.blocks.recurrent import Recurrent
from activemem.blocks.timing import timing_signal
from activemem.blocks.transducer import transducer
from activemem.blocks.transducer_conformance import TRANSDUCER_CHECKS, made_transducer
from activemem.blocks.transduction import PAD, build_transducer, shifted

from .references import gru_layer, lstm_layer

RECURRENT = [
    f"seq2seq({cell}, {cell}, attention={kind}, attend={attend})"
    for cell in ("lstm(layers=2)", "gru")
    for kind, attend in (("luong", "outputs"), ("bahdanau", "outputs"), ("luong", "inputs"), ("bahdanau", "inputs"))
]
RECIPES = [
    "seq2seq(lstm, lstm)",
    "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)",
    "seq2seq(lstm(layers=2), lstm(layers=2), attention=luong, attend=inputs, positions=3)",
    "seq2seq(sa(heads=2, head_width=3) >> ff(8), gru, attention=luong)",
    "seq2seq(gru, 2 * (sa(heads=2, head_width=3) >> ff(8)))",
    "seq2seq(2 * (conv(k=3) >> ff(8)), tied(2 * (sa(heads=1, head_width=4) + cgru(k=3) >> ff(8))))",
    "seq2seq(persistent_conv(k=3) >> ff(8), persistent_conv(k=3) >> lstm >> persistent_conv(k=3))",
]


@pytest.mark.parametrize("text", RECIPES)
@pytest.mark.parametrize("check", TRANSDUCER_CHECKS)
def test_every_encoder_decoder_holds_to_every_check(check, text):
    check(text)
