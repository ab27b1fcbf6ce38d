"""Resources of a trial: settings that may change its running time, but never its results."""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Literal

from ...errors import ActivememError, argument_fault, check_arguments, number_fault

_GPU_FILES = ("nvidiactl", "nvidia0", "nvmap", "dxg", "kfd")
"""Files in /dev that exist if Linux has a GPU driver: NVIDIA, NVIDIA Jetson, WSL and AMD."""

_NO_GPU = ("No CUDA GPUs are available", "No HIP GPUs are available", "Found no NVIDIA driver")
"""Messages of torch if it finds no GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU and its memory in bytes."""

    name: str
    bytes: int


def find_gpus() -> list[Gpu]:
    """Return the GPUs that torch can use in this process. Memory of other processes is not subtracted."""
    import torch  # noqa: PLC0415 -- most machines that plan have no GPU

    found = map(torch.cuda.get_device_properties, range(count_gpus()))
    return [Gpu(name=each.name, bytes=each.total_memory) for each in found]


def cpu_has_bf16() -> bool:
    """Return whether this machine's CPU has bfloat16 instructions, according to Linux."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return any(flag in text.split() for flag in ("avx512_bf16", "amx_bf16", "bf16"))


def gpu_here() -> tuple[Gpu, int] | None:
    """Return the GPU with the least memory, and the number of GPUs. Return None if there is no GPU."""
    found = find_gpus() if has_gpu() else []
    return (min(found, key=lambda each: each.bytes), len(found)) if found else None


def count_gpus() -> int:
    """Return the number of GPUs that this process can train on.

    CUDA shows a process only one instance of a split GPU (MIG), while torch counts all GPUs of the machine.
    """
    import torch  # noqa: PLC0415 -- as above

    if not torch.cuda.is_available():
        return 0
    # torch.cuda.device_count asks NVML, not CUDA
    return getattr(torch._C, "_cuda_getDeviceCount", torch.cuda.device_count)()


def count_gpus_of_processes() -> int:
    """Return how many processes can train at once, each on its own GPU.

    Each MIG instance that the environment names counts as a GPU.
    """
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
    """Return why CUDA fails on this machine, in one line.

    Return None if torch finds a GPU or the machine has none. If CUDA fails, torch counts no GPU and warns
    about it once per process.
    """
    if not _has_driver():
        return None
    import torch  # noqa: PLC0415 -- as above

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch also warns of the fault reported here
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
    """Return whether the system may have a GPU driver.

    Look for it on Linux, and assume none on macOS. On other systems return True, so that torch decides.
    """
    if sys.platform == "linux":
        return any(Path("/dev", name).exists() for name in _GPU_FILES)
    return sys.platform != "darwin"


Gpus = float | Literal["auto"]
"""GPUs of a trial: a share of one GPU up to 1, 0 for none, or "auto": a whole GPU if there is one."""


class ResourceError(ActivememError):
    """Error for settings of `Machine` with which no trial can train."""


def gpus_fault(gpus: Gpus) -> str | None:
    """Return why a trial cannot train with this value of `gpus`, or None if it can."""
    if gpus == "auto" or 0 <= gpus <= 1:
        return None
    return f"expected auto, 0, or a share of one GPU up to 1, got {gpus:g}; a trial trains on one GPU"


def _gpus_argument_fault(gpus: object) -> str | None:
    if gpus == "auto":
        return None
    fault = argument_fault("gpus", gpus, Real, "auto or a number up to 1")
    if fault is not None or not isinstance(gpus, Real):
        return fault
    return f"gpus: {fault}" if (fault := gpus_fault(float(gpus))) else None


_QUOTA_FILES = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))
"""Files with a container's quota of CPU time and its period, for both versions of Linux's control groups."""


def cpus_here(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the number of CPUs that this process may use, within its container's quota.

    A fraction counts as a whole CPU, because Ray counts only whole CPUs. The quota is read from the control
    group mounted at `groups`, which inside a container is the group of the container. A limit of a systemd
    unit is not seen.
    """
    may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for names in _QUOTA_FILES:
        try:
            text = " ".join((groups / name).read_text(encoding="ascii") for name in names)
            quota, period = map(int, text.split())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if quota > 0:
            return max(1, min(may_use, math.ceil(quota / period)))
    return may_use


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Resources and limits of each trial, and the Ray cluster.

    `cpus` and `gpus` are the resources of one trial; `gpus` is a share of one GPU, at most 1. Without an
    `address` a run starts Ray on this machine only. `data` is the folder of the corpora, on every machine of
    a cluster. A checkpoint is saved every `checkpoint_every_s` seconds within an epoch, by default only after
    each epoch.
    """

    cpus: float = 1.0
    gpus: Gpus = "auto"
    time_limit_s: float | None = None
    checkpoint_every_s: float | None = None
    address: str | None = None
    data: Path = Path("data")

    def __post_init__(self) -> None:
        check_arguments(
            number_fault("cpus", self.cpus, above=0, whole=False),
            _gpus_argument_fault(self.gpus),
            number_fault("time_limit_s", self.time_limit_s, above=0, whole=False, optional=True),
            number_fault("checkpoint_every_s", self.checkpoint_every_s, least=0, whole=False, optional=True),
            argument_fault("address", self.address, (str, type(None)), "a text, as auto or HOST:PORT"),
            argument_fault("data", self.data, (str, Path), "a folder"),
            error=ResourceError,
        )
        object.__setattr__(self, "data", Path(self.data))

    @property
    def device(self) -> Literal["cuda", "cpu"]:
        """Return the kind of device that trials use in this process."""
        asked = has_gpu() if self.gpus == "auto" else bool(self.gpus)
        return "cuda" if asked else "cpu"

    @property
    def threads(self) -> int:
        """Return the number of threads of a trial.

        Two runs of a trial are bit-identical only if they use the same number of threads.
        """
        return max(1, int(self.cpus))


ONE_CPU = Machine(gpus=0.0)
"""The resources of a trial that trains on one CPU core and no GPU."""


def memory_here() -> int:
    """Return the bytes of this machine's main memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
