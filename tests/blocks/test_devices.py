"""Blocks create tensors on the device of their inputs, and never read values from it.

The blocks are on torch's device `meta`, whose tensors only have shapes and cannot be combined with tensors of
other devices.
"""

import pytest
import torch

from activemem.blocks import Context, build_block
from activemem.blocks.core.transducer import build_transducer_block
from activemem.blocks.testing.fixtures import WIDTH, example_block, is_pool, parse_block
from activemem.grammar import configure, render

from ..quick_cases import one_in
from .example_blocks import BLOCKS

LENGTH = 20
RATES = {"dropout": 0.1, "attention_dropout": 0.1}
BESIDE = [
    "sa(heads=2, head_width=4, pos=alibi)",
    "sa(heads=2, head_width=4, pos=rope, kv_heads=1, qk_norm=rms)",
    "sa(heads=2, head_width=4, pos=t5, logit_cap=2)",
    "sa(heads=2, head_width=4, pos=relative, span=7, adaptive=true)",
    "sa(heads=2, head_width=4, pos=rope, span=7)",
    "all_attn(heads=2, head_width=4, N=3, span=7, pos_values=true)",
    "base_conv(k=5, filter=explicit)",
    "delta(heads=2, head_width=4, gate=true)",
    "linear_attn(heads=2, head_width=4, feature=relu)",
    "retention(heads=2, head_width=4, rotate=false)",
    "mamba(channels=4, state=2, negative=true)",
]
"""Variants of blocks whose code paths differ from those of the example blocks."""

TRANSDUCERS = [
    "seq2seq(sa(heads=2, head_width=4) >> ff(8), sa(heads=2, head_width=4) >> ff(8))",
    "seq2seq(conv(k=3) + mamba(channels=4, state=2), cgru(k=3) >> sa(heads=2, head_width=4, span=5))",
    "seq2seq(lstm, lstm, attention=luong, feed=true)",
    "seq2seq(gru, gru, attention=bahdanau, attend=inputs, positions=4)",
    "neural_gpu(layers=1, width=2)",
    "extended_neural_gpu(layers=1, width=2)",
    "markov_neural_gpu(layers=1, width=2)",
]


def sequences(length):
    return torch.empty(3, length, WIDTH, device="meta", requires_grad=True)


def masks(length):
    lengths = torch.empty(3, dtype=torch.int64, device="meta")
    return None, torch.arange(length, device="meta") < lengths[:, None]


def assert_has_gradients(module, *inputs):
    wanted = [*module.parameters(), *inputs]
    assert all(each.grad is not None and each.grad.is_meta for each in wanted if each.requires_grad)


@pytest.mark.parametrize(
    "causal", [pytest.param(False, id="both", marks=pytest.mark.heavy), pytest.param(True, id="causal")]
)
@pytest.mark.parametrize("text", one_in(3, [*(render(example_block(name)) for name in BLOCKS), *BESIDE]))
def test_a_block_makes_nothing_on_another_device(text, causal):
    position = "randomised_pairs" if "pos=" in text and "span" not in text else "none"
    config = configure(d_model=WIDTH, causal=causal, position=position, max_positions=LENGTH, **RATES)
    with torch.device("meta"):
        block = build_block(parse_block(text), Context(config=config))
    for mask, training in zip(masks(LENGTH), (False, True), strict=True):
        x = sequences(LENGTH)
        y = block.train(training)(x, mask)
        y.sum().backward()
        assert y.shape == ((3, WIDTH) if is_pool(text) else x.shape)
        assert_has_gradients(block, x)


@pytest.mark.parametrize("text", one_in(3, [*(render(example_block(name)) for name in BLOCKS), *BESIDE]))
def test_a_block_that_reads_pieces_makes_nothing_on_another_device(text):
    if is_pool(text):
        pytest.skip("a pool reads whole sequences")
    with torch.device("meta"):
        block = build_block(parse_block(text), Context(config=configure(d_model=WIDTH, causal=True)))
    state = None
    for length in (5, 1, LENGTH):
        y, state = block.step_with_grad(sequences(length), state)
        assert y.shape == (3, length, WIDTH)
        assert state is None or state.is_meta


@pytest.mark.parametrize("text", one_in(3, TRANSDUCERS))
def test_a_transducer_makes_nothing_on_another_device(text):
    config = configure(d_model=WIDTH, **RATES)
    with torch.device("meta"):
        transducer = build_transducer_block(parse_block(text), Context(config=config))
    for *given, training in zip(masks(LENGTH), masks(9), (False, True), strict=True):
        y = transducer.train(training)(sequences(LENGTH), sequences(9), *given)
        y.sum().backward()
        assert y.shape == (3, 9, transducer.output_width)
        assert_has_gradients(transducer)


@pytest.mark.parametrize("text", [text for text in TRANSDUCERS if "neural_gpu" not in text])
def test_a_transducer_that_writes_makes_nothing_on_another_device(text):
    """Skip transducers whose image is as long as the output: they read this length from the device."""
    with torch.device("meta"):
        transducer = build_transducer_block(parse_block(text), Context(config=configure(d_model=WIDTH)))
    _, mask = masks(LENGTH)
    rows = torch.empty(3, dtype=torch.int64, device="meta")
    state = transducer.begin(sequences(LENGTH), mask, rows)
    for _ in range(3):
        y, state = transducer.step(state, sequences(1)[:, 0])
        state = state.select_rows(rows)
        assert y.shape == (3, transducer.output_width)
