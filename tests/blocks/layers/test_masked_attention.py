"""Fused attention with a mask, by kernels whose gradients are numbers."""

import math

import pytest
import torch

from activemem.blocks.core.dropout import Dropout
from activemem.blocks.layers.attention import attend, masked_kernels


def kernels():
    """Whether torch may take cuDNN's, those that need less memory, and plain products."""
    found = torch.backends.cuda
    return found.cudnn_sdp_enabled(), found.mem_efficient_sdp_enabled(), found.math_sdp_enabled()


def test_masks_on_a_gpu_keep_to_kernels_whose_gradients_are_numbers():
    before = kernels()
    with masked_kernels(torch.device("cuda")):
        assert kernels() == (False, True, True)
    assert kernels() == before
    with masked_kernels(torch.device("cpu")):
        assert kernels() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("length", [64, 128, 192, 704])
def test_scores_far_below_zero_have_finite_gradients(length):
    q, k, v = (torch.randn(2, 2, length, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    q[..., 0], k[..., 0] = 1.0, -120 * math.sqrt(64)
    given = [each.requires_grad_() for each in (q, k, v)]
    mask = torch.ones(2, length, dtype=torch.bool, device="cuda")
    y = attend(q, k, v, mask, Dropout(0.0), causal=True)
    assert all(each.isfinite().all() for each in torch.autograd.grad(y.float().square().sum(), given))
