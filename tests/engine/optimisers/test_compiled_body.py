"""A compiled body falls back to separate or eager runs for some lengths, and warns once."""

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch._dynamo.exc import TorchDynamoException

from activemem.blocks.core import StreamState
from activemem.engine import Machine
from activemem.engine.core import StoppedMidway, build_model, forget_stop, stop_soon
from activemem.engine.optimisers import NO_COMPILER, CompileModeError, compile_body
from activemem.engine.run import check_device
from activemem.engine.trial import Training


@pytest.fixture
def body(monkeypatch):
    """Return a body with simulated compile failures by length, and a log of its runs."""
    ways = []

    def compiled(call, mode=None, dynamic=None):
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


def test_a_length_that_cannot_be_compiled_with_others_is_tried_once_and_reported_once(body, caplog):
    body, ways = body
    for length in (8, 3, 3, 1, 1, 8):
        x = torch.randn(length, 3)
        assert torch.equal(body(x), nn.functional.linear(x, body.weight, body.bias))
    assert ways == [None, None, False, False, None, False, None]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("error", [TorchDynamoException("the compiler ended"), OSError("a process ended")])
def test_a_compiler_that_a_stop_has_ended_fails_no_trial(body, error):
    body, _ = body

    def fail(_x):
        raise error

    body._compiled_call_impl._ways = (fail, fail, body._call_impl)
    stop_soon()
    try:
        with pytest.raises(StoppedMidway):
            body(torch.randn(1, 3))
    finally:
        forget_stop()


def test_a_machine_without_a_compiler_is_reported(body, monkeypatch):
    body, _ = body

    def fail(_x):
        raise TorchDynamoException(NO_COMPILER[0])

    body._compiled_call_impl._ways = (fail, fail, body._call_impl)
    with pytest.raises(TorchDynamoException, match=NO_COMPILER[0]):
        body(torch.randn(1, 3))


@pytest.mark.parametrize("wrong", ["max", 1, "true"])
def test_a_mode_that_is_not_known_is_reported_with_those_that_are(settings, wrong):
    with pytest.raises(ValidationError, match='"reduce-overhead", got'):
        settings(compile=wrong)


def test_cuda_graphs_are_refused_on_a_cpu_before_anything_is_trained(settings):
    graphs = settings(compile="reduce-overhead")
    with pytest.raises(CompileModeError, match=r"needs a GPU.*use compile = true"):
        check_device([graphs], Machine(gpus=0.0))
    with pytest.raises(CompileModeError):
        Training.begin(graphs, torch.device("cpu"))
    check_device([graphs], Machine(gpus=0.0, address="elsewhere:6379"))  # whose machines are unknown


def test_the_mode_is_handed_to_torch(monkeypatch):
    modes = []
    monkeypatch.setattr(torch, "compile", lambda call, mode=None, dynamic=None: modes.append(mode) or call)
    compile_body(nn.Linear(3, 3), "reduce-overhead")
    compile_body(nn.Linear(3, 3), True)
    assert modes == ["reduce-overhead", "reduce-overhead", None, None]


def test_states_that_a_stream_carries_over_survive_the_next_replay_of_cuda_graphs(settings, monkeypatch):
    def compiled(call, mode=None, dynamic=None):
        outputs = []

        def replay(x, side):  # a graph writes to the memory of its last outputs
            for each in outputs:
                each.fill_(torch.nan)
            y = call(x, side)
            outputs[:] = [each for each in side.chunk.next_states() if each is not None]
            return y

        return replay

    monkeypatch.setattr(torch, "compile", compiled)
    generator = torch.Generator().manual_seed(0)
    model = build_model(settings("1 * (gru >> ff(8))", "parity"), generator).eval()
    inputs = torch.zeros(1, 12, dtype=torch.int64)
    whole = model(inputs)
    compile_body(model.body, "reduce-overhead")
    pieces, state = [], StreamState()
    for piece in inputs.split(4, dim=1):
        outputs, state = model.forward_stream(piece, state)
        pieces.append(outputs)
    assert torch.allclose(torch.cat(pieces, dim=1), whole, atol=1e-6)


@pytest.mark.slow  # torch's compiler runs for a minute
def test_lengths_below_a_kernel_train_compiled_as_they_do_eagerly(settings):
    recipe = "conv(k=5) >> ff(8) + highway_conv(k=3)"
    losses = []
    for compiled in (True, False):
        trial = settings(
            recipe, "sort", compile=compiled, curriculum=None, lengths=[2, 4], epochs=1, steps_per_epoch=6
        )
        losses.append(Training.begin(trial, torch.device("cpu")).advance()["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
