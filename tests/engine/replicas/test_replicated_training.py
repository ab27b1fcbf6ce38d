"""Trainings on several devices: their numbers are those of one device, whatever happens on the way."""

import copy
import math
import os
import re
import signal
import sys
from pathlib import Path

import pytest
import torch

from activemem.engine.core.interruption import StoppedMidway
from activemem.engine.replicas.faults import ReplicaError, check_replicas
from activemem.engine.replicas.messages import Ask, Failure
from activemem.engine.replicas.replicated_training import ReplicatedTraining
from activemem.engine.replicas.sharded_training import ShardedTraining
from activemem.engine.replicas.sharding import sharding_faults
from activemem.engine.replicas.share import spread
from activemem.engine.replicas.training_factory import ReplicatedTrainings
from activemem.engine.training_parts.activation_checkpointing import CheckpointedTrainings
from activemem.engine.trial import provenance
from activemem.engine.trial.machine_failures import MachineError, ReplicaDiedError
from activemem.engine.trial.outcome import Totals, measured_totals
from activemem.engine.trial.training import NotANumberError, Training
from activemem.studies.schema.settings import TrialSettings
from activemem.studies.study import load_study

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
KILLED = r"replica 1 on .* has ended: signal 9 \(Killed\)"
PAIRS = {
    "model": {"recipe": "seq2seq(gru, 2 * (sa(heads=2) >> ff(16)))", "d_model": 16, "dropout": 0.0},
    "task": {"name": "reverse_copy"},
    "train": {
        "optimizer": {"name": "adam", "lr": 1e-2},
        "batch_size": 8,
        "batch_tokens": 160,
        "accumulate": 4,
        "epochs": 3,
        "steps_per_epoch": 3,
        "clip_norm": 0.5,
    },
}
WITHOUT_SPANS = {"sort": "2 * (sa(heads=2) + conv(k=3) >> ff(16))", "language_model": "sa(heads=2) >> lstm"}


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


@pytest.mark.parametrize("size", [8, 7])  # as many sequences for each device, or not
@pytest.mark.parametrize("form", [SORT, STREAM], ids=["sort", "stream"])
def test_two_devices_compute_what_one_does_with_a_batch_in_two_parts(two, form, size):
    asked = settings(form, batch_size=size)
    found = two(asked, CPU, Path("data"))
    alone = Training(spread(asked, 2), CPU)
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


def shardable(form, dropout=0.0, **train):
    """As `settings`, with a recipe of several layers that no learnt spans keep from being sharded."""
    recipe = "2 * (sa(heads=2) >> persistent_conv(k=3))" if form is SORT else "sa(heads=2, span=16) >> lstm"
    return settings({**form, "model": {**form["model"], "recipe": recipe, "dropout": dropout}}, **train)


@pytest.mark.heavy
@pytest.mark.parametrize("form", [SORT, STREAM], ids=["sort", "stream"])
def test_two_devices_with_a_part_of_each_weight_compute_what_one_does(two, form):
    asked = shardable(form, average=0.9)
    found, alone = ShardedTraining(asked, two.group, Path("data")), Training(spread(asked, 2), CPU)
    for ours, expected in zip(trained(found, 2), trained(alone, 2), strict=True):
        assert ours == pytest.approx(expected, rel=1e-4)
    saved, whole = found.state(), alone.state()
    for name in ("model", "average"):
        for path, weight in whole[name].items():
            torch.testing.assert_close(saved[name][path], weight, rtol=1e-3, atol=1e-5)
    assert sum(each.to_local().numel() for each in found.model.parameters()) <= 0.55 * alone.parameters


@pytest.mark.heavy
@pytest.mark.parametrize("make", [ReplicatedTraining, ShardedTraining])
def test_two_devices_compute_what_one_does_with_pairs_in_batches_of_tokens(two, make):
    check_replicas([settings(PAIRS)], 2)
    found, alone = make(settings(PAIRS), two.group, Path("data")), Training(spread(settings(PAIRS), 2), CPU)
    alone.advance()
    begun = alone.state()
    begun["objective"]["position"] = 562  # the last batch of a pass but one, with fewer pairs than parts
    for training in (found, alone):
        training.restore(copy.deepcopy(begun))
    sizes, drawn = [], found.objective._drawn
    for _ in range(2):
        ours = found.advance(lambda: sizes.append(len(drawn.current.pairs)))
        (expected,) = trained(alone, 1)
        assert {name: ours[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert sizes == [8, 6, *[8] * 4]
    for name, weight in alone.weights().items():
        torch.testing.assert_close(found.weights()[name], weight, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("scheduled", [None, {"start": 0.5, "double_every": 1}], ids=["always", "scheduled"])
def test_two_devices_read_the_guesses_that_one_reads(two, scheduled):
    form = {**PAIRS, "model": {**PAIRS["model"], "recipe": "seq2seq(gru, gru)"}}
    asked = settings(form, sampling=0.7, scheduled_sampling=scheduled, batch_tokens=None, accumulate=1)
    check_replicas([asked], 2)
    found, alone = two(asked, CPU, Path("data")), Training(asked, CPU)
    for ours, expected in zip(trained(found, 2), trained(alone, 2), strict=True):
        assert ours == pytest.approx(expected, rel=1e-4)
    for name, weight in alone.weights().items():
        torch.testing.assert_close(found.weights()[name], weight, rtol=1e-3, atol=1e-5)
    assert any(fault.startswith("sampling: ") for fault in sharding_faults(asked))


@pytest.mark.heavy
def test_a_sharded_training_goes_on_with_any_number_of_devices(two):
    asked = shardable(STREAM, clip_norm=0.5, optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.9})
    begun = ShardedTraining(asked, two.group, Path("data"))
    begun.advance()
    expected, saved = Training(spread(asked, 2), CPU), copy.deepcopy(begun.state())
    expected.restore(copy.deepcopy(saved))  # which is that of any training
    (last,) = trained(expected, 1)
    with pytest.raises(StoppedMidway):
        begun.advance(lambda: _stop(begun))
    midway = begun.state()
    for found in (begun, ShardedTraining(asked, two.group, Path("data")), two(asked, CPU, Path("data"))):
        if found is not begun:
            found.restore(copy.deepcopy(midway))
        (ours,) = trained(found, 1)
        assert ours == pytest.approx(last, rel=1e-4)
        for path, weight in expected.weights().items():
            torch.testing.assert_close(found.weights()[path], weight, rtol=1e-3, atol=1e-5)


def _stop(training):
    if training.steps_left == 2:
        raise StoppedMidway


@pytest.mark.heavy
def test_a_lost_part_of_the_weights_is_told_as_a_death(two):
    training = ShardedTraining(shardable(SORT), two.group, Path("data"))
    training.advance()
    (replica,) = training.group.pids
    with pytest.raises(ReplicaDiedError, match=KILLED):
        training.advance(lambda: os.kill(replica, signal.SIGKILL))
    assert not training.can_be_saved
    with pytest.raises(ReplicaDiedError, match="its part of the weights with it"):
        training.state()


def test_all_reasons_are_told_why_weights_cannot_be_sharded():
    train = {"optimizer": {"name": "muon", "lr": 0.1}, "clip_tensor_norm": 1.0, "measure": ["gradient_norm"]}
    asked = settings(STREAM, **train)
    learnt = asked.model.model_copy(update={"recipe": "sa(span=16, adaptive=true)"})
    assert list(sharding_faults(asked.model_copy(update={"model": learnt}))) == [
        "optimizer: expected adam, adamw, adagrad, sgd, lion, which move each number by itself, got muon",
        "clip_tensor_norm: a replica has no whole tensor whose norm could be taken",
        "measure: a replica has no whole gradients for gradient_norm",
        "recipe: a block looks at its weights between steps, as learnt spans do",
    ]
    assert not list(sharding_faults(settings(STREAM)))
    check_replicas([asked], 2, device_bytes=10**12)
    with pytest.raises(ReplicaError, match=r"muon, where not all weights fit on each, with 500\.0 MB free"):
        check_replicas([asked], 2, device_bytes=5 * 10**8)


def test_what_fits_on_each_of_eight_devices_in_parts_needs_no_sharding():
    trials = {
        trial.settings.model.recipe: trial.settings for trial in load_study("attention-variants").trials
    }
    check_replicas(trials.values(), 8, device_bytes=80 * 10**9)
    with pytest.raises(ReplicaError, match="recipe: a block looks at its weights between steps"):
        check_replicas(trials.values(), 8, device_bytes=8 * 10**9)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of another process is told by Linux")
def test_the_peak_of_memory_is_the_largest_of_all_replicas(two, monkeypatch):
    training = two(settings(SORT), CPU, Path("data"))
    assert measured_totals(Totals(), training, CPU, told="").peak_mib == provenance.peak_mib(CPU)
    training.advance()
    (replica,) = training.group.pids
    told = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{replica}/status").read_text("ascii"))
    theirs = int(told[1]) / 1024
    for ours in (theirs / 2, theirs * 2):
        monkeypatch.setattr(provenance, "peak_mib", lambda _device, ours=ours: ours)
        found = measured_totals(Totals(), training, CPU, told="")
        assert found.peak_mib == pytest.approx(max(ours, theirs), rel=0.05)


def test_weights_that_have_parted_are_told(two):
    training = two(settings(SORT), CPU, Path("data"))
    training.advance()
    with torch.no_grad():
        next(training.model.parameters()).add_(1e-3)
    with pytest.raises(MachineError, match="the weights of replica 1 are others"):
        training.state()


def test_weights_that_are_no_numbers_any_more_are_those_of_all_replicas(two):
    training = two(
        settings(SORT, optimizer={"name": "sgd", "lr": 1e39}, steps_per_epoch=1), CPU, Path("data")
    )
    training.advance()
    assert any(weight.isnan().any() for weight in training.state()["model"].values())


def test_a_loss_that_is_no_number_since_a_replica_has_ended_is_told_as_its_death(two):
    training = two(settings(SORT), CPU, Path("data"))
    training.advance()

    def end_after_the_last_step():
        if not training.steps_left:
            os.kill(training.group.pids[0], signal.SIGKILL)
            training._loss = training._loss * math.nan  # as what NCCL leaves of a sum

    with pytest.raises(ReplicaDiedError, match=KILLED):
        training.advance(end_after_the_last_step)
    assert not training.group.pids


def test_a_loss_that_is_no_number_is_told_as_that_where_all_replicas_are_there(two):
    training = two(settings(SORT), CPU, Path("data"))

    def lose():
        training._loss = training._loss * math.nan

    with pytest.raises(NotANumberError, match="not a number at epoch 1"):
        training.advance(lose)
    assert training.group.pids


@pytest.mark.heavy
def test_a_lost_replica_is_told_and_others_take_its_place(two):
    expected = trained(two(settings(SORT), CPU, Path("data")), 2)
    lost = two(settings(SORT), CPU, Path("data"))
    first = trained(lost, 1)
    (replica,) = lost.group.pids
    state = copy.deepcopy(lost.state())

    def kill():
        if lost.steps_left == 3:
            os.kill(replica, signal.SIGKILL)

    with pytest.raises(ReplicaDiedError, match=KILLED):
        lost.advance(kill)
    again = two(settings(SORT), CPU, Path("data"))
    again.restore(state)
    assert [*first, *trained(again, 1)] == expected


@pytest.mark.heavy
def test_what_one_of_three_replicas_fails_or_dies_by_is_raised_and_not_what_follows_from_it(two):
    two.end()  # a process has one group at a time
    three = ReplicatedTrainings([CPU] * 3)
    training = three(settings(SORT, batch_size=9), CPU, Path("data"))
    before = trained(training, 1)
    unknown = Ask(key=99, what="step")
    with pytest.raises(KeyError, match="99"):
        training.advance(lambda: three.group._processes[1].connection.send(unknown))
    assert not three.group.pids
    assert not training.can_be_saved
    again = three(settings(SORT, batch_size=9), CPU, Path("data"))
    assert trained(again, 1) == before
    last = three.group.pids[1]
    with pytest.raises(ReplicaDiedError, match=r"replica 2 on .* has ended: signal 9 \(Killed\)"):
        again.advance(lambda: os.kill(last, signal.SIGKILL))
    three.end()


class _LostError(RuntimeError):
    def __init__(self, what, where):
        super().__init__(f"{what} ({where})")


def test_failures_come_as_they_were_raised_or_as_what_they_said():
    sent = [Failure.of(torch.OutOfMemoryError("CUDA out of memory")), Failure.of(_LostError("lost", "here"))]
    whole, told = (each.error() for each in sent)
    assert isinstance(whole, torch.OutOfMemoryError)
    assert (type(told), str(told)) == (RuntimeError, "_LostError: lost (here)")
    assert str(Failure.of(ValueError(lambda: None)).error()).startswith("ValueError: <function")
    assert sent[0].at <= sent[1].at


@pytest.mark.slow
def test_what_a_replica_fails_by_is_raised(two):
    missing = settings(STREAM)
    training = two(missing, CPU, Path("data"))
    training._data = Path("nowhere")
    object.__setattr__(training.settings.task, "corpus", "ptb")
    with pytest.raises(Exception, match="ptb"):
        training.advance()


def test_all_reasons_are_told_why_trials_cannot_have_several_devices():
    check_replicas([settings(SORT, batch_size=7)], 2)
    with pytest.raises(ReplicaError) as refused:
        check_replicas([settings(SORT, batch_size=2, measure=["gradient_noise"], accumulate=2)], 2)
    assert str(refused.value).splitlines() == [
        "these trials cannot take their steps on 2 devices",
        "  batch_size: expected at least 4, as accumulate = 2 on 2 devices is as many parts, got 2",
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


@pytest.mark.parametrize("whole", [True, False], ids=["replicated", "sharded"])
def test_replicas_that_compute_activations_again_have_the_same_bits(whole, two):
    two.end()  # a process has one group at a time
    form = {**SORT, "model": {**SORT["model"], "recipe": WITHOUT_SPANS["sort"], "dropout": 0.3}}
    trials, found = settings(form, clip_norm=None), []
    for checkpoints in (False, True):
        make = ReplicatedTrainings([CPU, CPU], None if whole else 1, checkpoints=checkpoints)
        training = (CheckpointedTrainings(make) if checkpoints else make)(trials, CPU, Path("data"))
        found.append((trained(training, 2), training.weights()))
        make.end()
    assert found[0][0] == found[1][0]
    torch.testing.assert_close(found[0][1], found[1][1], rtol=0, atol=0)
