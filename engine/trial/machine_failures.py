"""Machine failures, which are not a trial's fault: nothing is stored of the trial, and the study stops."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ...errors import ActivememError
from ..core.gpus import gpu_fault
from ..core.resources import Machine
from ..corpora.files import DataError
from ..optimisers.compiled_body import NO_COMPILER, CompileModeError
from .precision import PrecisionError

_ERRNOS = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ESTALE,
        errno.ENODEV,
    }
)
"""Error numbers of full, read-only, broken and vanished disks, and of exhausted file tables."""

_NO_GPU = (
    "Torch not compiled with CUDA enabled",
    "No CUDA GPUs are available",
    "Found no NVIDIA driver",
    "Cannot re-initialize CUDA in forked subprocess",
    "no CUDA-capable device is detected",
    "CUDA driver version is insufficient",
    "invalid device ordinal",
    "CUDA driver initialization failed",
    "uncorrectable ECC error",
    "CUDA-capable device(s) is/are busy or unavailable",
    "no kernel image is available",
    "system not yet initialized",
    "MPS client",
    "MPS server",
    "required to support device connections have been exhausted",
    "NVIDIA driver on your system is too old",
    "CUDA unknown error",
    "Unexpected error from cudaGetDeviceCount",
    "unsupported display driver",
    "forward compatibility was attempted",
    "CUDA error: unknown error",
    "CUDA error: initialization error",
    "uncorrectable NVLink error",
    "memory over nvlink or a hardware error",
    "CUDNN_STATUS_SUBLIBRARY_",  # a part of cuDNN cannot be loaded, or is of another version
    "cuDNN version incompatibility",
)
"""Messages of torch if a GPU is missing, broken, in use, or not supported by torch or its driver.

The multi-process service (MPS) limits the number of its processes, and they all end with it. An unknown error
comes from the driver or the device, for example one that has fallen off its bus. A process also cannot use a
GPU if it was forked from a process that has used it.
"""

_LOST_GPU = (
    "device-side assert triggered",
    "an illegal memory access was encountered",
    "an illegal instruction was encountered",
    "misaligned address",
    "unspecified launch failure",
    "the launch timed out and was terminated",
    "hardware stack error",
    "invalid program counter",
    "operation not supported on global/shared address space",
)
"""Messages of CUDA after a kernel has failed; from then on every CUDA call of this process raises them."""

_lost: list[str] = []


class MachineError(ActivememError):
    """A machine cannot train: a disk is full, a GPU or a module is missing. The message is one line."""


class HeadLostError(MachineError):
    """The head of a Ray cluster is gone. Ray ends this process half a minute later, or when it exits."""


def check_gpu(machine: Machine) -> None:
    """Raise MachineError if trials need a GPU but this machine has none.

    With "auto", raise it if there is a GPU but CUDA fails: on a CPU training would take days.
    """
    gpus = machine.gpus
    if gpus and machine.address is None and (fault := gpu_fault()) is not None:
        asked = "one, or gpus = 0 to compute on CPUs" if gpus == "auto" else f"{gpus:g} for each trial"
        raise MachineError(f"gpus: expected {asked}, torch finds none here, as CUDA fails: {fault}")
    if gpus != "auto" and gpus and machine.address is None and not torch.cuda.is_available():
        raise MachineError(f"gpus: expected {gpus:g} for each trial, torch finds none here")


@contextmanager
def storing() -> Iterator[None]:
    """Raise MachineError if the system fails to read or write files of the store within a context."""
    try:
        yield
    except OSError as error:
        raise MachineError(describe_os_error(error)) from error
    except RuntimeError as error:  # torch's, of a file that it could not write
        cause = error.__cause__ or error.__context__
        if not isinstance(cause, OSError):
            raise
        raise MachineError(describe_os_error(cause)) from error


def note_lost_gpu(error: BaseException) -> None:
    """Record that this process has lost its GPU, if the error says so: later trials are not to blame.

    If the error does not say so, the GPU is queried, because CUDA's libraries report failures without their
    cause.
    """
    if not _lost and (reason := _lost_gpu(error) or _query_gpu()) is not None:
        _lost.append(f"a GPU is lost to this process, in which a kernel has failed before: {reason}")


def lost_gpu() -> str | None:
    """Return why this process cannot use its GPU any more; None if it can."""
    return _lost[0] if _lost else None


def _lost_gpu(error: BaseException) -> str | None:
    messages = (str(each) for each in _causes(error) if isinstance(each, RuntimeError))
    return next(
        (each.partition("\n")[0] for each in messages if any(text in each for text in _LOST_GPU)), None
    )


def _query_gpu() -> str | None:
    """Query the GPU for an error of finished kernels, without waiting for running ones.

    None if there is none.
    """
    if not torch.cuda.is_initialized():
        return None
    try:
        torch.cuda.current_stream().query()
    except RuntimeError as error:
        return _lost_gpu(error)
    return None


def machine_failure(error: BaseException) -> str | None:
    """Return why the machine caused a training's error, on one line; None if the trial caused it.

    If a GPU is lost, its libraries only report that something failed.
    """
    if _lost and any(isinstance(each, RuntimeError) for each in _causes(error)):
        return lost_gpu()
    return next((reason for each in _causes(error) if (reason := _reported_fault(each)) is not None), None)


def _reported_fault(error: BaseException) -> str | None:
    """Return the machine failure that an exception reports; None if it is the trial's or a consequence."""
    if isinstance(error, MachineError | DataError | PrecisionError | CompileModeError):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return describe_os_error(error)
    if isinstance(error, ModuleNotFoundError):
        return f"a module is missing: {error}"
    return _fault_of_torch(error) if isinstance(error, RuntimeError | AssertionError) else None


def _fault_of_torch(error: RuntimeError | AssertionError) -> str | None:
    """Return the machine failure in a torch exception's message, on one line; None if there is none."""
    lines = str(error).splitlines()
    if any(text in str(error) for text in _NO_GPU):
        return f"a GPU is missing: {lines[0]}"
    found = next((line for line in lines if any(text in line for text in NO_COMPILER)), None)
    return None if found is None else f"a compiler is missing: {found}"


def describe_os_error(error: OSError) -> str:
    """Return the system's error message with the file's name."""
    what = error.strerror or str(error)
    return f"{what}: {error.filename}" if error.filename else what


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, and the exceptions that caused it."""
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__
