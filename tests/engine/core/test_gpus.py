"""Which GPUs a machine has for its trials, what is free of them, and why CUDA has none."""

import socket

import pytest
import torch

from activemem.engine.core import gpus
from activemem.engine.core.gpus import gpu_fault, has_gpu, has_multi_process_service

BEGINS = "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling"
SERVICE = "Error 805: MPS client failed to connect to the MPS control daemon or the MPS server"


@pytest.mark.parametrize("runs", [False, True])
def test_the_multi_process_service_is_found_by_the_pipe_of_its_daemon(tmp_path, monkeypatch, runs):
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    if runs:
        (tmp_path / "control").touch()
    assert has_multi_process_service() is runs


@pytest.fixture(name="fails_by")
def _fails_by(monkeypatch, tmp_path):
    """A machine with the driver of a GPU on which torch begins, or fails, as it is told."""

    def fails_by(told):
        def init():
            raise RuntimeError(told)

        monkeypatch.setattr(gpus, "_has_driver", lambda: True)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
        monkeypatch.setattr(torch.cuda, "init", init)

    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    return fails_by


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def test_a_daemon_that_has_left_its_socket_behind_gives_no_service(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", ".")
    with socket.socket(socket.AF_UNIX, kind) as daemon:
        daemon.bind("control")
        daemon.listen()
        assert has_multi_process_service()
        daemon.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            daemon.accept()  # as nobody was connected to it
    assert not has_multi_process_service()


@pytest.mark.parametrize(
    "told", ["No CUDA GPUs are available", "Found no NVIDIA driver on your system. Please check that"]
)
def test_a_machine_without_a_gpu_is_no_fault(fails_by, told):
    fails_by(told)
    assert gpu_fault() is None
    assert not has_gpu()


def test_what_cuda_fails_by_is_told_in_a_line_with_what_to_do_of_the_service(fails_by, tmp_path):
    fails_by(f"{BEGINS} NumCudaDevices() that might have already set an error?  {SERVICE}")
    where = f"the multi-process service does not answer at {tmp_path}/control"
    todo = "start it by nvidia-cuda-mps-control -d, or set CUDA_MPS_PIPE_DIRECTORY to an empty folder"
    assert gpu_fault() == f"{SERVICE}; {where}: {todo}"
    old = "The NVIDIA driver on your system is too old (found version 11040)."
    fails_by(f"{old}\nPlease update")
    assert gpu_fault() == f"{old} Please update"


def test_a_torch_that_knows_no_gpu_finds_no_fault_with_one(monkeypatch):
    monkeypatch.setattr(gpus, "_has_driver", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    assert gpu_fault() is None
