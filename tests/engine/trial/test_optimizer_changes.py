"""An optimiser that changes during training gives equal results after interruptions."""

import pickle

import pytest
import torch

from activemem.engine.trial import Training

CPU = torch.device("cpu")
CHANGES = [{"after": 1, "lr": 0.003, "betas": [0.8, 0.99]}, {"after": 3, "weight_decay": 0.1}]


def trained(training, epochs):
    """Return the weights after this many epochs."""
    while training.epoch < epochs:
        training.advance()
    return {name: weight.clone() for name, weight in training.state()["model"].items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def groups(training):
    return [
        {key: each[key] for key in ("lr", "initial_lr", "betas", "weight_decay")}
        for each in training.optimizer.param_groups
    ]


@pytest.mark.parametrize(
    ("name", "schedule"),
    [("adamw", "cosine"), ("muon", "constant"), ("sgd", "constant"), ("adagrad", "constant")],
)
def test_a_training_with_changes_is_the_same_in_pieces(settings, name, schedule):
    changes = [{"after": 1, "lr": 0.003}, {"after": 2, "lr": 0.004, "weight_decay": 0.1}]
    made = settings(
        optimizer={"name": name, "lr": 0.01},
        schedule={"name": schedule, "warmup": 3},
        epochs=3,
        steps_per_epoch=2,
        changes=changes,
    )
    whole = trained(Training(made, CPU), 3)
    state = Training(made, CPU)
    for epoch in range(1, 4):
        trained(state, epoch)
        kept = pickle.loads(pickle.dumps(state.state()))
        state = Training(made, CPU)
        state.restore(kept)
    assert same(whole, state.state()["model"])


def test_each_change_holds_from_its_epoch_on(settings):
    made = settings(
        optimizer={"name": "adamw", "lr": 0.01, "decay_norms": False},
        groups=[{"match": "body.*", "lr_scale": 0.5}],
        changes=CHANGES,
    )
    training, found = Training(made, CPU), []
    for epoch in range(1, 5):
        found += [[(each["lr"], each["betas"], each["weight_decay"]) for each in groups(training)]]
        trained(training, epoch)
    rates = [{rate for rate, _, _ in each} for each in found]
    assert rates == [{0.01, 0.005}, {0.003, 0.0015}, {0.003, 0.0015}, {0.003, 0.0015}]
    assert {betas for _, betas, _ in found[0]} == {(0.9, 0.999)}
    assert {betas for each in found[1:] for _, betas, _ in each} == {(0.8, 0.99)}
    assert {decay for each in found[:3] for _, _, decay in each} == {0.0}
    assert {decay for _, _, decay in found[3]} == {0.0, 0.1}  # norms and biases still do not decay


def test_an_optimiser_change_without_effect_is_removed(settings):
    plain = settings()
    assert settings(changes=[{"after": 1, "lr": 0.01}]) == plain
    twice = settings(changes=[{"after": 1, "lr": 0.02}, {"after": 2, "lr": 0.02, "eps": 1e-8}])
    assert twice == settings(changes=[{"after": 1, "lr": 0.02}])
    assert twice.train.optimizer_after(0) == plain.train.optimizer
    assert twice.train.optimizer_after(3).lr == 0.02


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [{"after": 2, "lr": 0.1}, {"after": 2, "lr": 0.2}],
            "increasing epochs, got 2, 2",
        ),
        (
            [{"after": 4, "lr": 0.1}],
            r"expected the last change before the last epoch \(4\), got 4",
        ),
        ([{"after": 1, "momentum": 0.5}], "adam has no momentum; sgd and muon have one"),
        ([{"after": 1, "name": "sgd"}], "Extra inputs are not permitted"),
    ],
)
def test_changes_that_cannot_be_are_refused(settings, changes, message):
    with pytest.raises(ValueError, match=message):
        settings(changes=changes)
