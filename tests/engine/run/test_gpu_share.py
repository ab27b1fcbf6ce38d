"""The training device with `gpus = "auto"`, and the number of trials that share a GPU."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import ray
import torch

from activemem import load_study, run_study
from activemem.engine import Machine
from activemem.engine.core import resources
from activemem.engine.core.events import NOBODY
from activemem.engine.core.resources import (
    Gpu,
    ResourceError,
    count_gpus,
    count_gpus_of_processes,
    cpus_here,
    has_gpu,
)
from activemem.engine.core.run import Run
from activemem.engine.run import driver, ray_cluster, ray_connection
from activemem.engine.run.ray_actor import share_cores
from activemem.engine.run.ray_cluster import fit_here
from activemem.engine.run.ray_connection import connected
from activemem.engine.trial import failures, outcome
from activemem.engine.trial.failures import MachineError, check_gpu
from activemem.storage import Store
from activemem.studies.planning.memory_estimates import GPU_CONTEXT, step_memory, trials_that_fit

from .ray_nodes import ENVIRONMENT, head, worker

NO_GPU = pytest.mark.skipif(has_gpu(), reason="needs a machine without a GPU")


@pytest.fixture
def settings(tiny):
    return [trial.settings for trial in load_study(tiny).trials]


@pytest.mark.parametrize(("found", "gpus"), [(True, 1.0), (False, 0.0)])
def test_by_default_a_trial_has_a_whole_gpu_if_there_is_one(monkeypatch, found, gpus):
    monkeypatch.setattr(ray_cluster, "has_gpu", lambda: found)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0, "GPU": 1.0})
    assert fit_here(Machine()) == Machine(gpus=gpus)


def test_trials_leave_a_tenth_of_a_device_free(settings):
    held = step_memory(settings[0])
    assert trials_that_fit(held, 80 * 10**9) == int(72 * 10**9 / (held.total + GPU_CONTEXT))
    assert trials_that_fit(held, 0) == 0


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
    assert [each.bytes for each in resources.find_gpus()] == [10 * 2**30]
    assert (count_gpus(), count_gpus_of_processes()) == (1, 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b,MIG-c")  # one for each worker
    assert (count_gpus(), count_gpus_of_processes()) == (1, 3)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert (resources.find_gpus(), count_gpus_of_processes()) == ([], 0)


@pytest.mark.parametrize(("gpus", "told"), [(0.25, "thread, a share of 0.25"), (1.0, "thread")])
def test_a_row_has_the_share_of_a_gpu_that_its_trial_had(tmp_path, tiny, monkeypatch, gpus, told):
    monkeypatch.setattr(Machine, "device", "cpu")  # which stands in for it
    monkeypatch.setattr(driver, "check_gpu", lambda _: None)
    store = Store(tmp_path / "results")
    run_study(load_study(tiny, ["train.epochs=1"]), store, Machine(gpus=gpus), local=True, max_trials=1)
    (row,) = store.trials().select("device", "gpus").iter_rows(named=True)
    assert row["device"].endswith(told)
    assert row["gpus"] == 0.0  # a processor, whatever the text says


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("gpus", [0.25, 1.0, "auto", 0])
def test_a_row_of_a_gpu_has_its_share_as_a_number(tmp_path, tiny, gpus):
    store = Store(tmp_path / "results")
    run_study(load_study(tiny, ["train.epochs=1"]), store, Machine(gpus=gpus), local=True, max_trials=1)
    assert store.trials()["gpus"].to_list() == [1.0 if gpus == "auto" else gpus]


def test_the_share_of_a_gpu_comes_into_the_run_as_a_number(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "8 × X, a share of 0.5")
    monkeypatch.setattr(outcome, "peak_mib", lambda _: 1.0)
    training = SimpleNamespace(parameters=1, epoch=1, step=1, work=SimpleNamespace(flops=1.0, seconds=1.0))
    found = [
        outcome.measured(Run(), training, torch.device(device), gpu_share=0.25, device_suffix="")
        for device in ("cuda", "cpu")
    ]
    assert [each.gpus for each in found] == [0.25, 0.0]


def test_the_smallest_gpu_decides_what_fits(monkeypatch):
    sizes = {"NVIDIA H100": 80 * 10**9, "NVIDIA L4": 24 * 10**9}
    found = [SimpleNamespace(name=name, total_memory=size) for name, size in sizes.items()]
    monkeypatch.setattr(resources, "has_gpu", lambda: True)
    monkeypatch.setattr(resources, "count_gpus", lambda: len(found))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found[device])
    assert resources.gpu_here() == (Gpu(name="NVIDIA L4", bytes=24 * 10**9), 2)


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
    monkeypatch.setattr(ray_connection, "count_gpus_of_processes", lambda: 3)
    with connected(Machine(), NOBODY):
        assert ray.cluster_resources()["GPU"] == 3
        assert ray.cluster_resources()["CPU"] == cpus_here()


@pytest.mark.parametrize(
    ("files", "allowed"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
    ],
)
def test_a_machine_has_the_cpus_that_its_process_may_use_and_its_container_has(
    tmp_path, monkeypatch, files, allowed
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(6)), raising=False)
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    assert cpus_here(tmp_path) == (allowed or 6)


@NO_GPU
def test_without_a_gpu_trials_train_on_the_cpu():
    assert Machine().device == "cpu"


@pytest.mark.parametrize("gpus", [1.5, 8.0, -1.0])
def test_a_trial_has_at_most_one_gpu(gpus, golden):
    with golden.raises(ResourceError):
        Machine(gpus=gpus)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@pytest.mark.parametrize("address", [None, "elsewhere:6379"])
def test_a_missing_gpu_is_reported_before_anything_is_stored(tmp_path, tiny, address, golden):
    store = Store(tmp_path / "results")
    with golden.raises(MachineError):
        run_study(load_study(tiny), store, Machine(gpus=1.0, address=address), local=True)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("gpus", "asked", "remedy"),
    [("auto", "a GPU", "set gpus = 0"), (0.5, "0.5 ", "")],
)
def test_a_gpu_that_cuda_fails_with_is_reported_before_trials_train_on_the_cpu(
    tmp_path, tiny, monkeypatch, gpus, asked, remedy
):
    monkeypatch.setattr(failures, "gpu_fault", lambda: "Error 805")
    store = Store(tmp_path / "results")
    with pytest.raises(MachineError) as refused:
        run_study(load_study(tiny), store, Machine(gpus=gpus), local=True)
    assert re.fullmatch(f"gpus: expected {asked}.* CUDA fails: Error 805.*{remedy}", str(refused.value))
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
    assert "but torch finds none" in found.stderr
    assert asked.returncode == 0, asked.stderr
