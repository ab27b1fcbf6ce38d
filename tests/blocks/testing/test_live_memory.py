"""Peak memory of a step with a custom backward is within the limit of the analysis and the documents."""

import pytest
import torch

from activemem.blocks import build
from activemem.blocks.testing.fixtures import (
    example_block,
    make_block,
    make_generator,
    parse_block,
    random_sequences,
)
from activemem.grammar import configure
from activemem.grammar.analysis.analyse import block_memory

from ...quick_cases import one_in
from ..example_blocks import SEQUENCE_BLOCKS
from .live_memory import LiveMemory, has_own_backward, step_memory

WIDTH, TOKENS = 64, 1024
MOST = {
    "mamba(channels=64)": 2.2,
    "rg_lru(heads=4, head_width=16)": 2.1,
    "min_gru(channels=64)": 3.5,
}
"""Blocks with a custom backward, and the largest ratio of a step's peak to the saved bytes."""

FUSED = "sa(heads=4, head_width=16, pos=alibi)"
"""A block with torch's fused attention."""

LENGTH = 512
"""The tested length."""


def measured(text, length):
    """Return the stated bytes, the saved bytes including the input, and the peak of a step."""
    node = parse_block(text)
    config = configure(d_model=WIDTH, causal=True, dropout=0.0)
    stated = block_memory(node, config, length=length, batch=TOKENS // length)
    block = make_block(node, causal=True, width=WIDTH, dtype=torch.float32)
    x = random_sequences(TOKENS // length, length, width=WIDTH, dtype=torch.float32).requires_grad_()
    kept, peak = step_memory(block, x)
    return stated, kept + x.nbytes, peak


def test_live_tensors_are_counted_once_and_until_they_are_freed():
    known = torch.ones(100)
    with LiveMemory([known]) as live:
        first = known + 1
        part = first[50:]
        second = part * 2
        known.add_(1)
        assert (live.bytes, live.peak) == (600, 600)
        del first
        assert live.bytes == 600  # of which a part is seen
        del part, second
    assert (live.bytes, live.peak) == (0, 600)


def test_these_blocks_have_a_backward_of_their_own():
    found = {
        name
        for name in SEQUENCE_BLOCKS
        if has_own_backward(make_block(example_block(name), causal=True), random_sequences(1, 3))
    }
    assert found <= {parse_block(text).name for text in MOST}
    for text in MOST:
        block = make_block(parse_block(text), causal=True, width=WIDTH, dtype=torch.float32)
        assert has_own_backward(block, random_sequences(1, LENGTH, width=WIDTH, dtype=torch.float32)), text


@pytest.mark.parametrize("text", one_in(2, MOST))
def test_a_step_holds_what_is_stated_and_little_more(text):
    stated, kept, peak = measured(text, LENGTH)
    assert kept == pytest.approx(stated, rel=0.01)
    assert peak < MOST[text] * stated


def test_a_step_by_fused_attention_holds_what_is_stated_and_little_more():
    stated, kept, peak = measured(FUSED, 1024)
    assert kept == pytest.approx(stated, rel=0.01)
    assert peak < 2.1 * stated


def test_a_step_of_mamba_holds_two_and_a_half_times_what_one_of_attention_holds():
    (_, _, mamba), (_, _, attention) = (
        measured("mamba(channels=64)", 256),
        measured("sa(heads=4, head_width=16)", 256),
    )
    assert mamba < 2.5 * attention


@pytest.mark.parametrize("pool", ["attention_pool", "mean_pool"])
def test_a_pool_in_pieces_never_holds_the_vectors_of_all_positions(pool):
    sizes = {"d_model": 64, "columns": 2, "targets": 1, "position": "none", "norm": "none", "residual": False}
    model = build(f"activation >> {pool}", **sizes, dropout=0.0, generator=make_generator(0))
    x = random_sequences(4, 5000, width=2, dtype=torch.float32)
    with LiveMemory([x, *model.parameters()]) as live:
        model(x).sum().backward()
    assert live.peak < x.shape[0] * x.shape[1] * 64 * 4 / 2
