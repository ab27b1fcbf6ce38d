"""Softmax and cross-entropy of short rows equal torch's, which computes them one number at a time."""

import pytest
import torch
from torch.nn import functional

from activemem.blocks.core import cross_entropy, softmax


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.double)


@pytest.mark.parametrize("count", [1, 2, 7, 15, 16, 17])
def test_softmax_of_any_count_equals_torchs_with_its_gradient(count):
    scores, weights = draw(3, 5, count).requires_grad_(), draw(3, 5, count)
    found = softmax(scores)
    assert found.shape == scores.shape
    torch.testing.assert_close(found, torch.softmax(scores, -1))
    (gradient,) = torch.autograd.grad((found * weights).sum(), scores)
    (exact,) = torch.autograd.grad((torch.softmax(scores, -1) * weights).sum(), scores)
    torch.testing.assert_close(gradient, exact)


def test_hidden_scores_get_no_weight():
    scores = draw(4, 6).masked_fill(torch.arange(6) > 2, -torch.inf)
    torch.testing.assert_close(softmax(scores), torch.softmax(scores, -1))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("classes", [2, 10, 16, 40])
def test_cross_entropy_of_any_count_of_classes_equals_torchs_with_its_gradient(classes, reduction):
    logits, targets = draw(9, classes).requires_grad_(), torch.arange(9) % classes
    found = cross_entropy(logits, targets, reduction=reduction)
    exact = functional.cross_entropy(logits, targets, reduction=reduction)
    torch.testing.assert_close(found, exact)
    got, wanted = (torch.autograd.grad(each.sum(), logits)[0] for each in (found, exact))
    torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("compute", [softmax, lambda rows: cross_entropy(rows, torch.arange(4) % 6)])
def test_second_derivatives_and_vmap_are_right(compute):
    rows = draw(3, 4, 6)
    mapped = torch.vmap(compute)(rows)
    torch.testing.assert_close(mapped, torch.stack([compute(each) for each in rows]))
    assert torch.autograd.gradgradcheck(compute, rows[0].requires_grad_())
