"""Machine failures: CUDA's messages about unusable GPUs fail no trial."""

from types import SimpleNamespace

import pytest
import torch

from activemem.engine.trial import failures, lost_gpu, machine_failure, note_lost_gpu


@pytest.mark.parametrize(
    "told",
    [
        "CUDA-capable device(s) is/are busy or unavailable",
        "no kernel image is available for execution on the device",
        "system not yet initialized",
        "MPS client failed to connect to the MPS control daemon or the MPS server",
        "MPS server is not ready to accept new MPS client requests",
        "the remote procedural call between the MPS server and the MPS client failed",
        "the hardware resources required to create MPS client have been exhausted",
        "the hardware resources required to support device connections have been exhausted",
        "the MPS client has been terminated by the server",
        "uncorrectable ECC error encountered",
        "uncorrectable NVLink error detected during the execution",
        "Invalid access of peer GPU memory over nvlink or a hardware error",
        "system has unsupported display driver / cuda driver combination",
        "forward compatibility was attempted on non supported HW",
        "initialization error",
        "unknown error",
    ],
)
def test_a_gpu_that_nobody_can_use_is_the_machine_s_failure(told):
    error = torch.AcceleratorError(f"CUDA error: {told}\nmore of it")
    assert machine_failure(error) == f"a GPU is missing: CUDA error: {told}"


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


@pytest.mark.parametrize(
    "told",
    [
        "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
        "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')",
        "Cannot find a working triton installation. Either the package is not installed or it is too old.",
        "Found Tesla P100 which is too old to be supported by the triton GPU compiler, which is used.",
    ],
)
def test_a_missing_compiler_fails_no_trial(told):
    assert machine_failure(RuntimeError(f"backend='inductor' raised:\n{told}\n\nSet more")) == (
        f"a compiler is missing: {told}"
    )


def test_a_request_that_a_gpu_cannot_meet_is_the_trials_own_failure():
    for told in ("CUDA error: invalid configuration argument", "CUDA out of memory."):
        assert machine_failure(RuntimeError(told)) is None


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
        lost = f"this process cannot use its GPU after the failure of a kernel: CUDA error: {said}"
        assert lost_gpu() == lost
        later = RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm")
        assert machine_failure(later) == lost  # of another trial
        assert machine_failure(ValueError("its own")) is None
