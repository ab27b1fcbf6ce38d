"""Dropout drops at its rate, keeps the mean, and draws from the global generator."""

import pytest
import torch
from torch.autograd import forward_ad

from activemem.blocks.core.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.75])
def test_numbers_are_dropped_at_the_rate_and_the_others_scaled(rate):
    torch.manual_seed(0)
    y = Dropout(rate)(torch.ones(401, 499, dtype=torch.float64))
    dropped = y == 0
    assert dropped.double().mean().item() == pytest.approx(rate, abs=0.004)
    assert dropped.double().mean(0).std().item() == pytest.approx((rate * (1 - rate) / 401) ** 0.5, rel=0.2)
    torch.testing.assert_close(y[~dropped].unique().tolist(), [1 / (1 - rate)], rtol=1e-4, atol=0)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 7)], ids=str)
def test_every_shape_is_taken_and_gradients_follow_what_was_kept(shape):
    torch.manual_seed(3)
    x = torch.randn(shape, requires_grad=True)
    y = Dropout(0.5)(x)
    assert y.shape == x.shape
    y.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), y.detach())


def test_the_same_state_of_the_global_generator_drops_the_same():
    layer, x = Dropout(0.5), torch.ones(100)
    torch.manual_seed(1)
    first, second = layer(x), layer(x)
    torch.manual_seed(1)
    assert layer(x).equal(first)
    assert not first.equal(second)


def test_nothing_is_dropped_outside_of_training_or_at_rate_zero():
    x = torch.ones(100)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.75])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_a_mask_stores_a_byte_for_each_number_and_gives_the_results_of_dropout(rate, dtype):
    layer, x = Dropout(rate), torch.randn(1500, dtype=dtype)
    torch.manual_seed(5)
    kept = layer.draw_mask(x.shape, x)
    assert kept.dtype == torch.bool
    torch.manual_seed(5)
    torch.testing.assert_close(x * kept * layer.scale, layer(x))


def test_a_rate_of_almost_one_drops_almost_all():
    layer = Dropout(0.9999999)
    y = layer(torch.ones(1000))
    assert y.isfinite().all()
    assert layer.scale == pytest.approx(1e7)


@pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated:DeprecationWarning"
)  # torch's own use of it
def test_changes_of_inputs_go_forward_by_the_same_factors():
    x, change = torch.rand(2, 3, 7, 9), torch.randn(2, 3, 7, 9)
    with forward_ad.dual_level():
        left = forward_ad.unpack_dual(Dropout(0.3)(forward_ad.make_dual(x, change)))
    torch.testing.assert_close(left.tangent * x, left.primal * change)
