"""Windows and biases with torch's fused attention against plain products: outputs, gradients, memory."""

from unittest.mock import patch

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks import build
from activemem.blocks.layers import attend_unfused, window_attention
from activemem.blocks.layers.windows import window_products
from activemem.blocks.testing import (
    conformance,
    make_block,
    parse_block,
    prefix_mask,
    random_sequences,
    saved_bytes,
    valid_outputs,
)
from activemem.grammar import analyse

from ....quick_cases import one_in

HEADS = "heads=4, head_width=2"
WINDOWS = [
    f"sa({HEADS}, span=3)",
    f"sa({HEADS}, span=90, kv_heads=2, pos=rope)",
    "sa(heads=1, head_width=4, span=40, qk_norm=rms, temperature=0.5)",
]
FULL = f"sa({HEADS}, pos=alibi)"
PRODUCTS = [
    f"sa({HEADS}, pos=relative, span=9)",
    f"sa({HEADS}, span=9, logit_cap=2)",
    f"all_attn(N=2, span=9, {HEADS})",
]
both_ways = pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])


def gradients(block, run, x):
    """Return the output, and gradients of its weighted sum for the input and the weights."""
    x = x.clone().requires_grad_()
    y = run(x)
    weights = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(4))
    return [y.detach(), *torch.autograd.grad((y * weights).sum(), [x, *block.parameters()])]


def by_products():
    """Disable fused attention within a context."""
    return patch.object(window_attention, "window_fused", window_products)


def assert_as_by_products(block, run, x):
    """Assert that the fused kernels are used and equal plain products."""
    with patch.object(window_attention, "window_fused", wraps=window_attention.window_fused) as fused:
        found = gradients(block, run, x)
    assert fused.called
    with by_products():
        expected = gradients(block, run, x)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


@both_ways
@pytest.mark.parametrize("text", WINDOWS)
@pytest.mark.parametrize("length", [70, 300])
def test_fused_windows_give_the_results_of_products(text, causal, length):
    block, x = make_block(parse_block(text), causal=causal), random_sequences(3, length)
    mask = prefix_mask([length, 1, 66], length)
    assert_as_by_products(block, block, x)
    assert_as_by_products(block, lambda x: valid_outputs(block(x, mask), mask), x)
    assert block(x, mask).isfinite().all()


@pytest.mark.parametrize("text", WINDOWS)
def test_fused_windows_after_a_past_give_the_results_of_products(text):
    block, seen = make_block(parse_block(text), causal=True), random_sequences(3, 300)
    for past in (3, 90, 270):
        if min(past, block.window.max_distance) + 300 - past > 64:
            assert_as_by_products(
                block, lambda x, past=past: block.forward_with_past(x, seen[:, :past]), seen[:, past:]
            )


@both_ways
def test_known_biases_are_given_to_the_fused_kernel_and_learnt_ones_are_not(causal):
    x, mask = random_sequences(3, 80), prefix_mask([80, 1, 66], 80)
    known, learnt = (
        make_block(parse_block(f"sa({HEADS}, pos={pos})"), causal=causal) for pos in ("alibi", "t5")
    )
    with patch("activemem.blocks.layers.attention.attend_unfused", wraps=attend_unfused) as plain:
        fused = [gradients(known, run, x) for run in (known, lambda x: valid_outputs(known(x, mask), mask))]
        assert not plain.called
        learnt(x)
        assert plain.called
    with patch("activemem.blocks.layers.attention.MAX_UNFUSED_LENGTH", 80):
        found = [gradients(known, run, x) for run in (known, lambda x: valid_outputs(known(x, mask), mask))]
    for one, other in zip([*found[0], *found[1]], [*fused[0], *fused[1]], strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


@both_ways
@pytest.mark.parametrize("text", one_in(2, [*WINDOWS, FULL]))
def test_fused_attention_keeps_no_weights_and_takes_the_products_that_are_stated(text, causal):
    sizes = {"d_model": 8, "vocab": 7, "causal": causal, "dropout": 0.0}
    for length in (70, 300):
        kept = saved_bytes(build(text, **sizes), batch=3, length=length)
        assert analyse(text, length=length, **sizes).memory(3).activations == pytest.approx(kept, rel=0.01)
    conformance.flops_are_counted(text, causal=causal)
    weights = saved_bytes(build(text, attention_dropout=0.1, **sizes), batch=3, length=300)
    assert weights > 1.2 * kept


@pytest.mark.parametrize("text", PRODUCTS)
def test_scores_other_than_by_content_have_no_fused_kernel(text):
    block = make_block(parse_block(text), causal=True)
    with patch.object(window_attention, "window_fused", side_effect=AssertionError):
        assert block(random_sequences(2, 80)).isfinite().all()
    dropping = make_block(parse_block(WINDOWS[0]), causal=True).train()
    dropping.window.dropout.rate = 0.3
    with patch.object(window_attention, "window_fused", side_effect=AssertionError):
        dropping(random_sequences(2, 80))


def test_stacked_weights_have_products():
    node = parse_block(WINDOWS[0])
    blocks = [make_block(node, causal=True, seed=seed) for seed in range(3)]
    x, weights = (
        random_sequences(2, 80),
        {
            name: torch.stack([dict(block.named_parameters())[name] for block in blocks])
            for name, _ in blocks[0].named_parameters()
        },
    )
    with patch.object(window_attention, "window_fused", side_effect=AssertionError):
        together = torch.vmap(lambda given: torch.func.functional_call(blocks[0], given, (x,)))(weights)
    assert_close(together, torch.stack([block(x) for block in blocks]), rtol=1e-10, atol=1e-10)
