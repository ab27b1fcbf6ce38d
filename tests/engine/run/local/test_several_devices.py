"""Local runs whose trials take their steps on several devices; on a CPU each stands in for a GPU."""

import pytest
import torch
from torch import distributed

from activemem.engine.core.events import Ended
from activemem.engine.core.resources import Machine
from activemem.engine.replicas.training_factory import ReplicatedTrainings
from activemem.engine.run import cohorts, driver
from activemem.engine.run.driver import run_study
from activemem.storage import Store
from activemem.studies.study import load_study


@pytest.mark.heavy
def test_the_replicas_of_a_run_end_with_it_so_that_the_next_run_of_the_process_has_its_own(
    tmp_path, tiny, notes, monkeypatch
):
    made = []

    def make(devices, _bytes, **others):
        made.append(ReplicatedTrainings([torch.device("cpu")] * len(devices), **others))
        return made[-1]

    monkeypatch.setattr(cohorts, "ReplicatedTrainings", make)
    monkeypatch.setattr(Machine, "device", "cpu")
    monkeypatch.setattr(driver, "check_gpu", lambda _: None)
    study, store = load_study(tiny, ["train.epochs=1"]), Store(tmp_path / "results")
    for _ in range(2):
        run_study(study, store, Machine(gpus=2.0), notes, local=True, max_trials=1)
        assert not distributed.is_initialized()
    assert [event.status for event in notes.of(Ended)] == ["done"] * 2
    assert [each.group.pids for each in made] == [()] * 2
    assert len(made) == 2
