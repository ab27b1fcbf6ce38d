"""Shares of a GPU: the device for `gpus = "auto"`, and how many trials share a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...studies.planning.memory_estimates import room_on_gpu, step_memory
from ...studies.schema.settings import TrialSettings
from ..core.gpus import count_gpus_of_processes, find_gpus, has_gpu
from ..core.resources import Machine
from ..optimisers.build import weight_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """A node's GPUs, the free bytes of the fullest of them, and the node's CPUs."""

    count: float
    device_bytes: int
    cpus: float


def with_whole_gpu(machine: Machine) -> Machine:
    """Resolve the device: a whole GPU for one trial at a time, or the CPUs."""
    machine = with_gpu_bytes(machine)
    return replace(machine, gpus=float(has_gpu())) if machine.gpus == "auto" else machine


def with_share(
    machine: Machine, all_settings: Sequence[TrialSettings], *, cpus: float, at_once: int | None = None
) -> Machine:
    """Set the share of a GPU for each trial, on a machine with this many CPUs.

    At most `at_once` trials can train at the same time; None is any number.
    """
    machine = with_gpu_bytes(machine)
    if machine.gpus != "auto":
        return machine
    if not has_gpu():
        return replace(machine, gpus=0.0)
    here = Accelerators(count=count_gpus_of_processes(), device_bytes=machine.gpu_bytes or 0, cpus=cpus)
    return replace(machine, gpus=share(machine, [here], all_settings, at_once))


def share(
    machine: Machine,
    nodes: Sequence[Accelerators],
    all_settings: Iterable[TrialSettings],
    at_once: int | None = None,
) -> float:
    """Return the part of a GPU for one trial: as many trials share it as fit its memory and CPUs.

    The largest step of the plan and the smallest node decide; a trial that runs out of memory is retried in
    parts. Ray fills one GPU before the next. So if at most `at_once` trials can train at the same time, the
    share is large enough to spread them over all GPUs. It is rounded, because Ray keeps four digits.
    """
    steps = (
        step_memory(each, state=weight_state(each), checkpoints=machine.activation_checkpointing)
        for each in all_settings
    )
    held = max(steps, key=lambda each: each.total, default=None)
    if held is None:
        return 1.0
    trials = None if at_once is None else at_once / max(1.0, sum(node.count for node in nodes))
    rooms = [
        room_on_gpu(
            held,
            node.device_bytes,
            cpus=node.cpus / max(node.count, 1.0),
            cpus_of_each=machine.cpus,
            trials=trials,
        )
        for node in nodes
    ]
    return max(1, math.floor(10_000 / min(each.trials for each in rooms))) / 10_000


def with_gpu_bytes(machine: Machine) -> Machine:
    """Set the machine's `gpu_bytes` to the free bytes of its fullest GPU, unless set or on a CPU.

    Call it before any trial of the run holds memory there.
    """
    if not machine.gpus or machine.address is not None or machine.gpu_bytes is not None or not has_gpu():
        return machine
    return replace(machine, gpu_bytes=free_bytes())


def free_bytes() -> int:
    """Return the free bytes of the fullest GPU that this process sees; 0 if torch cannot use any."""
    return min((each.free for each in find_gpus()), default=0)


def device_bytes(machine: Machine) -> int:
    """Return the bytes of each GPU that trials may hold: those free at the start of the run, else all.

    For whole GPUs of a cluster, it is the bytes free now: a process asks before its first trial.
    """
    if machine.gpu_bytes is not None:
        return machine.gpu_bytes
    if machine.gpus != "auto" and machine.gpus >= 1:
        return free_bytes()
    return min((each.bytes for each in find_gpus()), default=0)
