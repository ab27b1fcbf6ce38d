"""The GPUs of this machine, their free memory, and the reasons why CUDA fails."""

from __future__ import annotations

import os
import re
import socket
import sys
import warnings
from contextlib import suppress
from ctypes import CDLL, Structure, byref, c_ulonglong, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_LIBRARY = "libnvidia-ml.so.1"


class _Memory(Structure):
    """The `nvmlMemory_t` of nvml.h, in bytes."""

    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


def free_bytes(uuid: str) -> int | None:
    """Return the bytes of a GPU, or of an instance of one, that no process holds; `uuid` is CUDA's.

    None where the library is not there, or does not say.
    """
    with suppress(OSError, AttributeError):  # no library, or an older one
        library, handle, memory = CDLL(_LIBRARY), c_void_p(), _Memory()
        if library.nvmlInit_v2() == 0:
            try:
                for kind in ("MIG", "GPU"):
                    name = f"{kind}-{uuid}".encode()
                    if library.nvmlDeviceGetHandleByUUID(name, byref(handle)) == 0:
                        told = library.nvmlDeviceGetMemoryInfo(handle, byref(memory)) == 0
                        return memory.free if told else None
            finally:
                library.nvmlShutdown()
    return None


_GPU_FILES = ("nvidiactl", "nvidia0", "nvmap", "dxg", "kfd")
"""Files in /dev that show a GPU's driver on Linux: NVIDIA, NVIDIA's small computers, WSL and AMD."""

_NO_GPU = ("No CUDA GPUs are available", "No HIP GPUs are available", "Found no NVIDIA driver")
"""Messages of torch if it finds no GPU."""

_SERVICE_FOLDER = "/tmp/nvidia-mps"  # CUDA's default


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU: its name, its bytes, and its free bytes."""

    name: str
    bytes: int
    free: int


def find_gpus() -> list[Gpu]:
    """Return the GPUs on which this process can train, as far as torch can use them.

    The driver's library reports the free bytes, because asking CUDA would create a context, which holds
    memory. If the library reports nothing, all bytes count as free. So they do if others hold less than a
    context takes, because no training can be that small.
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
    """Return the GPU with least room that trials would use, and the number of GPUs; None without any."""
    found = find_gpus() if has_gpu() else []
    return (min(found, key=lambda each: each.free), len(found)) if found else None


def count_gpus() -> int:
    """Return the number of GPUs that this process can train on.

    Torch counts the GPUs of the machine. CUDA gives a process a single instance where
    they are split into instances (MIG).
    """
    import torch  # noqa: PLC0415 -- as above

    if not torch.cuda.is_available():
        return 0
    from torch._C import _cuda_getDeviceCount  # noqa: PLC0415 -- torch.cuda.device_count asks NVML, not CUDA

    return _cuda_getDeviceCount()


def count_gpus_of_processes() -> int:
    """Return the number of GPUs for processes with one each: every instance that the environment names."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    instances = sum(each.startswith("MIG-") for each in named)
    return max(found, instances) if (found := count_gpus()) else 0


def has_gpu() -> bool:
    """Return whether torch can train on a GPU here; it is loaded only where the system has a GPU's driver."""
    if not _has_driver():
        return False
    import torch  # noqa: PLC0415 -- most machines that plan have no GPU

    return torch.cuda.is_available()


def gpu_fault() -> str | None:
    """Return why CUDA fails on this machine, in one line; None if torch finds a GPU, or there is none.

    If CUDA fails, torch counts no GPU and warns of it once in a process.
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
        told = " ".join(str(error).split())
    else:
        return None
    if any(each in told for each in _NO_GPU):
        return None
    told = re.sub(r"^Unexpected error from cudaGetDeviceCount.* (?=Error \d+: )", "", told)
    return told + (_service_hint() if "MPS" in told or _service() == "gone" else "")


def has_multi_process_service() -> bool:
    """Return whether NVIDIA's multi-process service (MPS) runs here, by the pipe of its daemon.

    CUDA then uses it: kernels of several processes run on one GPU side by side, otherwise in turns.
    """
    return _service() == "there"


def service_fault(share: float, room: int) -> str | None:
    """Return why trials with this share of a GPU cannot train here, on CPUs for `room` trials, or None.

    Where NVIDIA's service runs, it would refuse some. Ray fills one GPU before the next.
    """
    from ...studies.planning.memory_estimates import MOST_ON_ONE  # noqa: PLC0415 -- few commands need it

    if min(int(1 / share), room) <= MOST_ON_ONE or not has_multi_process_service():
        return None
    least = (int(10_000 / (MOST_ON_ONE + 1)) + 1) / 10_000  # in ten-thousandths, as Ray has it
    service = f"as NVIDIA's multi-process service takes {MOST_ON_ONE} processes on a GPU"
    return f"gpus: expected at least {least:g}, {service}, got {share:g}"


def _has_driver() -> bool:
    """Return whether the system has the driver of a GPU; on other systems than Linux, torch decides."""
    if sys.platform == "linux":
        return any(Path("/dev", name).exists() for name in _GPU_FILES)
    return sys.platform != "darwin"


def _service_pipe() -> Path:
    """Return where the daemon of NVIDIA's service listens: a socket, as its log says."""
    return Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", _SERVICE_FOLDER), "control")


def _service() -> Literal["there", "gone", "none"]:
    """Return whether the daemon of NVIDIA's service is there, has left its socket behind, or has none.

    It never connects, because it asks for another type of socket. Linux answers with another error if a
    process has bound the socket (`unix_find_other` in net/unix/af_unix.c).
    """
    pipe = _service_pipe()
    if not pipe.exists():
        return "none"
    if not pipe.is_socket():
        return "there"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(str(pipe))
        except ConnectionRefusedError:
            return "gone"
        except OSError:
            return "there"
    return "there"


def _service_hint() -> str:
    """Return what to do if NVIDIA's service does not answer."""
    start, without = "start it by nvidia-cuda-mps-control -d", "CUDA_MPS_PIPE_DIRECTORY to an empty folder"
    return f"; the multi-process service does not answer at {_service_pipe()}: {start}, or set {without}"
