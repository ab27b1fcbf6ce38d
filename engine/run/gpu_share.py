"""Which device trains where a machine's settings say `gpus = "auto"`, and how many trials share a GPU."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...studies.planning.memory_estimates import MemoryEstimator, room_on_gpu
from ...studies.schema.settings import TrialSettings
from ..core.gpus import count_gpus_of_processes, find_gpus, has_gpu
from ..core.resources import Machine
from ..data.prepared_lengths import PreparedLengths
from ..optimisers.state_size import weight_state

LOOK_S = 0.5
"""So often it is looked whether memory of a GPU comes free that others hold."""

QUIET_LOOKS, MOST_LOOKS = 4, 20
"""So many looks in a row that find no more free are the last, and so many in all.

Where a driver is killed, Ray leaves the workers a second to end by themselves.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """The GPUs of a node, the bytes that nobody holds of the fullest of them, and the CPUs beside them."""

    count: float
    device_bytes: int
    cpus: float


def with_whole_gpu(machine: Machine) -> Machine:
    """A machine whose trials are known to train on this machine's GPU, one at a time, or on its CPUs."""
    machine = with_gpu_bytes(machine)
    return replace(machine, gpus=float(has_gpu())) if machine.gpus == "auto" else machine


def with_share(
    machine: Machine, all_settings: Sequence[TrialSettings], *, cpus: float, at_once: int | None = None
) -> Machine:
    """A machine whose trials are known to share this machine's GPUs, beside so many CPUs, or to have none.

    So many of them can train `at_once`; None is any number.
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
    """The part of a GPU for one trial of a study: as many share one as its memory and its CPUs have room for.

    What counts is the step that holds most and the node with least. Where no more can train `at_once`, none
    is smaller than they need on all GPUs: Ray fills one before it takes the next.
    """
    held = gpu_memory(machine).largest_step(all_settings)
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
    return fraction(min((each.trials for each in rooms), default=1))


def gpu_memory(machine: Machine) -> MemoryEstimator:
    """What steps hold on a GPU of a machine."""
    return MemoryEstimator(
        count_state=weight_state,
        find_longest=PreparedLengths(machine.data),
        checkpoints=machine.activation_checkpointing,
    )


def fraction(trials: int) -> float:
    """The share of a GPU with which so many trials fit; Ray has four digits of it."""
    return max(1, math.floor(10_000 / trials)) / 10_000


def with_gpu_bytes(machine: Machine) -> Machine:
    """A machine that knows what others hold of its GPUs, if it trains on any and has not looked before.

    It is to look before any of its own trials hold memory there.
    """
    if not machine.gpus or machine.address is not None or machine.gpu_bytes is not None or not has_gpu():
        return machine
    return replace(machine, gpu_bytes=free_bytes())


def free_bytes(wait: Callable[[float], object] = time.sleep) -> int:
    """What nobody holds by now of the fullest GPU that this process sees; 0 without any torch can use.

    What others give back meanwhile is waited for: they may be workers of a run before, which end.
    """
    gpus, quiet = find_gpus(), 0
    for _ in range(MOST_LOOKS):
        if quiet == QUIET_LOOKS or all(each.free == each.bytes for each in gpus):
            break
        wait(LOOK_S)
        before, gpus = sum(each.free for each in gpus), find_gpus()
        quiet = 0 if sum(each.free for each in gpus) > before else quiet + 1
    return min((each.free for each in gpus), default=0)


def device_bytes(machine: Machine) -> int:
    """What trials may hold of each GPU that this process sees: what the run found free, else all of it.

    Of whole GPUs of a cluster it is what is free by now: a process asks before its first trial.
    """
    if machine.gpu_bytes is not None:
        return machine.gpu_bytes
    if machine.gpus != "auto" and machine.gpus >= 1:
        return free_bytes()
    return min((each.bytes for each in find_gpus()), default=0)
