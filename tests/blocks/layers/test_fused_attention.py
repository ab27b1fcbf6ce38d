"""Fused attention with kernels that provide first derivatives only."""

import math
from functools import partial

import pytest
import torch
from torch.nn import functional

from activemem.blocks import build
from activemem.blocks.core import Dropout
from activemem.blocks.layers import attention
from activemem.blocks.layers.windows import MAX_UNFUSED_BF16_LENGTH, MAX_UNFUSED_LENGTH


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
    q = torch.randn(2, 2, MAX_UNFUSED_LENGTH + 1, 16)
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


@pytest.mark.parametrize("length", [20, MAX_UNFUSED_BF16_LENGTH + 8], ids=["plain", "fused"])
@pytest.mark.parametrize("recipe", ["sa(heads=2, head_width=16)", "sa(heads=2, head_width=16, span=300)"])
def test_under_autocast_a_cpu_keeps_near_double_precision(recipe, length):
    def outputs_and_gradients(dtype, *, lowered):
        generator = torch.Generator().manual_seed(0)
        model = build(recipe, d_model=32, vocab=9, dropout=0.0, causal=True, generator=generator).to(dtype)
        tokens = torch.randint(9, (2, length), generator=generator)
        with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
            y = model(tokens)
        y.double().sin().sum().backward()
        return [y.detach(), *(weight.grad for weight in model.parameters())]

    exact = outputs_and_gradients(torch.float64, lowered=False)
    for found, expected in zip(outputs_and_gradients(torch.float32, lowered=True), exact, strict=True):
        assert (found.double() - expected).norm() < 0.02 * expected.norm()
