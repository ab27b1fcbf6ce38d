"""What an ended trial has held on several devices is free on all of them before the next one begins."""

import gc
import weakref
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch
import torch._dynamo  # the first optimiser of a process imports it, in frames that stay for a while

from activemem.engine.replicas import replica_process
from activemem.engine.replicas.messages import Ask
from activemem.engine.replicas.replicated_training import ReplicatedTraining
from activemem.engine.replicas.sharded_training import ShardedTraining
from activemem.engine.replicas.training_factory import ReplicatedTrainings
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.storage import Store
from activemem.studies.resolve.trial import Trial
from activemem.studies.schema.settings import TrialSettings

CPU = torch.device("cpu")
SORT = TrialSettings.model_validate(
    {
        "model": {"recipe": "2 * (sa >> ff(16))", "d_model": 8, "dropout": 0.1},
        "task": {"name": "sort"},
        "train": {
            "optimizer": {"name": "adam", "lr": 1e-2},
            "batch_size": 8,
            "epochs": 2,
            "steps_per_epoch": 2,
            "lengths": [3, 5],
        },
    }
)


@pytest.fixture(scope="module")
def two():
    made = ReplicatedTrainings([CPU, CPU])
    yield made
    made.end()


@contextmanager
def no_search_for_cycles():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def references(training):
    held = (training, training.model, training.optimizer, *training.model.parameters())
    return [weakref.ref(each) for each in held]


def alive(held):
    return [type(each()).__name__ for each in held if each() is not None]


def test_a_replicated_training_is_free_as_soon_as_it_is_dropped(two):
    with no_search_for_cycles():
        training = ReplicatedTraining(SORT, two.group, Path("data"))
        held = references(training)
        while not training.finished:
            training.advance()
        training.state()
        del training
        assert alive(held) == []


@pytest.mark.parametrize("make", [ReplicatedTraining, ShardedTraining])
@pytest.mark.parametrize("is_left", [False, True], ids=["ended", "left"])
def test_an_attempt_on_several_devices_that_is_over_holds_nothing(two, tmp_path, make, is_left):
    held = []

    def watched(settings, _device, data):
        training = make(settings, two.group, data)
        held.extend(references(training))
        return training

    job = Job(trial=Trial(study="tiny", levels={"seed": 0}, settings=SORT), attempt=0, run="run")
    attempt = Attempt(job, Store(tmp_path), CPU, make_training=watched, devices=2)
    with no_search_for_cycles():
        attempt.advance()
        attempt.advance()
        if is_left:
            attempt.leave()
        while not attempt.ended:
            attempt.advance()
        assert len(held) > 5
        assert alive(held) == []


def test_another_replica_frees_what_it_forgets_before_it_builds_the_next(monkeypatch):
    told = []
    monkeypatch.setattr(replica_process, "free_memory", lambda: told.append(dict(replica._trainings)))
    replica = replica_process._Replica.__new__(replica_process._Replica)
    replica._trainings = {3: "a training", 4: "another"}
    replica._connection, ours = Pipe()
    ours.send(Ask(key=3, what="forget"))
    ours.close()
    with pytest.raises(EOFError):
        replica.answer()
    assert told == [{4: "another"}]
