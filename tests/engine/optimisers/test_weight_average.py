"""The moving average of weights: of the steps alone, resumable, and used for evaluation and saved models."""

import pickle

import pytest
import torch

from activemem import build
from activemem.engine.optimisers.weights import Weights
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings


def settings(**train):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": "lstm >> ff(8)", "d_model": 8, "dropout": 0.0},
            "task": {"name": "reverse", "vocab": 5},
            "train": {
                "optimizer": {"name": "adam", "lr": 0.01},
                "batch_size": 8,
                "epochs": 3,
                "steps_per_epoch": 4,
                "curriculum": {"start": 3},
                **train,
            },
        }
    )


@pytest.mark.parametrize("decay", [0.1, 0.9, 0.9999])
def test_the_average_is_that_of_the_steps_without_the_initial_weights(decay):
    model = build("ff(8)", d_model=4, vocab=3, generator=torch.Generator().manual_seed(0))
    weights = Weights(model, settings(average=decay).train)
    drawn, steps = torch.Generator().manual_seed(1), []
    for step in range(1, 6):
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(torch.randn(weight.shape, generator=drawn))
        steps.append([weight.detach().clone() for weight in model.parameters()])
        weights.after_step(step)
        shares = [decay ** (step - 1 - i) for i in range(step)]
        for average, *taken in zip(weights.evaluated().parameters(), *steps, strict=True):
            expected = sum(share * each for share, each in zip(shares, taken, strict=True)) / sum(shares)
            torch.testing.assert_close(average, expected, check_stride=False)


def test_it_changes_what_is_measured_and_kept_but_no_step(tmp_path):
    cpu = torch.device("cpu")
    plain, averaged = (Training.begin(settings(**more), cpu, tmp_path) for more in ({}, {"average": 0.9}))
    for _ in range(3):
        one, other = plain.advance(), averaged.advance()
        assert one["loss"] == other["loss"]
    assert "average" not in plain.state()
    kept = averaged.weights()
    assert all(weight.equal(averaged.state()["average"][name]) for name, weight in kept.items())
    assert not all(weight.equal(kept[name]) for name, weight in plain.weights().items())
    for name, weight in plain.state()["model"].items():
        assert weight.equal(averaged.state()["model"][name])


def test_an_interrupted_training_resumes_bit_for_bit(tmp_path):
    whole, half, rest = (
        Training.begin(settings(average=0.9), torch.device("cpu"), tmp_path) for _ in range(3)
    )
    for _ in range(3):
        last = whole.advance()
    half.advance()
    rest.restore(pickle.loads(pickle.dumps(half.state())))
    rest.advance()
    assert {**rest.advance(), "tokens_per_s": 0} == {**last, "tokens_per_s": 0}
    assert all(weight.equal(whole.weights()[name]) for name, weight in rest.weights().items())


def test_an_average_is_compiled_like_its_model(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda call, mode=None, dynamic=None: compiled.append(call) or call)
    model = build("ff(8)", d_model=4, vocab=3, generator=torch.Generator().manual_seed(0))
    weights = Weights(model, settings(average=0.9, compile=True).train)
    bodies = {call.__self__ for call in compiled}
    assert bodies == {model.body, weights.evaluated().body}
