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


def test_a_rate_of_almost_one_drops_almost_all():
    layer = Dropout(0.9999999)
    y = layer(torch.ones(1000))
    assert y.isfinite().all()


def test_draws_made_beforehand_are_those_of_a_model_alone():
    layer, x, keys = Dropout(0.3), torch.randn(4, 6, 6), 5
    with record_dropout() as calls:
        assert layer(x) is x
        draw_keys(keys, x.device)
    torch.manual_seed(7)
    alone = [layer(x), draw_keys(keys, x.device)]
    drawn = draw_dropout(calls, [torch.Generator().manual_seed(each) for each in (1, 7)], x.device)
    with replay_dropout([each[1] for each in drawn]):
        found = [layer(x), draw_keys(keys, x.device)]
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
