"""A body whose lengths torch cannot compile runs them by themselves, or as they are, and warns once."""

import pytest
import torch
from torch import nn
from torch._dynamo.exc import TorchDynamoException

from activemem.engine.core.interruption import StoppedMidway, forget_stop, stop_soon
from activemem.engine.optimisers.compiled_body import NO_COMPILER, compile_body


@pytest.fixture
def body(monkeypatch):
    """A body that is compiled for any length from 4 on, and for itself from 2 on, and the ways it was run."""
    ways = []

    def compiled(call, dynamic=None):
        def run(x):
            ways.append(dynamic)
            if x.shape[0] < (4 if dynamic is None else 2):
                raise TorchDynamoException("cannot determine truth value")
            return call(x)

        return run

    monkeypatch.setattr(torch, "compile", compiled)
    body = nn.Linear(3, 3)
    compile_body(body)
    return body, ways


def test_a_length_that_cannot_be_compiled_with_others_is_tried_once_and_told_once(body, caplog):
    body, ways = body
    for length in (8, 3, 3, 1, 1, 8):
        x = torch.randn(length, 3)
        assert torch.equal(body(x), nn.functional.linear(x, body.weight, body.bias))
    assert ways == [None, None, False, False, None, False, None]
    assert len(caplog.records) == 1


def test_a_compiler_that_a_stop_has_ended_fails_no_trial(body):
    body, _ = body
    stop_soon()
    try:
        with pytest.raises(StoppedMidway):
            body(torch.randn(1, 3))
    finally:
        forget_stop()


def test_a_machine_without_a_compiler_is_told(body, monkeypatch):
    body, _ = body

    def fail(_x):
        raise TorchDynamoException(NO_COMPILER[0])

    body._compiled_call_impl._ways = (fail, fail, body._call_impl)
    with pytest.raises(TorchDynamoException, match=NO_COMPILER[0]):
        body(torch.randn(1, 3))
