"""Attention of several models under vmap; a GPU's fused kernel would save nothing for its gradient."""

import pytest
import torch
from torch.nn import functional

from activemem.blocks.core import Dropout
from activemem.blocks.layers import attend, attention

NEEDS_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
NONE = Dropout(0.0)


def numbers(length, device="cpu"):
    """Return queries, keys and values of three models, (models, batch, heads, length, head_width)."""
    drawn = torch.Generator().manual_seed(0)
    shape = (3, 2, 2, length, 8)
    return [torch.randn(shape, generator=drawn).to(device).requires_grad_() for _ in range(3)]


def causal(q, k, v):
    return attend(q, k, v, None, NONE, causal=True)


def each_alone(*given):
    return torch.stack([causal(*each) for each in zip(*given, strict=True)])


def with_gradients(compute, given):
    y = compute(*given)
    return y, *torch.autograd.grad(y.square().sum(), given)


@pytest.mark.parametrize("length", [5, attention.MAX_UNFUSED_LENGTH + 1])
def test_a_gpu_computes_attention_by_products_within_a_vmap_alone(length, monkeypatch):
    given, fused = numbers(length), []
    expected = with_gradients(each_alone, given)
    kernel = functional.scaled_dot_product_attention

    def noted(q, *others, **how):
        fused.append(q.shape)
        return kernel(q, *others, **how)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", noted)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    found = with_gradients(torch.vmap(causal), given)
    assert not fused
    each_alone(*given)
    assert fused == [given[0].shape[1:]] * 3
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@NEEDS_A_GPU
def test_a_gpu_gives_each_of_several_models_its_gradients():
    given = numbers(5, "cuda")
    for one, other in zip(
        with_gradients(torch.vmap(causal), given), with_gradients(each_alone, given), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
