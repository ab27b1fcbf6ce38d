"""The GPUs of a machine, and reasons why CUDA fails."""

import pytest
import torch

from activemem.engine.core import resources
from activemem.engine.core.resources import gpu_fault, has_gpu

BEGINS = "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling"
SERVICE = "Error 805: MPS client failed to connect to the MPS control daemon or the MPS server"


@pytest.fixture(name="fails_by")
def _fails_by(monkeypatch):
    """Simulate a machine with a GPU driver on which torch works or fails."""

    def fails_by(told):
        def init():
            raise RuntimeError(told)

        monkeypatch.setattr(resources, "_has_driver", lambda: True)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
        monkeypatch.setattr(torch.cuda, "init", init)

    return fails_by


@pytest.mark.parametrize(
    "told", ["No CUDA GPUs are available", "Found no NVIDIA driver on your system. Please check that"]
)
def test_a_machine_without_a_gpu_is_no_fault(fails_by, told):
    fails_by(told)
    assert gpu_fault() is None
    assert not has_gpu()


def test_a_failure_of_cuda_is_reported_in_a_line(fails_by):
    fails_by(f"{BEGINS} NumCudaDevices() that might have already set an error?  {SERVICE}")
    assert gpu_fault() == SERVICE
    old = "The NVIDIA driver on your system is too old (found version 11040)."
    fails_by(f"{old}\nPlease update")
    assert gpu_fault() == f"{old} Please update"


def test_a_torch_that_knows_no_gpu_finds_no_fault_with_one(monkeypatch):
    monkeypatch.setattr(resources, "_has_driver", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    assert gpu_fault() is None
