"""Fused attention: its kernels and its memory, and biases that it knows."""

import math
from functools import partial
from unittest.mock import patch

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from activemem.blocks import build
from activemem.blocks.core.dropout import Dropout
from activemem.blocks.layers import attention
from activemem.blocks.testing import conformance
from activemem.blocks.testing.fixtures import (
    make_block,
    parse_block,
    prefix_mask,
    random_sequences,
    saved_bytes,
    valid_outputs,
)
from activemem.grammar import analyse

both_ways = pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])


def kernels():
    """Return whether torch may use cuDNN, its flash and efficient kernels, and plain products."""
    found = torch.backends.cuda
    others = found.flash_sdp_enabled(), found.mem_efficient_sdp_enabled(), found.math_sdp_enabled()
    return found.cudnn_sdp_enabled(), *others


def test_a_gpu_keeps_to_kernels_whose_gradients_are_numbers():
    before = kernels()
    with attention.fused_kernels(on_gpu=True):
        assert kernels() == (False, True, True, True)
    assert kernels() == before
    with attention.fused_kernels(on_gpu=False):
        assert kernels() == before


@pytest.mark.parametrize("masked", [False, True])
def test_every_fused_call_keeps_to_them(masked, monkeypatch):
    seen, fused = [], functional.scaled_dot_product_attention
    on_gpu = partial(attention.fused_kernels, on_gpu=True)
    monkeypatch.setattr(attention, "fused_kernels", lambda **_: on_gpu())
    monkeypatch.setattr(
        functional, "scaled_dot_product_attention", lambda *q, **k: seen.append(kernels()) or fused(*q, **k)
    )
    q = torch.randn(2, 2, attention.MAX_UNFUSED_LENGTH + 1, 16)
    mask = torch.ones(2, q.shape[2], dtype=torch.bool) if masked else None
    attention.attend(q, q, q, mask, Dropout(0.0), causal=True)
    assert seen == [(False, True, True, True)]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    ("queries", "keys", "masked"),
    [(64, 64, True), (192, 192, True), (704, 704, True), (704, 704, False), (1, 128, False)],
)
def test_scores_far_below_zero_have_finite_gradients(queries, keys, masked):
    q, k, v = (
        torch.randn(2, 2, length, 64, device="cuda", dtype=torch.bfloat16) for length in (queries, keys, keys)
    )
    q[..., 0], k[..., 0] = 1.0, -120 * math.sqrt(64)
    given = [each.requires_grad_() for each in (q, k, v)]
    mask = torch.ones(2, keys, dtype=torch.bool, device="cuda") if masked else None
    y = attention.attend(q, k, v, mask, Dropout(0.0), causal=queries == keys)
    assert all(each.isfinite().all() for each in torch.autograd.grad(y.float().square().sum(), given))


@pytest.mark.parametrize("length", [20, attention.MAX_UNFUSED_BF16_LENGTH + 8], ids=["plain", "fused"])
@pytest.mark.parametrize("options", ["", ", span=300", ", pos=alibi", ", pos=t5"])
def test_under_autocast_a_cpu_keeps_near_double_precision(options, length):
    recipe = f"sa(heads=2, head_width=16{options})"

    def outputs_and_gradients(dtype, *, lowered):
        generator = torch.Generator().manual_seed(0)
        model = build(recipe, d_model=32, vocab=9, dropout=0.0, causal=True, generator=generator).to(dtype)
        tokens = torch.randint(9, (2, length), generator=generator)
        with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
            y = model(tokens)
            with torch.no_grad():  # a bias that needs no gradient can be fused
                evaluated = model(tokens)
        y.double().sin().sum().backward()
        return [y.detach(), evaluated, *(weight.grad for weight in model.parameters())]

    exact = outputs_and_gradients(torch.float64, lowered=False)
    for found, expected in zip(outputs_and_gradients(torch.float32, lowered=True), exact, strict=True):
        assert (found.double() - expected).norm() < 0.02 * expected.norm()


def gradients(block, run, x):
    """Return the output, and gradients of its weighted sum for the input and the weights."""
    x = x.clone().requires_grad_()
    y = run(x)
    weights = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(4))
    return [y.detach(), *torch.autograd.grad((y * weights).sum(), [x, *block.parameters()])]


@both_ways
def test_known_biases_are_given_to_the_fused_kernel_and_learnt_ones_are_not(causal):
    x, mask = random_sequences(3, 80), prefix_mask([80, 1, 66], 80)
    known, learnt = (
        make_block(parse_block(f"sa(heads=4, head_width=2, pos={pos})"), causal=causal)
        for pos in ("alibi", "t5")
    )
    with patch.object(attention, "attend_unfused", wraps=attention.attend_unfused) as plain:
        fused = [gradients(known, run, x) for run in (known, lambda x: valid_outputs(known(x, mask), mask))]
        assert not plain.called
        learnt(x)
        assert plain.called
    with patch.object(attention, "MAX_UNFUSED_LENGTH", 80):
        found = [gradients(known, run, x) for run in (known, lambda x: valid_outputs(known(x, mask), mask))]
    for one, other in zip([*found[0], *found[1]], [*fused[0], *fused[1]], strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


@both_ways
def test_fused_attention_keeps_no_weights_and_takes_the_products_that_are_stated(causal):
    text, sizes = "sa(heads=4, head_width=2, pos=alibi)", {"d_model": 8, "vocab": 7, "causal": causal}
    sizes["dropout"] = 0.0
    for length in (70, 300):
        kept = saved_bytes(build(text, **sizes), batch=3, length=length)
        assert analyse(text, length=length, **sizes).memory(3).activations == pytest.approx(kept, rel=0.01)
    conformance.flops_are_counted(text, causal=causal)
    weights = saved_bytes(build(text, attention_dropout=0.1, **sizes), batch=3, length=300)
    assert weights > 1.2 * kept


@pytest.mark.parametrize("masked", [False, True])
@both_ways
def test_the_plain_kernel_gives_second_derivatives(causal, masked):
    block = make_block(parse_block("sa(heads=2, head_width=3)"), causal=causal)
    x, mask = random_sequences(2, 4).requires_grad_(), prefix_mask([4, 3], 4)

    def function(x):
        return valid_outputs(block(x, mask), mask) if masked else block(x)

    with sdpa_kernel(SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(function, x)
