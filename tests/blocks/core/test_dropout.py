"""Dropout drops at its rate, keeps the mean, and draws from the global generator."""

import pytest
import torch
from torch.autograd import forward_ad

from activemem.blocks.core import (
    Dropout,
    DropoutCall,
    draw_dropout,
    draw_keys,
    dropout,
    record_dropout,
    replay_dropout,
)


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


def test_draws_made_beforehand_are_those_of_a_model_alone():
    layer, x, keys = Dropout(0.3), torch.randn(4, 6, 6), 5
    with record_dropout() as calls:
        assert layer(x) is x
        draw_keys(keys, x.device)
        assert layer.draw_mask(x.shape, x) is None
    torch.manual_seed(7)
    alone = [layer(x), draw_keys(keys, x.device), layer.draw_mask(x.shape, x) * layer.scale]
    drawn = draw_dropout(calls, [torch.Generator().manual_seed(each) for each in (1, 7)], x.device)
    with replay_dropout([each[1] for each in drawn]):
        found = [layer(x), draw_keys(keys, x.device), layer.draw_mask(x.shape, x)]
    torch.testing.assert_close(found, alone)
    assert found[0].equal(alone[0])
    with replay_dropout([each[0] for each in drawn]):
        assert not layer(x).equal(alone[0])
        assert layer.eval()(x) is x


@pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated:DeprecationWarning"
)  # torch's own use of it
def test_changes_of_inputs_go_forward_by_the_same_factors():
    x, change = torch.rand(2, 3, 7, 9), torch.randn(2, 3, 7, 9)
    with forward_ad.dual_level():
        left = forward_ad.unpack_dual(Dropout(0.3)(forward_ad.make_dual(x, change)))
    torch.testing.assert_close(left.tangent * x, left.primal * change)


class Numbers:
    """A stand-in for a GPU generator that supports set_state."""

    def __init__(self, state, device="cuda"):
        self.device, self.state = torch.device(device), state

    def graphsafe_get_state(self):
        return Numbers(self.state)

    def graphsafe_set_state(self, other):
        self.state = other.state


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_dropout_of_a_gpu_draws_from_the_state_of_each_generator_and_leaves_the_process_its_own(
    monkeypatch, device
):
    process, drawn = Numbers("process"), []

    def drop(ones, rate):
        drawn.append((process.state, rate))
        if len(drawn) == 4:
            raise RuntimeError("out of memory")
        return ones

    monkeypatch.setattr(torch.cuda, "default_generators", (Numbers("another"), process))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(dropout.functional, "dropout", drop)
    calls = [DropoutCall(torch.Size([2, 3]), rate, torch.float32) for rate in (0.1, 0.2)]
    with pytest.raises(RuntimeError, match="memory"):
        draw_dropout(calls, [Numbers("first", device), Numbers("second", device)], torch.device("meta"))
    assert drawn == [("first", 0.1), ("second", 0.1), ("first", 0.2), ("second", 0.2)]
    assert process.state == "process"


def test_an_interruption_leaves_the_process_its_generator(monkeypatch):
    class Interrupted(Numbers):
        def graphsafe_set_state(self, other):
            super().graphsafe_set_state(other)
            if other.state == "first":
                raise KeyboardInterrupt

    process, calls = Interrupted("process"), [DropoutCall(torch.Size([2]), 0.1, torch.float32)]
    monkeypatch.setattr(torch.cuda, "default_generators", (process,))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    with pytest.raises(KeyboardInterrupt):
        draw_dropout(calls, [Numbers("first")], torch.device("meta"))
    assert process.state == "process"
