"""What a machine gives to each trial: settings that change how long a study takes, never what it finds."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import ActivememError
from .gpus import has_gpu

Gpus = float | Literal["auto"]
"""The share of a GPU that a trial has, 0 for none, or how many GPUs; "auto" takes a GPU where one is."""


class ResourceError(ActivememError):
    """Resources that no trial can use."""


def gpus_fault(gpus: Gpus) -> str | None:
    """Why a trial cannot have so much of a GPU, or so many; None if it can."""
    if gpus == "auto" or 0 <= gpus <= 1 or (gpus > 1 and float(gpus).is_integer()):
        return None
    return f"expected auto, 0, a share of one GPU up to 1, or a whole number of GPUs, got {gpus:g}"


_QUOTA_FILES = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))
"""Where Linux says how much time of CPUs a container has in a period, in either version of control groups."""


def cpus_here(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """How many CPUs the trials of this machine have: those of this process, as far as its container may.

    A part of a CPU counts as a whole one, as Ray has whole ones only. What is read is the control group that
    is mounted at `groups`: that of a container, from inside it. A limit of a systemd unit is not seen.
    """
    may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for names in _QUOTA_FILES:
        try:
            told = " ".join((groups / name).read_text(encoding="ascii") for name in names)
            quota, period = map(int, told.split())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if quota > 0:
            return max(1, min(may_use, math.ceil(quota / period)))
    return may_use


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
    process may occupy, with those that take its steps on other GPUs. With a `pack` trials of one form take
    their steps together, so many at once, or with "auto" as many as one worker has where that is faster. With
    `graphs` the gradients of a trial, or of those that are packed, are recorded on a GPU as CUDA graphs,
    where they can be. With `activation_checkpointing` a trial keeps the inputs of its sub-layers alone, and
    computes the rest again in the backward pass.
    `gpu_bytes` are those of a GPU that all trials on it may hold together. None is all that it has, and of
    whole GPUs what others leave of them.
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
    gpu_bytes: int | None = None

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
