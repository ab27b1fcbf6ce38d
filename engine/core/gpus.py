"""The GPUs of this machine, their free memory, and the reasons why CUDA fails."""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import suppress
from ctypes import CDLL, Structure, byref, c_ulonglong, c_void_p
from dataclasses import dataclass
from pathlib import Path

_LIBRARY = "libnvidia-ml.so.1"


class _Memory(Structure):
    """The `nvmlMemory_t` of nvml.h, in bytes."""

    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


def free_bytes(uuid: str) -> int | None:
    """Return the free memory of a GPU or MIG instance in bytes; `uuid` is its CUDA UUID.

    None if NVIDIA's management library is missing or does not report it.
    """
    with suppress(OSError, AttributeError):  # no library, or an older one
        library, handle, memory = CDLL(_LIBRARY), c_void_p(), _Memory()
        if library.nvmlInit_v2() == 0:
            try:
                for kind in ("MIG", "GPU"):
                    name = f"{kind}-{uuid}".encode()
                    if library.nvmlDeviceGetHandleByUUID(name, byref(handle)) == 0:
                        succeeded = library.nvmlDeviceGetMemoryInfo(handle, byref(memory)) == 0
                        return memory.free if succeeded else None
            finally:
                library.nvmlShutdown()
    return None


_GPU_FILES = ("nvidiactl", "nvidia0", "nvmap", "dxg", "kfd")
"""Files in /dev that exist if Linux has a GPU driver: NVIDIA, NVIDIA Jetson, WSL and AMD."""

_NO_GPU = ("No CUDA GPUs are available", "No HIP GPUs are available", "Found no NVIDIA driver")
"""Messages of torch if it finds no GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU: its name, its bytes, and its free bytes."""

    name: str
    bytes: int
    free: int


def find_gpus() -> list[Gpu]:
    """Return the GPUs that torch can use in this process.

    Free bytes come from the driver's library, because asking CUDA would create a context, which holds memory.
    All memory counts as free if the library reports nothing, or if other processes hold less than a context
    takes.
    """
    import torch  # noqa: PLC0415 -- most machines that plan have no GPU

    from ...studies.planning.memory_estimates import GPU_CONTEXT  # noqa: PLC0415 -- few commands need it

    found = list[Gpu]()
    for place in range(count_gpus()):
        has = torch.cuda.get_device_properties(place)
        free = free_bytes(str(getattr(has, "uuid", "")))
        unused = torch.cuda.memory_reserved(place) - torch.cuda.memory_allocated(place)  # of this process
        held = 0 if free is None else max(0, has.total_memory - free - unused)
        taken = held if held > GPU_CONTEXT else 0
        found.append(Gpu(name=has.name, bytes=has.total_memory, free=has.total_memory - taken))
    return found


def gpu_here() -> tuple[Gpu, int] | None:
    """Return the GPU with the least free memory, and the number of GPUs; None without any."""
    found = find_gpus() if has_gpu() else []
    return (min(found, key=lambda each: each.free), len(found)) if found else None


def count_gpus() -> int:
    """Return the number of GPUs that this process can train on.

    CUDA shows a process only one instance of a split GPU (MIG), while torch counts all GPUs of the machine.
    """
    import torch  # noqa: PLC0415 -- as above

    if not torch.cuda.is_available():
        return 0
    from torch._C import _cuda_getDeviceCount  # noqa: PLC0415 -- torch.cuda.device_count asks NVML, not CUDA

    return _cuda_getDeviceCount()


def count_gpus_of_processes() -> int:
    """Return the number of GPUs for processes with one each; every MIG instance in the environment counts."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    instances = sum(each.startswith("MIG-") for each in named)
    return max(found, instances) if (found := count_gpus()) else 0


def has_gpu() -> bool:
    """Return whether torch can train on a GPU here. Torch is imported only if the system has a GPU driver."""
    if not _has_driver():
        return False
    import torch  # noqa: PLC0415 -- most machines that plan have no GPU

    return torch.cuda.is_available()


def gpu_fault() -> str | None:
    """Return why CUDA fails on this machine, in one line; None if torch finds a GPU or there is none.

    If CUDA fails, torch counts no GPU and warns about it once per process.
    """
    if not _has_driver():
        return None
    import torch  # noqa: PLC0415 -- as above

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the fault that is reported here
        if torch.cuda.is_available() or not torch.backends.cuda.is_built():
            return None
    try:
        torch.cuda.init()
    except RuntimeError as error:
        message = " ".join(str(error).split())
    else:
        return None
    if any(each in message for each in _NO_GPU):
        return None
    return re.sub(r"^Unexpected error from cudaGetDeviceCount.* (?=Error \d+: )", "", message)


def _has_driver() -> bool:
    """Return whether the system has a GPU driver; on systems other than Linux, torch decides."""
    if sys.platform == "linux":
        return any(Path("/dev", name).exists() for name in _GPU_FILES)
    return sys.platform != "darwin"
