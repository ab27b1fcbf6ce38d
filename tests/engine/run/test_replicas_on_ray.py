"""On Ray a trial takes its steps with replicas that its worker starts, and that end with it."""

import os

import psutil
import pytest
import torch

from activemem.engine.core.events import Ended, Listener
from activemem.engine.core.resources import Machine
from activemem.engine.replicas.training_factory import ReplicatedTrainings
from activemem.engine.run.cohort_sources import GridCohorts
from activemem.engine.run.interrupts import Stop
from activemem.engine.run.ray_cluster import run_cohorts
from activemem.engine.trial.outcome import Job
from activemem.storage import Store
from activemem.studies.study import load_study

from ...conftest import SESSION_VARIABLE
from ...waiting import wait_for

CPU = torch.device("cpu")


class Counts(Listener):
    """A listener that counts, with each event, the replicas that there are."""

    def __init__(self):
        self.found = []

    def on_event(self, event):
        self.found.append((event, len(replicas())))


def replicas():
    """The processes of replicas that these tests have started."""
    return [each for each in psutil.process_iter() if is_replica_of_these_tests(each)]


def is_replica_of_these_tests(process):
    try:
        is_replica = any("replica_process" in word for word in process.cmdline())
        return is_replica and process.environ().get(SESSION_VARIABLE) == os.environ[SESSION_VARIABLE]
    except psutil.Error:  # it has ended meanwhile, or is another user's
        return False


@pytest.mark.heavy  # a cluster of its own
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Ray 2.50 leaves files open
def test_a_worker_of_ray_takes_steps_with_replicas_that_end_with_it(tmp_path, tiny):
    study, store = load_study(tiny, ["train.epochs=1"]), Store(tmp_path / "results")
    jobs = [Job(trial=trial, attempt=0, run="run") for trial in study.trials[:2]]
    make, counts = ReplicatedTrainings([CPU, CPU]), Counts()
    assert run_cohorts(GridCohorts(jobs), store, Machine(gpus=0.0), counts, Stop(), make_training=make) == []
    assert [event.status for event, _ in counts.found if isinstance(event, Ended)] == ["done"] * 2
    assert all(device.startswith("2 × ") for device in store.trials()["device"])
    assert max(count for _, count in counts.found) >= 1
    wait_for(lambda: not replicas())
