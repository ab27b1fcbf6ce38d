"""Callbacks of plug-ins do not change the training by a bit."""

import math

import pytest
import torch

from activemem import Callback, PluginError, register_callback
from activemem.engine.core.process import StoppedMidway
from activemem.engine.trial.conformance import CALLBACK_CHECKS, EPOCHS, trial
from activemem.engine.trial.training import Training
from activemem.engine.trial.training_parts import CallbackError, Callbacks
from activemem.studies.schema.reported_metrics import epoch_metrics

from . import part_examples

CPU = torch.device("cpu")


@pytest.mark.parametrize("check", CALLBACK_CHECKS)
def test_a_callback_that_keeps_and_draws_and_wrecks_its_copy_conforms(check):
    check(trial(callbacks=[{"name": "drift"}], average=0.5))


def test_metrics_are_reported_after_each_epoch_and_after_the_last(tmp_path):
    training = Training.begin(trial(callbacks=[{"name": "drift"}], average=0.5), CPU, tmp_path)
    first = {name: weight.clone() for name, weight in training.model.named_parameters()}
    for epoch in range(1, EPOCHS + 1):
        found = training.advance()
        weights = training.weights()  # the average, with which models are evaluated
        squares = [(weights[name] - each).detach().square().sum() for name, each in first.items()]
        moved = math.sqrt(sum(map(float, squares)))
        assert found["drift"] == pytest.approx(moved, rel=1e-4)
        assert ("drift_at_end" in found) == (epoch == EPOCHS)
    assert found["drift_at_end"] == found["drift"]


def test_callbacks_compute_in_the_precision_of_the_training(tmp_path, monkeypatch):
    """Torch's default is TF32 for convolutions on a GPU."""
    seen, call = [], Callbacks._call

    def note(self, name, hook, *rest):
        seen.append((hook.__name__, torch.backends.cudnn.conv.fp32_precision))
        return call(self, name, hook, *rest)

    monkeypatch.setattr(Callbacks, "_call", note)
    Training.begin(trial(callbacks=[{"name": "drift"}], epochs=1), CPU, tmp_path).advance()
    assert seen == [(each, "ieee") for each in ("on_start", "on_epoch_end", "on_end")]


def test_a_training_that_ends_early_calls_the_end_of_its_callbacks(tmp_path):
    settings = trial(
        callbacks=[{"name": "drift"}],
        epochs=5,
        early_stopping={"metric": "dev_loss", "patience": 1, "min_change": 1e9},
    )
    training = Training.begin(settings, CPU, tmp_path)
    assert "drift_at_end" not in training.advance()
    assert "drift_at_end" in training.advance()
    assert training.finished


@pytest.mark.parametrize(
    "flaw",
    [
        "unknown",
        "dtype",
    ],
)
def test_a_callback_that_is_noticed_fails_its_trial(flaw, tmp_path, golden):
    try:
        with golden.raises(CallbackError):
            Training.begin(trial(callbacks=[{"name": "drift", "flaw": flaw}]), CPU, tmp_path).advance()
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("flaw", "fault"),
    [
        ("float", "part_examples.py: callback 'drift': TypeError: on_epoch_end: expected .*, got float"),
        ("state", r"part_examples.py: callback 'drift': TypeError: expected .*, got lock in state\['rule'\]"),
        ("numpy", r"part_examples.py: .*, got float64 in state\['rule'\]; use float\(…\)"),
        ("raise", r"part_examples.py:\d+: callback 'drift': RuntimeError: no more"),
    ],
)
def test_a_callback_with_a_wrong_value_is_named(flaw, fault, tmp_path):
    with pytest.raises(PluginError, match=f"^{fault}$"):
        Training.begin(trial(callbacks=[{"name": "drift", "flaw": flaw}]), CPU, tmp_path).advance()


def test_a_state_of_a_later_epoch_that_no_checkpoint_holds_is_named_when_it_is_saved(tmp_path):
    training = Training.begin(trial(callbacks=[{"name": "drift", "flaw": "late"}]), CPU, tmp_path)
    for _ in range(EPOCHS):
        training.advance()
    with pytest.raises(PluginError, match=r"callback 'drift': TypeError: .*, got lock in state\['rule'\]"):
        training.state()


def test_a_callback_that_is_left_midway_is_called_again_with_the_state_before(tmp_path):
    settings = trial(callbacks=[{"name": "count"}], curriculum={"start": 2, "grow_at": 0.01}, lengths=None)
    whole, left = Training.begin(settings, CPU, tmp_path), Training.begin(settings, CPU, tmp_path)
    expected = [without_speed(whole.advance()) for _ in range(EPOCHS)]
    part_examples.INTERRUPTED[:] = [1, 2]
    found = []
    while len(found) < EPOCHS:
        try:
            found.append(without_speed(left.advance()))
        except StoppedMidway:
            saved, left = left.state(), Training.begin(settings, CPU, tmp_path)
            left.restore(saved)
    assert part_examples.INTERRUPTED == []
    assert found == expected
    assert [epoch["calls"] for epoch in found] == [1.0, 2.0]


def without_speed(metrics):
    return {name: value for name, value in metrics.items() if name != "tokens_per_s"}


def test_metrics_of_callbacks_do_not_end_a_training_early():
    assert part_examples.Drift.__name__ == "Drift"
    assert "drift" not in epoch_metrics(trial(callbacks=[{"name": "drift"}]))


def test_a_callback_that_does_nothing_cannot_be_registered(golden):
    class Nothing(Callback):
        pass

    with golden.raises(ValueError):
        register_callback("nothing", title="Nothing", source="a test")(Nothing)
