"""What a plan counts of this machine: steps are recorded where a GPU trains."""

from types import SimpleNamespace

import pytest

from activemem.cli.machine_settings import MachineSettings
from activemem.cli.plan_costs import plan_here
from activemem.engine.core import gpus
from activemem.storage import Store
from activemem.studies.study import load_study

from ..study_texts import study_text


@pytest.mark.parametrize(
    ("gpu_is_here", "settings", "for_gpu", "is_recorded"),
    [
        (True, {"graphs": True}, False, True),
        (True, {"graphs": False}, False, False),
        (True, {"graphs": True, "gpus": 0}, False, False),
        (False, {"graphs": True}, False, False),
        (False, {"graphs": True, "gpus": 1}, False, True),
        (False, {"graphs": True}, True, True),
        (False, {"graphs": True, "address": "auto"}, False, True),
    ],
    ids=["gpu", "not asked for", "gpus = 0", "no gpu", "gpus = 1", "device memory", "cluster"],
)
def test_recordings_are_counted_where_a_gpu_trains(
    tmp_path, monkeypatch, gpu_is_here, settings, for_gpu, is_recorded
):
    monkeypatch.setattr(gpus, "has_gpu", lambda: gpu_is_here)
    study = load_study(
        study_text(model={"recipe": "ff(512)"}, task={"name": "reverse"}, factors={"seed": [0]})
    )
    here = SimpleNamespace(values=MachineSettings(**settings), store=Store(tmp_path), data=tmp_path)
    held = plan_here(study, here, for_gpu=for_gpu).memory[1]
    assert (held.recordings > 0) == is_recorded
