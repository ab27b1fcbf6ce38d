"""Which device trains where a machine's settings say `gpus = "auto"`, and how many trials share a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from ...studies.planning.memory_estimates import largest_step, trials_on_device
from ...studies.schema.settings import TrialSettings
from ..core.resources import Machine, count_gpus, count_gpus_of_processes, has_gpu
from ..data.prepared_lengths import PreparedLengths
from ..optimisers.state_size import weight_state

MOST_ON_ONE = 48
"""So many processes share a GPU at most: NVIDIA's multi-process service (MPS) refuses the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """The GPUs of a node, the bytes of the smallest of them, and the CPUs beside them."""

    count: float
    device_bytes: int
    cpus: float


def resolve_here(
    machine: Machine, all_settings: Sequence[TrialSettings], *, local: bool, cpus: float
) -> Machine:
    """A machine whose trials are known to train on this machine's GPU, or on its CPUs.

    A local run has one trial at a time, and the whole GPU for it.
    """
    if machine.gpus != "auto":
        return machine
    if not has_gpu():
        return replace(machine, gpus=0.0)
    if local:
        return replace(machine, gpus=1.0)
    here = Accelerators(count=count_gpus_of_processes(), device_bytes=device_bytes(), cpus=cpus)
    return replace(machine, gpus=share(machine, [here], all_settings))


def share(machine: Machine, nodes: Iterable[Accelerators], all_settings: Iterable[TrialSettings]) -> float:
    """The part of a GPU for one trial of a study: as many share one as its memory and its CPUs have room for.

    What counts is the step that holds most and the node with least.
    """
    longest = PreparedLengths(machine.data)
    found = largest_step(all_settings, weight_state, longest, checkpoints=machine.activation_checkpointing)
    rooms = [
        min(
            trials_on_device(found[1], node.device_bytes) if found else 1,
            int(node.cpus / (machine.cpus * max(node.count, 1.0))),
            MOST_ON_ONE,
        )
        for node in nodes
    ]
    return fraction(max(1, min(rooms, default=1)))


def fraction(trials: int) -> float:
    """The share of a GPU with which so many trials fit; Ray has four digits of it."""
    return max(1, math.floor(10_000 / trials)) / 10_000


def device_bytes() -> int:
    """The memory of the smallest GPU that this process sees; 0 without any that torch can use."""
    sizes = (torch.cuda.get_device_properties(each).total_memory for each in range(count_gpus()))
    return min(sizes, default=0)
