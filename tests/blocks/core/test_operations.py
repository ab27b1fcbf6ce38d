"""Softmax and cross-entropy in a pack of trials equal torch's."""

import pytest
import torch
from torch.nn import functional

from activemem.blocks.core import cross_entropy, softmax


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_cross_entropy_within_vmap_equals_torchs_with_its_derivatives(reduction):
    rows = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(3), dtype=torch.double)
    targets = torch.arange(4) % 6

    def compute(logits):
        return cross_entropy(logits, targets, reduction=reduction)

    expected = [functional.cross_entropy(each, targets, reduction=reduction) for each in rows]
    torch.testing.assert_close(torch.vmap(compute)(rows), torch.stack(expected))
    assert torch.autograd.gradgradcheck(torch.vmap(compute), rows.requires_grad_())


@pytest.mark.parametrize("count", [1, 7, 15, 16, 17])
def test_softmax_within_vmap_equals_torchs_with_its_derivatives(count):
    rows = torch.randn(3, 2, count, generator=torch.Generator().manual_seed(3), dtype=torch.double)
    torch.testing.assert_close(torch.vmap(softmax)(rows), rows.softmax(-1))
    hidden = rows.masked_fill(torch.arange(count) > count // 2, -torch.inf)
    torch.testing.assert_close(torch.vmap(softmax)(hidden), hidden.softmax(-1))
    assert torch.autograd.gradgradcheck(torch.vmap(softmax), rows.requires_grad_())
