"""The moving average of weights: as torch's, resumable, and used for evaluation and saved models."""

import pickle

import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from activemem import build
from activemem.engine.optimisers import WeightAverage
from activemem.engine.trial import Training
from activemem.studies.schema import TrialSettings


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


def test_the_average_is_that_of_torch():
    model = build("ff(8)", d_model=4, vocab=3, generator=torch.Generator().manual_seed(0))
    ours, theirs = WeightAverage(model, 0.9), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    theirs.update_parameters(model)  # the first one is a copy
    drawn = torch.Generator().manual_seed(1)
    for _ in range(5):
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(torch.randn(weight.shape, generator=drawn))
        ours.after_step()
        theirs.update_parameters(model)
    before = [weight.detach().clone() for weight in model.parameters()]
    with ours.in_place():
        for weight, other in zip(model.parameters(), theirs.module.parameters(), strict=True):
            torch.testing.assert_close(weight, other)
    assert all(weight.equal(old) for weight, old in zip(model.parameters(), before, strict=True))


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


def test_an_average_whose_swap_is_left_midway_is_not_settled_until_it_is_restored():
    model = build("ff(8)", d_model=4, vocab=3, generator=torch.Generator().manual_seed(0))
    average, before = WeightAverage(model, 0.9), {name: w.clone() for name, w in model.named_parameters()}
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(1.0)
    with pytest.raises(KeyboardInterrupt), average.in_place():
        raise KeyboardInterrupt
    assert average.settled
    assert all(weight.equal(before[name] + 1.0) for name, weight in model.named_parameters())
    assert all(weight.equal(before[name]) for name, weight in average.state().items())
    model.after_optimiser_step = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError), average.in_place():
        pass
    assert not average.settled
    average.restore(before)
    assert average.settled
