"""A compiled body falls back to eager runs where torch fails to compile it, and warns once."""

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch._dynamo.exc import TorchDynamoException

from activemem.engine.core.process import StoppedMidway, forget_stop, stop_soon
from activemem.engine.optimisers.weights import compile_body
from activemem.engine.trial.training import Training


@pytest.fixture
def body(monkeypatch):
    """Return a body that torch cannot compile for short inputs, and a log of its compiled runs."""
    runs = []

    def compiled(call):
        def run(x):
            runs.append(len(x))
            if len(x) < 4:
                raise TorchDynamoException("cannot determine truth value\nmore of it")
            return call(x)

        return run

    monkeypatch.setattr(torch, "compile", compiled)
    body = nn.Linear(3, 3)
    compile_body(body)
    return body, runs


def test_a_body_that_cannot_be_compiled_runs_eagerly_from_then_on_and_says_so_once(body, caplog):
    body, runs = body
    for length in (8, 3, 3, 8):
        x = torch.randn(length, 3)
        assert torch.equal(body(x), nn.functional.linear(x, body.weight, body.bias))
    assert runs == [8, 3]
    (message,) = caplog.messages
    assert message.endswith("without compilation, because torch fails: cannot determine truth value")


def test_errors_of_the_body_itself_are_raised(body):
    body, _ = body
    with pytest.raises(RuntimeError, match="shapes"):
        body(torch.randn(8, 2))


def test_a_compiler_that_a_stop_has_ended_fails_no_trial(body):
    body, _ = body
    stop_soon()
    try:
        with pytest.raises(StoppedMidway):
            body(torch.randn(1, 3))
    finally:
        forget_stop()


@pytest.mark.parametrize("wrong", ["max", 1, "reduce-overhead"])
def test_only_true_and_false_are_values(settings, wrong):
    with pytest.raises(ValidationError, match="bool"):
        settings(compile=wrong)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # inductor's own
def test_a_machine_without_a_compiler_trains_eagerly(settings, monkeypatch, caplog):
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", (None, "no_such_compiler"))
    trial = settings("conv(k=5) >> ff(8)", "sort", compile=True, epochs=1, steps_per_epoch=2)
    Training.begin(trial, torch.device("cpu")).advance()
    assert "without compilation" in caplog.text


@pytest.mark.slow  # torch's compiler runs for a minute
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # inductor's own
def test_lengths_below_a_kernel_train_compiled_as_they_do_eagerly(settings):
    recipe = "conv(k=5) >> ff(8) + highway_conv(k=3)"
    losses = []
    for compiled in (True, False):
        trial = settings(
            recipe, "sort", compile=compiled, curriculum=None, lengths=[2, 4], epochs=1, steps_per_epoch=6
        )
        losses.append(Training.begin(trial, torch.device("cpu")).advance()["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
