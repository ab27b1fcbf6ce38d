"""Attention with a backward pass of its own gives what its equation gives."""

import pytest
import torch

from activemem.blocks.stacked.short_attention import (
    LARGEST,
    LOG2_E,
    is_short,
    short_attention,
    slow_short_attention,
)


def gradients(attention, qkv, factors, of_heads):
    """What attention gives, and the gradient of what goes into it."""
    qkv = qkv.clone().requires_grad_()
    heads = attention(qkv, qkv.shape[-1] ** -0.5, factors)
    heads.backward(of_heads)
    return heads.detach(), qkv.grad


def draw(head_width, length, *, size=1.0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(length)
    shape = (3, 2, 3, length, head_width)
    qkv = size * torch.randn(shape, generator=generator, dtype=torch.float64)
    kept = torch.rand((2, 3, length, length), generator=generator) < 0.8
    of_heads = torch.randn(shape[1:], generator=generator, dtype=torch.float64)
    return qkv.to(dtype), kept.to(dtype) / 0.8, of_heads.to(dtype)


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("length", [1, 7, 20])
@pytest.mark.parametrize("head_width", [1, 4, 15, 16, 17])
def test_it_gives_what_its_equation_gives(head_width, length, dropped):
    for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 2e-6)):
        qkv, factors, of_heads = draw(head_width, length, dtype=dtype)
        factors = factors if dropped else None
        expected = gradients(slow_short_attention, qkv, factors, of_heads)
        for one, other in zip(gradients(short_attention, qkv, factors, of_heads), expected, strict=True):
            torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("head_width", [4, 16])
@pytest.mark.parametrize("size", [1.0, 10.0, 100.0])
def test_scores_of_any_size_have_finite_weights(head_width, size):
    qkv, _, of_heads = draw(head_width, 12, size=size, dtype=torch.float64)
    largest = float((qkv[0] @ qkv[1].mT).abs().max()) * head_width**-0.5
    assert (largest * LOG2_E > LARGEST) == (size > 1.0)
    expected = gradients(slow_short_attention, qkv, None, of_heads)
    for one, other in zip(gradients(short_attention, qkv, None, of_heads), expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_what_is_no_number_stays_in_its_sequence():
    qkv, _, of_heads = draw(4, 12, dtype=torch.float64)
    expected = gradients(slow_short_attention, qkv, None, of_heads)
    qkv[0, 1, 0, 3, 0] = torch.nan
    for one, other in zip(gradients(short_attention, qkv, None, of_heads), expected, strict=True):
        found, wanted = (one, other) if one.dim() == 4 else (one[:, 0], other[:, 0])
        torch.testing.assert_close(found[0], wanted[0], atol=1e-12, rtol=0.0)
        assert not one.isfinite().all()


def test_wide_heads_over_long_sequences_have_plain_products():
    assert is_short(10, 64) and is_short(40, 4)
    assert not is_short(16, 16) and not is_short(65, 4)
