"""Dropout drops at its rate, keeps the mean, and draws from the global generator."""

import pytest
import torch

from activemem.blocks.core import dropout
from activemem.blocks.core.dropout import Dropout, DropoutCall, draw_dropout


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
def test_a_gpu_keeps_a_byte_of_each_number_that_gives_what_its_own_dropout_gives(rate):
    layer, gpu = Dropout(rate), torch.ones(1500, device="meta")
    drawn = layer.draw(gpu.shape, gpu)
    assert (drawn.dtype, drawn.device) == (torch.bool, gpu.device)
    x = torch.randn(1500)
    torch.manual_seed(5)
    kept = torch.native_dropout(torch.ones(1500), rate, train=True)[1]  # as it is drawn there
    torch.manual_seed(5)
    dropped = torch.native_dropout(x, rate, train=True)[0]
    assert (x * kept * layer.scale(gpu.device)).equal(dropped)


class Numbers:
    """A generator of a GPU, which can draw from the state of another."""

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


@pytest.mark.parametrize("count", [1, 7, 16, 1001])
def test_what_is_drawn_are_the_numbers_of_randint(count):
    torch.manual_seed(count)
    expected = [torch.randint(-(2**63), 2**63 - 1, (count,)) for _ in range(2)]
    torch.manual_seed(count)
    assert all(
        torch.equal(dropout._draw_into(torch.empty(count, dtype=torch.int64)), each) for each in expected
    )
    own = torch.Generator().manual_seed(count)
    assert torch.equal(dropout._draw_into(torch.empty(count, dtype=torch.int64), own), expected[0])
