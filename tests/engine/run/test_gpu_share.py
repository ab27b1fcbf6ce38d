"""Which device trains where `gpus = "auto"`, and how many trials share one."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import ray
import torch

from activemem.engine.core import resources
from activemem.engine.core.resources import (
    Machine,
    ResourceError,
    count_gpus,
    count_gpus_of_processes,
    has_gpu,
)
from activemem.engine.run import driver, preflight, ray_cluster
from activemem.engine.run.driver import run_study
from activemem.engine.run.gpu_share import Accelerators, device_bytes, fraction, resolve_here, share
from activemem.engine.run.preflight import check_gpu
from activemem.engine.run.ray_actor import share_cores
from activemem.engine.run.ray_cluster import _cluster, _gpus_to_hand_out
from activemem.engine.trial.machine_failures import MachineError
from activemem.storage import Store
from activemem.studies.planning.memory_estimates import GPU_CONTEXT, step_memory, trials_on_device
from activemem.studies.study import load_study

from .ray_nodes import ENVIRONMENT, head, worker

NO_GPU = pytest.mark.skipif(has_gpu(), reason="needs a machine without a GPU")


@pytest.fixture
def settings(tiny):
    return [trial.settings for trial in load_study(tiny).trials]


def test_as_many_trials_share_a_gpu_as_its_memory_and_the_cpus_beside_it_have_room_for(settings):
    largest = max(step_memory(each).total for each in settings)
    room_for_three = int(3.5 * (largest + GPU_CONTEXT) / 0.9)
    node = Accelerators(count=1, device_bytes=room_for_three, cpus=16)
    assert share(Machine(cpus=1.0), [node], settings) == fraction(3) == 0.3333
    assert share(Machine(cpus=8.0), [node], settings) == 0.5  # two trials have the CPUs
    four = Accelerators(count=4, device_bytes=room_for_three, cpus=8)
    assert share(Machine(cpus=1.0), [node, four], settings) == 0.5  # the smaller of the two
    many = Accelerators(count=1, device_bytes=10**12, cpus=256)
    assert share(Machine(cpus=1.0), [many], settings) == fraction(48)  # no more have NVIDIA's service
    small = Accelerators(count=1, device_bytes=2**20, cpus=16)
    assert share(Machine(cpus=1.0), [small], settings) == 1.0  # it may fit nevertheless: the trial will tell


def test_what_fits_on_a_device_leaves_a_tenth_of_it_free(settings):
    held = step_memory(settings[0])
    assert trials_on_device(held, 80 * 10**9) == int(72 * 10**9 / (held.total + GPU_CONTEXT))
    assert trials_on_device(held, 0) == 0


def test_gpus_that_are_split_are_those_that_cuda_gives_to_a_process(monkeypatch):
    def properties(device):
        if device:
            raise RuntimeError(f"device={device}, num_gpus=1")
        return SimpleNamespace(name="NVIDIA A100 MIG 1g.10gb", total_memory=10 * 2**30)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)  # of the machine, as the driver counts them
    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", lambda: 1, raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    assert (device_bytes(), count_gpus(), count_gpus_of_processes()) == (10 * 2**30, 1, 1)
    with pytest.raises(MachineError, match="gpus: expected 2 for each trial, torch finds 1 here"):
        check_gpu(Machine(gpus=2.0))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b,MIG-c")  # one for each worker
    assert (count_gpus(), count_gpus_of_processes()) == (1, 3)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert (device_bytes(), count_gpus_of_processes()) == (0, 0)


@pytest.mark.parametrize(("gpus", "told"), [(0.25, "thread, a share of 0.25"), (1.0, "thread")])
def test_a_row_tells_which_share_of_a_gpu_its_trial_had(tmp_path, tiny, monkeypatch, gpus, told):
    monkeypatch.setattr(Machine, "device", "cpu")  # which stands in for it
    monkeypatch.setattr(driver, "check_gpu", lambda _: None)
    store = Store(tmp_path / "results")
    run_study(load_study(tiny, ["train.epochs=1"]), store, Machine(gpus=gpus), local=True, max_trials=1)
    (device,) = store.trials()["device"]
    assert device.endswith(told)


def test_a_plan_tells_of_the_smallest_gpu_by_which_a_run_goes(monkeypatch):
    sizes = {"NVIDIA H100": 80 * 10**9, "NVIDIA L4": 24 * 10**9}
    found = [SimpleNamespace(name=name, total_memory=size) for name, size in sizes.items()]
    monkeypatch.setattr(resources, "has_gpu", lambda: True)
    monkeypatch.setattr(resources, "count_gpus", lambda: len(found))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found[device])
    assert resources.gpu_here() == ("NVIDIA L4", 24 * 10**9, 2)


def test_workers_that_share_a_machine_compile_by_the_cores_of_their_trials(monkeypatch):
    monkeypatch.setattr(os, "environ", {})
    share_cores(Machine(gpus=1.0))
    assert not os.environ
    share_cores(Machine(gpus=0.25, cpus=2.0))
    assert os.environ == {"TORCHINDUCTOR_COMPILE_THREADS": "2"}
    share_cores(Machine(gpus=0.0))
    assert os.environ == {"TORCHINDUCTOR_COMPILE_THREADS": "2"}  # what was there stays


@pytest.mark.slow  # Ray begins
def test_a_cluster_of_this_machine_has_the_gpus_that_torch_has(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(ray_cluster, "count_gpus_of_processes", lambda: 3)
    with _cluster(Machine()):
        assert ray.cluster_resources()["GPU"] == 3
    assert [_gpus_to_hand_out(each) for each in (Machine(gpus=0.0), Machine(address="elsewhere:1"))] == [
        0,
        None,
    ]


@NO_GPU
def test_without_a_gpu_trials_train_on_the_cpu(settings):
    assert Machine().device == "cpu"
    assert resolve_here(Machine(), settings, local=True, cpus=2) == Machine(gpus=0.0)


def test_a_trial_has_a_share_of_one_device_or_whole_ones():
    assert [Machine(gpus=gpus).devices for gpus in (0.0, 0.25, 1.0, 8.0, "auto")] == [1, 1, 1, 8, 1]
    with pytest.raises(ResourceError, match=r"or a whole number of GPUs, got 1\.5"):
        Machine(gpus=1.5)
    with pytest.raises(ResourceError, match="pack: expected off with gpus = 8 for each trial"):
        Machine(gpus=8.0, pack="auto")
    with pytest.raises(ResourceError, match="graphs: expected false with gpus = 8 for each trial, whose"):
        Machine(graphs=True, gpus=8.0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@pytest.mark.parametrize("address", [None, "elsewhere:6379"])
def test_a_gpu_that_is_not_there_is_told_before_anything_is_stored(tmp_path, tiny, address):
    store = Store(tmp_path / "results")
    with pytest.raises(MachineError, match="gpus: expected 1 for each trial, torch finds none here"):
        run_study(load_study(tiny), store, Machine(gpus=1.0, address=address), local=True)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("gpus", "asked"), [("auto", "one, or gpus = 0 to train on CPUs"), (0.5, "0.5 for each trial")]
)
def test_a_gpu_that_cuda_fails_with_is_told_before_trials_train_on_the_cpu(
    tmp_path, tiny, monkeypatch, gpus, asked
):
    monkeypatch.setattr(preflight, "gpu_fault", lambda: "Error 805")
    store = Store(tmp_path / "results")
    with pytest.raises(MachineError) as refused:
        run_study(load_study(tiny), store, Machine(gpus=gpus), local=True)
    told = f"gpus: expected {asked}, torch finds none here, as CUDA fails: Error 805"
    assert str(refused.value) == told
    assert not (tmp_path / "results").exists()
    check_gpu(Machine(gpus=0.0))


@pytest.mark.slow  # two programs with Ray
@NO_GPU
def test_a_node_on_which_torch_finds_no_gpu_is_named_and_no_trial_trains_slowly_on_it(tmp_path, tiny):
    (tmp_path / "tiny.toml").write_text(tiny, encoding="utf-8")
    with head() as address, worker(address, 2, gpus=1):
        command = [sys.executable, "-m", "activemem", "study", "run", "tiny.toml", "--address", address]
        run = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
        found = subprocess.run(command, env=ENVIRONMENT, **run)
        asked = subprocess.run(command, env=ENVIRONMENT | {"ACTIVEMEM_GPUS": "0"}, **run)
    assert found.returncode == 2
    assert "expected a GPU, as Ray says that it has, torch finds none there" in found.stderr
    assert asked.returncode == 0, asked.stderr
