"""Cross-entropy in a pack of trials equals torch's."""

import pytest
import torch
from torch.nn import functional

from activemem.blocks.core import cross_entropy


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_cross_entropy_within_vmap_equals_torchs_with_its_derivatives(reduction):
    rows = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(3), dtype=torch.double)
    targets = torch.arange(4) % 6

    def compute(logits):
        return cross_entropy(logits, targets, reduction=reduction)

    expected = [functional.cross_entropy(each, targets, reduction=reduction) for each in rows]
    torch.testing.assert_close(torch.vmap(compute)(rows), torch.stack(expected))
    assert torch.autograd.gradgradcheck(torch.vmap(compute), rows.requires_grad_())
