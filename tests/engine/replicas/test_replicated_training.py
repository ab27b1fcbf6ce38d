"""Trainings on several devices: their numbers are those of one device, whatever happens on the way."""

import copy
import os
import signal
from pathlib import Path

import pytest
import torch

from activemem.engine.replicas.faults import ReplicaError, check_replicas
from activemem.engine.replicas.replicated_training import ReplicatedTrainings
from activemem.engine.replicas.share import spread
from activemem.engine.trial.machine_failures import MachineError
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

CPU = torch.device("cpu")
SORT = {
    "model": {"recipe": "sa(heads=2) + conv(k=3) >> ff(16)", "d_model": 16, "dropout": 0.0},
    "task": {"name": "sort"},
    "train": {
        "optimizer": {"name": "adam", "lr": 1e-2},
        "batch_size": 8,
        "epochs": 3,
        "steps_per_epoch": 5,
        "clip_norm": 0.5,
        "curriculum": {"start": 3, "grow_at": 0.1},
    },
}
STREAM = {
    "model": {"recipe": "sa(heads=2, span=16) >> lstm", "d_model": 16, "dropout": 0.0, "position": "none"},
    "task": {
        "name": "language_model",
        "corpus": "paradise-lost",
        "tokens": "characters",
        "context": 8,
        "dev_tokens": 99,
    },
    "train": {
        "optimizer": {"name": "adagrad", "lr": 0.05},
        "batch_size": 8,
        "epochs": 3,
        "steps_per_epoch": 4,
    },
}


@pytest.fixture(scope="module")
def two():
    made = ReplicatedTrainings([CPU, CPU])
    yield made
    made.end()


def settings(form, **train):
    return TrialSettings.model_validate({**form, "train": {**form["train"], **train}})


def trained(training, epochs):
    return [
        {name: value for name, value in training.advance().items() if name != "tokens_per_s"}
        for _ in range(epochs)
    ]


@pytest.mark.parametrize("form", [SORT, STREAM], ids=["sort", "stream"])
def test_two_devices_compute_what_one_does_with_a_batch_in_two_parts(two, form):
    found = two(settings(form), CPU, Path("data"))
    alone = Training(spread(settings(form), 2), CPU)
    for ours, expected in zip(trained(found, 2), trained(alone, 2), strict=True):
        assert ours == pytest.approx(expected, rel=1e-4)
    for name, weight in alone.weights().items():
        torch.testing.assert_close(found.weights()[name], weight, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("form", [SORT, STREAM], ids=["sort", "stream"])
def test_a_training_goes_on_from_between_two_steps_as_if_it_had_not_been_left(two, form):
    form = {**form, "model": {**form["model"], "dropout": 0.3}}
    whole = two(settings(form), CPU, Path("data"))
    expected, saved = trained(whole, 2), []

    begun = two(settings(form), CPU, Path("data"))
    begun.advance(lambda: saved.append(copy.deepcopy(begun.state())) if begun.steps_left == 2 else None)
    restored = two(settings(form), CPU, Path("data"))
    restored.restore(saved[0])
    assert trained(restored, 2) == expected
    assert restored.devices == 2


def test_another_number_of_devices_goes_on_where_one_has_left(two):
    alone = Training(settings(STREAM), CPU)
    alone.advance()
    found = two(settings(STREAM), CPU, Path("data"))
    found.restore(copy.deepcopy(alone.state()))
    (ours,), (expected,) = trained(found, 1), trained(alone, 1)
    assert ours == pytest.approx(expected, rel=1e-4)


def test_weights_that_have_parted_are_told(two):
    training = two(settings(SORT), CPU, Path("data"))
    training.advance()
    with torch.no_grad():
        next(training.model.parameters()).add_(1e-3)
    with pytest.raises(MachineError, match="the weights of replica 1 are others"):
        training.state()


@pytest.mark.heavy
def test_a_lost_replica_is_the_machine_s_failure_and_others_take_its_place(two):
    expected = trained(two(settings(SORT), CPU, Path("data")), 2)
    lost = two(settings(SORT), CPU, Path("data"))
    first = trained(lost, 1)
    (replica,) = lost.group.pids
    state = copy.deepcopy(lost.state())

    def kill():
        if lost.steps_left == 3:
            os.kill(replica, signal.SIGKILL)

    with pytest.raises(MachineError, match="a replica of the training has ended"):
        lost.advance(kill)
    again = two(settings(SORT), CPU, Path("data"))
    again.restore(state)
    assert [*first, *trained(again, 1)] == expected


@pytest.mark.slow
def test_what_a_replica_fails_by_is_raised(two):
    missing = settings(STREAM)
    training = two(missing, CPU, Path("data"))
    training._data = Path("nowhere")
    object.__setattr__(training.settings.task, "corpus", "ptb")
    with pytest.raises(Exception, match="ptb"):
        training.advance()


def test_all_reasons_are_told_why_trials_cannot_have_several_devices():
    check_replicas([settings(SORT, batch_size=7)], 1)
    with pytest.raises(ReplicaError) as refused:
        check_replicas([settings(SORT, batch_size=6, measure=["gradient_noise"], accumulate=2)], 2)
    assert str(refused.value).splitlines() == [
        "these trials cannot take their steps on 2 devices",
        "  batch_size: expected a multiple of 4, as accumulate = 2 on 2 devices is as many parts, got 6",
        "  measure: gradient_noise compares the parts of a batch on one device",
    ]
    pairs = {
        "model": {"recipe": "seq2seq(gru, gru)", "d_model": 8},
        "task": {"name": "reverse_copy"},
        "train": {**SORT["train"], "curriculum": None, "batch_tokens": 70},
    }
    check_replicas([settings(pairs)], 2)
    with pytest.raises(ReplicaError, match="expected at least 80 tokens and 4 pairs, as accumulate = 2 on"):
        check_replicas([settings(pairs, accumulate=2)], 2)
