"""Local runs whose trials take their steps on several devices; on a CPU each stands in for a GPU."""

import os
import signal
import socket
from types import SimpleNamespace

import pytest
import torch
from torch import distributed

from activemem.engine.core.events import Ended
from activemem.engine.core.resources import Machine
from activemem.engine.replicas.training_factory import ReplicatedTrainings
from activemem.engine.run import cohorts, driver
from activemem.engine.run.driver import run_study
from activemem.engine.trial.last_words import MAX_WORKER_DEATHS
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.study import load_study


@pytest.fixture
def made(monkeypatch):
    """What makes the trainings of each run; its devices are two CPUs."""
    found = []

    def make(devices, _bytes, **others):
        found.append(ReplicatedTrainings([torch.device("cpu")] * len(devices), **others))
        return found[-1]

    monkeypatch.setattr(cohorts, "ReplicatedTrainings", make)
    monkeypatch.setattr(Machine, "device", "cpu")
    monkeypatch.setattr(driver, "check_gpu", lambda _: None)
    return found


@pytest.mark.heavy
def test_the_replicas_of_a_run_end_with_it_so_that_the_next_run_of_the_process_has_its_own(
    tmp_path, tiny, notes, made
):
    study, store = load_study(tiny, ["train.epochs=1"]), Store(tmp_path / "results")
    for _ in range(2):
        run_study(study, store, Machine(gpus=2.0), notes, local=True, max_trials=1)
        assert not distributed.is_initialized()
    assert [event.status for event in notes.of(Ended)] == ["done"] * 2
    assert [each.group.pids for each in made] == [()] * 2
    assert len(made) == 2


@pytest.mark.heavy
def test_a_trial_whose_replicas_die_has_failed_and_the_others_run(tmp_path, tiny, made, monkeypatch):
    """As they do where the system takes memory back: it takes replicas first."""
    take_steps, deadly = Training._take_steps, []

    def die(training, between_steps, **others):
        deadly.append(training.settings)
        if training.settings == deadly[0]:
            for each in made[0].group.pids:
                os.kill(each, signal.SIGKILL)
        take_steps(training, between_steps, **others)

    monkeypatch.setattr(Training, "_take_steps", die)
    study, store = load_study(tiny, ["train.epochs=1"]), Store(tmp_path / "results")
    run_study(study, store, Machine(gpus=2.0), local=True, max_trials=2)
    failed, done = store.trials().sort("status", descending=True).to_dicts()
    assert (failed["status"], done["status"], len(deadly)) == ("failed", "done", MAX_WORKER_DEATHS + 1)
    died = f"replica 1 on {socket.gethostname()} has ended: signal 9 (Killed)"
    told = f"the worker died {MAX_WORKER_DEATHS} times at epoch 1, the last time by: {died}"
    assert failed["reason"].splitlines()[0] == told


@pytest.mark.heavy
def test_the_memory_of_replicas_counts_for_the_limit_of_their_worker(tmp_path, tiny, made):
    watched = []
    guard = SimpleNamespace(watch=watched.append)
    worker = cohorts.Worker(Store(tmp_path / "results"), Machine(gpus=2.0), guard=guard)
    made[0].group.build(load_study(tiny).trials[0].settings, 1, tmp_path)
    assert watched == [made[0].group.pids]
    worker.end()
    assert watched[1:] == [()]
