"""Tiled windows against plain products: outputs, gradients, dropout, stacked weights."""

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks import build
from activemem.blocks.layers import window_attention
from activemem.blocks.layers.windows import pieces as window_pieces
from activemem.blocks.testing import (
    conformance,
    make_block,
    parse_block,
    prefix_mask,
    random_sequences,
    saved_bytes,
)
from activemem.grammar import analyse

HEADS = "heads=2, head_width=3"
BLOCKS = [
    f"sa({HEADS}, span=3)",
    f"sa({HEADS}, pos=relative, span=7, pos_values=true)",
    f"sa({HEADS}, pos=relative, span=30, adaptive=true, ramp=9, self=true)",
    f"sa({HEADS}, span=9, adaptive=true, ramp=4)",
    f"all_attn(N=5, span=9, {HEADS})",
    f"all_attn(N=3, span=14, {HEADS}, adaptive=true, ramp=5, pos_values=true)",
    f"head_split(N=0, span=6, {HEADS})",
    f"single_head(N=4, span=90, {HEADS})",
]
both_ways = pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
every_block = pytest.mark.parametrize("text", BLOCKS)


def make(text, *, causal, **given):
    """Return a block in which adaptive spans differ between heads."""
    block = make_block(parse_block(text), causal=causal, **given)
    if "adaptive" in text:
        with torch.no_grad():
            block.window.spans.z.copy_(torch.linspace(0.1, 0.8, len(block.window.spans.z)))
        block.after_optimiser_step()
    return block


def gradients(block, run, *inputs):
    """Return the output, and gradients of its weighted sum for inputs and parameters."""
    inputs = [each.clone().requires_grad_() for each in inputs]
    y = run(*inputs)
    weights = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(4))
    return [y.detach(), *torch.autograd.grad((y * weights).sum(), [*inputs, *block.parameters()])]


def assert_both_give_the_same(monkeypatch, block, run, *inputs):
    """Assert that tiles of 8 queries equal plain products."""
    found = []
    for pieces, whole in ((8, 0), (1000, 1000)):
        monkeypatch.setattr(window_pieces, "CHUNK_LENGTH", pieces)
        monkeypatch.setattr(window_attention, "MAX_WHOLE_SCORES", whole)
        found.append(gradients(block, run, *inputs))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


@both_ways
@every_block
def test_tiles_give_the_results_of_products(text, causal, monkeypatch):
    block, x, mask = make(text, causal=causal), random_sequences(3, 29), prefix_mask([29, 1, 17], 29)
    assert_both_give_the_same(monkeypatch, block, block, x)
    assert_both_give_the_same(monkeypatch, block, lambda x: block(x, mask)[mask], x)


@every_block
def test_tiles_after_a_past_give_the_results_of_products(text, monkeypatch):
    block, seen = make(text, causal=True), random_sequences(3, 50)
    for past in (3, 40):
        assert_both_give_the_same(monkeypatch, block, block.forward_with_past, seen[:, past:], seen[:, :past])


@pytest.mark.parametrize("text", [BLOCKS[1], BLOCKS[5]])
def test_the_same_weights_are_dropped_in_tiles(text, monkeypatch):
    monkeypatch.setattr(window_pieces, "CHUNK_LENGTH", 8)
    block, x = make(text, causal=True), random_sequences(3, 29)
    block.train().window.dropout.rate = 0.3

    def run(x):
        torch.manual_seed(5)
        return block(x)

    found = []
    for whole in (0, 1000):
        monkeypatch.setattr(window_attention, "MAX_WHOLE_SCORES", whole)
        found.append(gradients(block, run, x))
    block.eval()
    assert not block(x).allclose(found[0][0])
    for one, other in zip(*found, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


@every_block
def test_tiles_take_the_products_and_keep_the_memory_that_are_stated(text, monkeypatch):
    monkeypatch.setattr(window_attention, "MAX_WHOLE_SCORES", 0)
    conformance.flops_are_counted(text, causal=True)
    for dropout in (0.0, 0.3):
        sizes = {"d_model": 8, "vocab": 7, "causal": True, "dropout": 0.0, "attention_dropout": dropout}
        stated = analyse(text, length=150, **sizes).memory(2).activations
        assert stated == pytest.approx(saved_bytes(build(text, **sizes), batch=2, length=150), rel=0.01)


def test_nothing_is_kept_where_no_gradient_is_wanted(monkeypatch):
    monkeypatch.setattr(window_attention, "MAX_WHOLE_SCORES", 0)
    block, x = make(BLOCKS[5], causal=True), random_sequences(3, 29)
    with torch.no_grad():
        alone = block(x)
    assert alone.equal(block(x).detach())
