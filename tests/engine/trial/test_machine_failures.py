"""Machine failures: CUDA's messages about unusable GPUs fail no trial."""

from types import SimpleNamespace

import pytest
import torch

from activemem.engine.trial import failures
from activemem.engine.trial.failures import lost_gpu, machine_failure, note_lost_gpu


@pytest.mark.parametrize(
    "told",
    [
        "CUDA-capable device(s) is/are busy or unavailable",
        "uncorrectable ECC error encountered",
        "an illegal memory access was encountered",
        "invalid configuration argument",
    ],
)
def test_a_gpu_that_fails_is_the_machine_s_failure(told):
    error = torch.AcceleratorError(f"CUDA error: {told}\nmore of it")
    assert machine_failure(error) == f"the GPU fails: CUDA error: {told}"


@pytest.mark.parametrize(
    "told",
    [
        "cuDNN error: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED",
        "cuDNN version incompatibility: PyTorch was compiled against (9, 13, 0) but found (9, 1, 0).",
        "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver.",
        "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing a variable",
        "Unexpected error from cudaGetDeviceCount(). Did you run some before? Error 2: out of memory",
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA there, 'spawn' it",
    ],
)
def test_a_driver_that_does_not_begin_is_the_machine_s_failure(told):
    assert machine_failure(RuntimeError(told)) == f"a GPU is missing: {told}"


def test_an_assert_of_a_kernel_and_a_lack_of_memory_are_the_trials_own_failures():
    assert machine_failure(torch.AcceleratorError("CUDA error: device-side assert triggered\nmore")) is None
    assert machine_failure(torch.OutOfMemoryError("CUDA out of memory.")) is None
    assert machine_failure(torch.AcceleratorError("CUDA error: out of memory\nmore of it")) is None


@pytest.mark.parametrize("said", ["an illegal memory access was encountered", None])
def test_a_gpu_is_asked_where_a_library_says_that_something_failed(said, monkeypatch):
    def query():
        if said is not None:
            raise torch.AcceleratorError(f"CUDA error: {said}\nmore of it")

    monkeypatch.setattr(failures, "_lost", [])
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(query=query))
    note_lost_gpu(RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"))
    if said is None:
        assert lost_gpu() is None
    else:
        lost = f"this process cannot use its GPU any more: CUDA error: {said}"
        assert lost_gpu() == lost
        later = RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm")
        assert machine_failure(later) == lost  # of another trial
        assert machine_failure(ValueError("its own")) is None
