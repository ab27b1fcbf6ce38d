"""Processes of replicas: how they are met, asked and ended, whatever becomes of one of them."""

import gc
import os
import signal
import subprocess
import threading
import time
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from activemem.engine.replicas import replica_group, replica_process
from activemem.engine.replicas.messages import Ask, Failure, ReplicaPost
from activemem.engine.replicas.replica_group import BuiltTraining, ReplicaGroup, _Process
from activemem.engine.replicas.training_factory import ReplicatedTrainings
from activemem.engine.trial.machine_failures import MachineError, ReplicaDiedError
from activemem.plugins import PluginFile
from activemem.studies.schema.settings import TrialSettings

CPU = torch.device("cpu")
SORT = TrialSettings.model_validate(
    {
        "model": {"recipe": "conv(k=3)", "d_model": 8, "dropout": 0.0},
        "task": {"name": "sort"},
        "train": {
            "optimizer": {"name": "adam", "lr": 1e-2},
            "batch_size": 8,
            "epochs": 3,
            "steps_per_epoch": 2,
            "curriculum": {"start": 3, "grow_at": 0.1},
        },
    }
)


def test_a_replica_that_cannot_begin_is_not_waited_for(monkeypatch):
    broken = PluginFile(path=Path("broken.py"), source="raise ValueError('on the other machine')")
    monkeypatch.setattr(replica_group, "loaded_files", lambda: (broken,))
    made = ReplicatedTrainings([CPU, CPU])
    training = made(SORT, CPU, Path("data"))
    monkeypatch.setattr(replica_group, "join", lambda _post: pytest.fail("nobody is there to be met"))
    with pytest.raises(Exception, match="on the other machine"):
        training.advance()
    assert not made.group.pids


def told_to_a_replica(group):
    """What the other replica of a group, that is none, is told from now on."""
    told = []
    group._processes = [SimpleNamespace(connection=SimpleNamespace(send=told.append))]
    return told


def test_what_is_to_be_forgotten_is_told_before_whatever_is_told_next_and_not_at_once():
    group = ReplicaGroup([CPU, CPU])
    told, step = told_to_a_replica(group), Ask(key=2, what="step")
    group.forget(BuiltTraining(generation=0, key=1))
    group.forget(BuiltTraining(generation=7, key=1))  # of processes that have ended
    assert told == []
    group.tell(step)
    group.tell(step)
    assert told == [Ask(key=1, what="forget"), step, step]


def test_a_group_that_has_ended_is_told_nothing():
    with pytest.raises(ReplicaDiedError, match="the other replicas have ended"):
        ReplicaGroup([CPU, CPU]).ask(Ask(key=1, what="carried"))


def test_a_training_that_python_frees_amid_another_hides_no_death_of_a_replica():
    made = ReplicatedTrainings([CPU, CPU])
    freed = made(SORT, CPU, Path("data"))
    freed.advance()
    freed.itself = freed  # so that only a search for cycles frees it
    del freed
    training = made(SORT, CPU, Path("data"))

    def end_a_replica_and_free():
        if training.steps_left == 1:
            os.kill(made.group.pids[0], signal.SIGKILL)
            time.sleep(0.5)
            gc.collect()

    with pytest.raises(ReplicaDiedError, match=r"replica 1 on .* has ended: signal 9 \(Killed\)"):
        training.advance(end_a_replica_and_free)
    assert not made.group.pids


GONE = "import os, torch\ntorch.distributed.init_process_group = lambda *_, **__: os._exit(3)"


def test_a_replica_that_ends_while_it_is_met_is_not_waited_for(monkeypatch):
    gone = PluginFile(path=Path("gone.py"), source=GONE)
    monkeypatch.setattr(replica_group, "loaded_files", lambda: (gone,))
    never = threading.Event()  # as NCCL waits
    monkeypatch.setattr(replica_group, "join", lambda _post: never.wait())
    made = ReplicatedTrainings([CPU, CPU])
    training = made(SORT, CPU, Path("data"))
    with pytest.raises(
        MachineError, match=r"replica 1 on .* has ended: exit status 3, before the replicas"
    ) as error:
        training.advance()
    assert type(error.value) is MachineError  # since no trial has done that
    assert not made.group.pids
    monkeypatch.undo()
    assert training.advance()  # though that thread still waits
    made.end()
    never.set()


def test_a_replica_that_ends_while_the_others_fail_to_meet_is_no_death_of_the_trial(monkeypatch):
    made = ReplicatedTrainings([CPU, CPU])

    def join(_post):
        (replica,) = made.group.pids
        os.kill(replica, signal.SIGKILL)
        raise RuntimeError("Connection closed by peer")

    monkeypatch.setattr(replica_group, "join", join)
    training = made(SORT, CPU, Path("data"))
    with pytest.raises(MachineError, match=r"signal 9 \(Killed\), before the replicas have met") as error:
        training.advance()
    assert type(error.value) is MachineError
    assert not made.group.pids


@pytest.mark.heavy
def test_a_replica_that_does_not_answer_is_not_waited_for_without_an_end(monkeypatch):
    made = ReplicatedTrainings([CPU, CPU])
    training = made(SORT, CPU, Path("data"))
    training.advance()
    (replica,) = training.group.pids
    os.kill(replica, signal.SIGSTOP)
    monkeypatch.setattr(replica_group, "_PATIENCE_S", 0.5)
    with pytest.raises(MachineError, match=r"replica 1 has not answered within 0\.5 s"):
        training.state()
    assert not training.can_be_saved
    assert not training.group.pids


def test_replicas_that_do_not_meet_are_not_waited_for_without_an_end(monkeypatch):
    monkeypatch.setattr(replica_group, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(ReplicaGroup, "_hear", lambda _group: None)
    monkeypatch.setattr(replica_group, "join", lambda _post: time.sleep(1.0))
    made = ReplicatedTrainings([CPU, CPU])
    training = made(SORT, CPU, Path("data"))
    with pytest.raises(MachineError, match=r"devices have not met within 0 s: cpu, cpu; NCCL_DEBUG=INFO in"):
        training.advance()
    assert not made.group.pids


@pytest.mark.heavy
def test_a_replica_that_begins_is_not_ended_by_what_asks_the_whole_group_to_stop(monkeypatch):
    made, real = ReplicatedTrainings([CPU, CPU]), subprocess.Popen

    def interrupted(*words, **options):
        process = real(*words, **options)
        for number in (signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    training = made(SORT, CPU, Path("data"))
    assert training.advance()
    made.end()


def test_what_waits_for_replicas_is_left_before_their_group_is_taken_down(monkeypatch):
    told = []
    world = SimpleNamespace(abort=lambda: told.append("abort"))
    there = SimpleNamespace(
        group=SimpleNamespace(WORLD=world), destroy_process_group=lambda: told.append("destroy")
    )
    monkeypatch.setattr(replica_group, "distributed", there)
    ReplicaGroup([CPU, CPU]).end()
    assert told == ["abort", "destroy"]


def test_a_group_of_a_lost_gpu_that_cannot_be_left_hides_nothing(monkeypatch):
    def fail():
        raise torch.distributed.DistBackendError("Exception thrown when waiting for ProcessGroup abort")

    there = SimpleNamespace(
        group=SimpleNamespace(WORLD=SimpleNamespace(abort=fail)), destroy_process_group=fail
    )
    monkeypatch.setattr(replica_group, "distributed", there)
    connection, _ = Pipe()
    replica = SimpleNamespace(kill=lambda: None, wait=lambda: 1)
    group = ReplicaGroup([CPU, CPU])
    group._processes = [_Process(replica, connection, Failure.of(ValueError("what was first")))]
    with pytest.raises(ValueError, match="what was first"):
        group.end()
    with pytest.raises(MachineError, match="this process cannot meet other replicas again"):
        group.build(SORT, 1, Path("data"))
    assert not group.pids


def test_a_group_that_could_not_be_aborted_is_left_nevertheless(monkeypatch):
    made = ReplicatedTrainings([CPU, CPU])
    training = made(SORT, CPU, Path("data"))
    training.advance()

    def fail(_group):
        raise torch.distributed.DistBackendError("Exception thrown when waiting for ProcessGroup abort")

    with monkeypatch.context() as patch:
        patch.setattr(torch.distributed.ProcessGroup, "abort", fail)
        made.end()
    assert training.advance()  # by others
    made.end()


def test_gpus_meet_as_soon_as_they_are_there_and_not_when_they_first_add_something(monkeypatch):
    told = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: told.append(f"use {device}"))
    monkeypatch.setattr(torch, "zeros", lambda count, device: f"{count} on {device}")
    there = SimpleNamespace(
        init_process_group=lambda backend, **_others: told.append(backend), all_reduce=told.append
    )
    monkeypatch.setattr(replica_process, "distributed", there)
    monkeypatch.setattr(os, "environ", {})
    post = ReplicaPost(
        rank=1, replicas=2, device="cuda:1", threads=1, meeting="/nowhere", plugins=(), checkpoints=False
    )
    replica_process.join(post)
    assert told == ["use cuda:1", "nccl", "1 on cuda:1"]
    assert os.environ == {
        "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "2",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "0",
    }
