"""Where a plan says that trials train, on machines with a GPU of a size that is told."""

from types import SimpleNamespace

import pytest

from activemem.cli import plan_devices
from activemem.cli.machine_settings import MachineSettings
from activemem.engine.core.gpus import Gpu
from activemem.studies.planning.memory_estimates import StepMemory

STEP = StepMemory(
    tokens=40,
    sequences=32,
    uneven=False,
    weights=10**9,
    gradients=10**9,
    optimizer=2 * 10**9,
    average=0,
    activations=4 * 10**9,
)


@pytest.fixture(name="told")
def _told(monkeypatch, tmp_path):
    """What a plan of steps of eight gigabytes says of an H100, with NVIDIA's service or without."""

    def told(gpus, *, service, others=0):
        gpu = Gpu(name="NVIDIA H100", bytes=80 * 10**9, free=80 * 10**9 - others)
        monkeypatch.setattr(plan_devices, "gpu_here", lambda: (gpu, 2))
        monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
        if service:
            (tmp_path / "control").touch()
        plan = SimpleNamespace(memory=("sa", STEP))
        return plan_devices.where(plan, MachineSettings(gpus=gpus))

    return told


@pytest.mark.parametrize(
    ("service", "how"),
    [
        (True, "side by side by NVIDIA's multi-process service"),
        (False, "in turns of time: nvidia-cuda-mps-control -d has them compute side by side"),
    ],
)
def test_trials_share_a_gpu_side_by_side_or_in_turns(told, service, how):
    expected = f"this machine's GPU, NVIDIA H100: 8 such trials at once fit into 80.0 GB, {how}"
    assert told("auto", service=service) == expected


def test_a_trial_that_has_the_whole_gpu_shares_it_with_none(told):
    assert told(1, service=True).endswith("8 such trials at once fit into 80.0 GB")


def test_what_others_hold_of_a_gpu_is_no_room_for_trials(told):
    assert told("auto", service=True, others=60 * 10**9) == (
        "this machine's GPU, NVIDIA H100: 2 such trials at once fit into 20.0 GB (others hold 60.0 GB), "
        "side by side by NVIDIA's multi-process service"
    )
    assert told(2, service=True, others=60 * 10**9).endswith("fits into 20.0 GB (others hold 60.0 GB)")


def test_more_gpus_than_there_are_train_nothing(told):
    assert told(2, service=True).startswith(
        "2 of this machine's GPUs for each trial, NVIDIA H100: a step holds"
    )
    assert told(4, service=True) == "nowhere: gpus = 4, and torch finds 2 GPUs here"


def test_a_gpu_that_cuda_fails_with_trains_nothing(monkeypatch):
    monkeypatch.setattr(plan_devices, "gpu_here", lambda: None)
    monkeypatch.setattr(plan_devices, "gpu_fault", lambda: "Error 805")
    plan = SimpleNamespace(memory=("sa", STEP))
    told = "nowhere: torch finds no GPU here, as CUDA fails: Error 805"
    assert plan_devices.where(plan, MachineSettings()) == told
    assert plan_devices.where(plan, MachineSettings(gpus=0)) == "this machine's CPU, as gpus = 0"
