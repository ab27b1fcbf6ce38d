"""Where a plan says that trials train, on machines with a GPU of a size that is told."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from activemem.cli import plan_devices
from activemem.cli.machine_settings import MachineSettings
from activemem.engine.core.gpus import Gpu
from activemem.engine.core.resources import Machine
from activemem.engine.run.gpu_share import Accelerators, share
from activemem.studies.planning.memory_estimates import MemoryEstimator, StepMemory
from activemem.studies.text.units import plural

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
    """What a plan of steps of eight gigabytes says of H100s and CPUs, with NVIDIA's service or without."""

    def told(gpus, *, service, others=0, count=1, cpus=64, address=None, size=80 * 10**9):
        gpu = Gpu(name="NVIDIA H100", bytes=size, free=size - others)
        monkeypatch.setattr(plan_devices, "gpu_here", lambda: (gpu, count))
        monkeypatch.setattr(plan_devices, "cpus_here", lambda: cpus)
        monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
        if service:
            (tmp_path / "control").touch()
        plan = SimpleNamespace(memory=("sa", STEP))
        return plan_devices.where(plan, MachineSettings(gpus=gpus, cpus=2, address=address))

    return told


@pytest.mark.parametrize(
    ("service", "how"),
    [
        (True, "side by side by NVIDIA's multi-process service; with --local one"),
        (
            False,
            "in turns of time: nvidia-cuda-mps-control -d has them compute side by side; with --local one",
        ),
    ],
)
def test_trials_share_a_gpu_side_by_side_or_in_turns(told, service, how):
    expected = f"this machine's GPU, NVIDIA H100: 8 such trials at once, as many as fit into 80.0 GB, {how}"
    assert told("auto", service=service) == expected


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            ("auto", {"cpus": 6}),
            "GPU, NVIDIA H100: 3 such trials at once, as many as there are CPUs for; 8 fit",
        ),
        (
            ("auto", {"cpus": 12, "count": 2}),
            "2 GPUs, NVIDIA H100: 3 such trials at once on each, as many as there are CPUs for; 8 fit",
        ),
        (
            ("auto", {"cpus": 192, "size": 800 * 10**9}),
            "H100: 48 such trials at once, as many as NVIDIA's service takes; 83 fit into 800.0 GB",
        ),
        ((0.25, {}), "GPU, NVIDIA H100: 4 such trials at once, as gpus = 0.25; 8 fit into 80.0 GB"),
        (
            (0.25, {"cpus": 4}),
            "GPU, NVIDIA H100: 2 such trials at once, as many as there are CPUs for; 8 fit",
        ),
        (
            ("auto", {"cpus": 3, "count": 2}),
            "2 GPUs, NVIDIA H100: 1 such trial at once on one of them, as there are CPUs for no more; 8 fit",
        ),
        (
            (0.25, {"cpus": 7, "count": 4}),
            "4 GPUs, NVIDIA H100: 1 such trial at once on 3 of them, as there are CPUs for no more; 8 fit",
        ),
        (("auto", {"cpus": 1}), "H100: not one such trial, as cpus = 2 and 1 CPU is here; with --local one"),
        ((0.25, {"others": 62 * 10**9}), "4 such trials at once, as gpus = 0.25; 1 fits into 18.0 GB"),
        (
            ("auto", {"others": 72 * 10**9}),
            "not one such trial fits into 8.0 GB, but one with its batches in 2 parts (others hold 72.0 GB)",
        ),
        (("auto", {"others": 75 * 10**9}), "not one such trial fits into 5.0 GB (others hold 75.0 GB)"),
    ],
)
def test_what_keeps_more_trials_from_a_gpu_is_memory_or_cpus_or_the_service_or_the_setting(told, asked, says):
    gpus, machine = asked
    assert says in told(gpus, service=True, **machine)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("cpus", [4, 10, 192])
@pytest.mark.parametrize("size", [20, 80, 800])
def test_as_many_trials_stand_on_a_gpu_as_the_run_gives_shares_of_it(told, monkeypatch, cpus, size, count):
    monkeypatch.setattr(MemoryEstimator, "step", lambda *_: STEP)
    node = Accelerators(count=count, device_bytes=size * 10**9, cpus=cpus)
    trials = round(1 / share(Machine(cpus=2), [node], [None]))
    says = told("auto", service=True, cpus=cpus, size=size * 10**9, count=count)
    assert f": {plural(trials, 'such trial')} at once" in says


def test_a_trial_that_fits_without_recordings_alone_is_told_apart():
    held = replace(STEP, recordings=4 * 10**9)
    told = plan_devices.room(held, 12 * 10**9, MachineSettings())
    assert told == "not one such trial fits into 12.0 GB, but one without its steps recorded"


def test_a_trial_that_has_the_whole_gpu_shares_it_with_none(told):
    assert told(1, service=True).endswith("1 such trial at once, as gpus = 1; 8 fit into 80.0 GB")
    assert told("auto", service=True, address="elsewhere:1").endswith(
        "; with --local, this machine's GPU, NVIDIA H100, for one trial at a time"
    )


def test_what_others_hold_of_a_gpu_is_no_room_for_trials(told):
    assert told("auto", service=True, others=60 * 10**9) == (
        "this machine's GPU, NVIDIA H100: 2 such trials at once, as many as fit into 20.0 GB (others hold "
        "60.0 GB), side by side by NVIDIA's multi-process service; with --local one"
    )
    assert told(2, service=True, others=60 * 10**9, count=2).endswith(
        "fits into 20.0 GB (others hold 60.0 GB)"
    )


def test_more_gpus_than_there_are_train_nothing(told):
    assert told(2, service=True, count=2).startswith(
        "2 of this machine's GPUs for each trial, NVIDIA H100: a step holds"
    )
    assert told(4, service=True, count=2) == "nowhere: gpus = 4, and torch finds 2 GPUs here"


def test_a_gpu_that_cuda_fails_with_trains_nothing(monkeypatch):
    monkeypatch.setattr(plan_devices, "gpu_here", lambda: None)
    monkeypatch.setattr(plan_devices, "gpu_fault", lambda: "Error 805")
    plan = SimpleNamespace(memory=("sa", STEP))
    told = "nowhere: torch finds no GPU here, as CUDA fails: Error 805"
    assert plan_devices.where(plan, MachineSettings()) == told
    assert plan_devices.where(plan, MachineSettings(gpus=0)) == "this machine's CPU, as gpus = 0"
