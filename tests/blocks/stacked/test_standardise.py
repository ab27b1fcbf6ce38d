"""Rows that are standardised at once are those that torch standardises one by one."""

import pytest
import torch
from torch.nn import functional

from activemem.blocks.stacked import standardise as module
from activemem.blocks.stacked.standardise import LEAST_ROWS, standardise
from activemem.blocks.testing.module_checks import assert_gradients_come_several_at_once


def draw(*shape, offset=0.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(shape[-1])
    return (torch.randn(shape, generator=generator, dtype=torch.float64) + offset).to(dtype).requires_grad_()


def with_gradient(norm, x):
    x = x.detach().clone().requires_grad_()
    y = norm(x)
    y.backward(torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y))
    return y.detach(), x.grad


def by_torch(x):
    return functional.layer_norm(x, x.shape[-1:], eps=1e-5)


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("width", [1, 5, 16, 64, 100])
def test_many_rows_are_those_of_torch(width, offset):
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-4 if offset else 5e-6)):
        x = draw(2, LEAST_ROWS // 2, width, offset=offset, dtype=dtype)
        assert type(standardise(x, 1e-5).grad_fn).__name__ == "_StandardiseBackward"
        expected = with_gradient(by_torch, x)
        for found, wanted in zip(with_gradient(lambda x: standardise(x, 1e-5), x), expected, strict=True):
            torch.testing.assert_close(found, wanted, atol=tolerance, rtol=tolerance)


def test_single_precision_is_as_close_to_double_as_that_of_torch():
    x = draw(LEAST_ROWS, 64, offset=30.0, dtype=torch.float32)
    exact = by_torch(x.double())
    error, own = ((norm.double() - exact).abs().max() for norm in (by_torch(x), standardise(x, 1e-5)))
    assert own < 2 * error


def test_what_is_no_number_stays_in_its_row_and_a_row_of_one_number_is_zero():
    x = draw(LEAST_ROWS, 8).detach()
    x[3, 2], x[5] = torch.nan, 7.0
    y = standardise(x, 1e-5)
    assert (~y.isfinite()).any(-1).nonzero().flatten().tolist() == [3]
    assert y[5].eq(0.0).all()


def test_gradients_have_gradients(monkeypatch):
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
    x = draw(3, 5)
    assert torch.autograd.gradcheck(lambda x: standardise(x, 1e-5), x)
    assert torch.autograd.gradgradcheck(lambda x: standardise(x, 1e-5), x)
    assert torch.autograd.gradcheck(lambda x: standardise(x.mT, 1e-5), x)


def test_several_gradients_come_at_once():
    x = draw(LEAST_ROWS, 4)
    assert_gradients_come_several_at_once(standardise(x, 1e-5), (x,))


def test_few_rows_and_transforms_see_the_operation_of_torch():
    few, many = draw(LEAST_ROWS - 1, 4), draw(LEAST_ROWS, 4)
    assert type(standardise(few, 1e-5).grad_fn).__name__ == "NativeLayerNormBackward0"
    together = torch.stack([many, 2 * many])
    mapped = torch.vmap(lambda x: standardise(x, 1e-5))(together)
    torch.testing.assert_close(mapped, by_torch(together))
