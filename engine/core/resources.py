"""What a machine gives to each trial: settings that change how long a study takes, never what it finds."""

from __future__ import annotations

import os
import re
import socket
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import ActivememError

Gpus = float | Literal["auto"]
"""The share of a GPU that a trial has, 0 for none, or how many GPUs; "auto" takes a GPU where one is."""

_GPU_FILES = ("nvidiactl", "nvidia0", "nvmap", "dxg", "kfd")
"""What Linux has in /dev where a GPU's driver is: NVIDIA's, that of its small computers, WSL's, AMD's."""

_NO_GPU = ("No CUDA GPUs are available", "No HIP GPUs are available", "Found no NVIDIA driver")
"""What torch says where there is no GPU to be found."""

_SERVICE_FOLDER = "/tmp/nvidia-mps"  # CUDA's default


class ResourceError(ActivememError):
    """Resources that no trial can use."""


def gpus_fault(gpus: Gpus) -> str | None:
    """Why a trial cannot have so much of a GPU, or so many; None if it can."""
    if gpus == "auto" or 0 <= gpus <= 1 or (gpus > 1 and float(gpus).is_integer()):
        return None
    return f"expected auto, 0, a share of one GPU up to 1, or a whole number of GPUs, got {gpus:g}"


MAX_PACK = 16
"""So many trials take their steps together at most where it is left to the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """CPUs of a trial and its share of a GPU or its GPUs, its training limit in seconds, the Ray cluster.

    A trial with several GPUs takes a part of each step on each of them. Without an address a cluster of this
    machine alone is started for the run. `data` is the folder of the corpora, on every machine of a cluster.
    Every `checkpoint_every_s` a trial is saved amid its epoch, by default only after it. Nodes on which
    trials cannot be trained end the run before it begins, unless `skip_unfit_nodes`. With `isolate` a local
    run trains in a process of its own, as it does where there is a `memory_limit`, of bytes that a worker's
    process may occupy. With a `pack` trials of one form take their steps together, so many at once, or with
    "auto" as many as one worker has where that is faster. With `graphs` the gradients of a trial, or of those
    that are packed, are recorded on a GPU as CUDA graphs, where they can be. With `activation_checkpointing`
    a trial keeps the inputs of its sub-layers alone, and computes the rest again in the backward pass.
    """

    cpus: float = 1.0
    gpus: Gpus = "auto"
    time_limit_s: float | None = None
    checkpoint_every_s: float | None = None
    address: str | None = None
    data: Path = Path("data")
    skip_unfit_nodes: bool = False
    isolate: bool = False
    pack: int | Literal["auto", "off"] = "off"
    graphs: bool = False
    activation_checkpointing: bool = False
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if (fault := gpus_fault(self.gpus)) is not None:
            raise ResourceError(f"gpus: {fault}")
        if not isinstance(self.pack, str) and self.pack < 1:
            raise ResourceError(f"pack: expected auto, off or at least 1 trial, got {self.pack}")
        if self.graphs and self.devices > 1:
            told = f"gpus = {self.devices} for each trial, whose replicas wait for each other"
            raise ResourceError(f"graphs: expected false with {told}, got true")
        if self.activation_checkpointing and (self.graphs or self.pack != "off"):
            told = "graphs = true" if self.graphs else f"pack = {self.pack}"
            raise ResourceError(f"activation_checkpointing: expected false with {told}, got true")
        if self.devices > 1 and self.pack != "off":
            told = f"gpus = {self.devices} for each trial, which trains alone, got {self.pack}"
            raise ResourceError(f"pack: expected off with {told}")

    @property
    def device(self) -> Literal["cuda", "cpu"]:
        """The kind of device that trains in this process."""
        asked = has_gpu() if self.gpus == "auto" else bool(self.gpus)
        return "cuda" if asked else "cpu"

    @property
    def devices(self) -> int:
        """On how many devices a trial takes its steps."""
        return 1 if self.gpus == "auto" else max(1, int(self.gpus))

    @property
    def most_packed(self) -> int:
        """So many trials take their steps together at most."""
        return {"auto": MAX_PACK, "off": 1}[self.pack] if isinstance(self.pack, str) else self.pack

    @property
    def threads(self) -> int:
        """The threads of a trial; its numbers are equal bit for bit only for an equal number of threads."""
        return max(1, int(self.cpus))


ONE_CPU = Machine(gpus=0.0)
"""What a trial gets where nothing else is said."""


def gpu_here() -> tuple[str, int, int] | None:
    """The name and the bytes of the smallest GPU that trials would train on here, and how many there are.

    None where torch can use none.
    """
    if not has_gpu():
        return None
    import torch  # noqa: PLC0415 -- it is loaded where there is a GPU

    count = count_gpus()
    found = min(map(torch.cuda.get_device_properties, range(count)), key=lambda each: each.total_memory)
    return found.name, found.total_memory, count


def count_gpus() -> int:
    """On how many GPUs this process can train; 0 without any.

    Torch asks the driver, which counts those of the machine. CUDA gives a process a single instance where
    they are split into instances (MIG).
    """
    import torch  # noqa: PLC0415 -- as above

    if not torch.cuda.is_available():
        return 0
    from torch._C import _cuda_getDeviceCount  # noqa: PLC0415 -- nothing public asks CUDA itself

    return _cuda_getDeviceCount()


def count_gpus_of_processes() -> int:
    """On how many GPUs processes with one each can train here: on every instance the environment names."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    instances = sum(each.startswith("MIG-") for each in named)
    return max(found, instances) if (found := count_gpus()) else 0


def has_gpu() -> bool:
    """Whether torch can train on a GPU here; it is loaded only where the system has a GPU's driver."""
    if not _has_driver():
        return False
    import torch  # noqa: PLC0415 -- most machines that plan have no GPU

    return torch.cuda.is_available()


def gpu_fault() -> str | None:
    """What CUDA fails by on this machine, in one line; None where torch finds a GPU, or there is none.

    Torch counts no GPU then, and warns of it once in a process.
    """
    if not _has_driver():
        return None
    import torch  # noqa: PLC0415 -- as above

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # which says what is told here
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
    """Whether NVIDIA's multi-process service (MPS) runs here, by the pipe of its daemon.

    CUDA then uses it by itself: kernels of several processes run on one GPU side by side, else in turns.
    """
    return _service() == "there"


def _has_driver() -> bool:
    """Whether the system has the driver of a GPU; elsewhere than on Linux torch is asked."""
    if sys.platform == "linux":
        return any(Path("/dev", name).exists() for name in _GPU_FILES)
    return sys.platform != "darwin"


def _service_pipe() -> Path:
    """Where the daemon of NVIDIA's service listens: a socket, as its log says."""
    return Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", _SERVICE_FOLDER), "control")


def _service() -> Literal["there", "gone", "none"]:
    """Whether the daemon of NVIDIA's service is there, has left its socket behind, or has none.

    Nobody is connected to: the socket is of another type than is asked for, which Linux refuses otherwise
    where somebody has bound it (`unix_find_other` in net/unix/af_unix.c).
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
    """What to do where NVIDIA's service does not answer."""
    start, without = "start it by nvidia-cuda-mps-control -d", "CUDA_MPS_PIPE_DIRECTORY to an empty folder"
    return f"; the multi-process service does not answer at {_service_pipe()}: {start}, or set {without}"
