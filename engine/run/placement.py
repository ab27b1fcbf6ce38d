"""Placement of trials: in this process or on Ray, and on which share of a GPU."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import torch

from ...studies.planning.memory_estimates import room_on_gpu, step_memory
from ...studies.planning.time_estimates import (
    Speed,
    TimeEstimator,
    max_seconds_in_process,
    steps_to_measure,
    trial_seconds,
)
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study
from ..core.resources import Machine, count_gpus, count_gpus_of_processes, cpus_here, find_gpus, has_gpu
from ..optimisers.build import weight_state
from ..trial.training import Training


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """The GPUs and CPUs of a node.

    `device_bytes` are the free bytes of the GPU with the least free memory.
    """

    count: float
    device_bytes: int
    cpus: float


def with_whole_gpu(machine: Machine) -> Machine:
    """Resolve `gpus = "auto"` to one GPU for each trial. Without a GPU it becomes 0."""
    machine = with_gpu_bytes(machine)
    return replace(machine, gpus=float(has_gpu())) if machine.gpus == "auto" else machine


def with_share(
    machine: Machine, all_settings: Sequence[TrialSettings], *, cpus: float, at_once: int | None = None
) -> Machine:
    """Resolve `gpus = "auto"` to a share of a GPU for each trial.

    Without a GPU it becomes 0. The machine has `cpus` CPUs. At most `at_once` trials can train at the same
    time; None means any number.
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
    """Return the smallest share of a GPU that is enough for each trial.

    A trial needs enough GPU memory and CPUs. The largest step of the plan and the smallest node decide; a
    trial that runs out of memory is retried in parts. Ray fills one GPU before the next. So if at most
    `at_once` trials can train at the same time, the share is large enough to spread them over all GPUs. It is
    rounded, because Ray keeps four digits.
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
    """Return a copy of the machine with its free GPU memory filled in.

    `gpu_bytes` becomes the free bytes of the fullest GPU. Change nothing if it is set already, or if trials
    train on a CPU. Call it before any trial of the run holds memory there.
    """
    if not machine.gpus or machine.address is not None or machine.gpu_bytes is not None or not has_gpu():
        return machine
    return replace(machine, gpu_bytes=free_bytes())


def free_bytes() -> int:
    """Return the free bytes of the fullest GPU; 0 without a GPU. Only GPUs that this process sees count."""
    return min((each.free for each in find_gpus()), default=0)


def device_bytes(machine: Machine) -> int:
    """Return the number of bytes that trials may use on each GPU.

    These are the bytes that were free at the start of the run or, if they are unknown, all bytes. For whole
    GPUs of a cluster, these are the bytes that are free now, since a process calls this before its first
    trial.
    """
    if machine.gpu_bytes is not None:
        return machine.gpu_bytes
    if machine.gpus != "auto" and machine.gpus >= 1:
        return free_bytes()
    return min((each.bytes for each in find_gpus()), default=0)


MEASURED_FLOPS = 1e10
"""The largest steps that are measured, in FLOPs; a slow core takes about a second for one."""

MEASURED_S = 0.2
"""The seconds of measurement for each kind of trial."""

FLOPS_PER_S = 1e10
"""The assumed FLOP/s of a slow core, if no step is measured."""

STEP_S = 0.02
"""The assumed overhead of a step in seconds, if none is measured."""


def short_grid_seconds(
    study: Study, trials: Sequence[Trial], times: TimeEstimator, machine: Machine
) -> float | None:
    """Estimate the seconds to train a short grid in this process, one trial after another.

    Return None if Ray should train the trials. Ray trains long grids, searches, and grids on a cluster, on
    several GPUs or with a memory limit. If the plan has no estimate for a trial, some of its steps are
    measured.
    """
    if study.search is not None or machine.address is not None:
        return None
    if machine.device == "cuda" and count_gpus() > 1:
        return None
    workers = int(cpus_here() / machine.cpus)
    limit = max_seconds_in_process(workers)
    known = [times.estimate(trial).seconds for trial in trials]
    unknown = [trial.settings for trial, seconds in zip(trials, known, strict=True) if seconds is None]
    total = sum(seconds for seconds in known if seconds is not None)
    if unknown and total <= limit:
        steps = steps_to_measure(unknown)
        tried = {flops: each for flops, each in steps.items() if flops <= MEASURED_FLOPS}
        speed = measure_speed(tried, machine) or [
            (each, STEP_S + each / FLOPS_PER_S) for each in sorted(steps)
        ]
        total += sum(trial_seconds(settings, speed, grows_every=2) for settings in unknown)
    return total if total <= limit else None


def measure_speed(steps: Mapping[float, TrialSettings], machine: Machine) -> Speed | None:
    """Measure the time of one training step for each trial.

    The result has pairs of FLOPs and seconds. Return None if `steps` is empty or a step fails. `steps` has
    one trial for each number of FLOPs.
    """
    with _measuring(machine):
        return sorted((flops, _measure_step(each, machine)) for flops, each in steps.items()) or None
    return None


@contextmanager
def _measuring(machine: Machine) -> Iterator[None]:
    """Within this context, compute with as many threads as a trial.

    Torch's random generator stays as it is. Exceptions end the context: whatever fails here fails in the
    trial, which reports it.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(machine.threads)
    try:
        with suppress(Exception), torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)


COMPARED_S = 0.15
"""The seconds of measurement for each step of which two precisions are compared."""


def measure_bf16(steps: Sequence[TrialSettings], machine: Machine) -> tuple[float, float] | None:
    """Return the total seconds of these steps in float32 and in bf16.

    Return None if a step fails.

    The two precisions are measured alternately.
    """
    with _measuring(machine):
        pairs = [_measure_both(each, machine) for each in steps]
        return sum(full for full, _ in pairs), sum(half for _, half in pairs)
    return None


def _measure_both(settings: TrialSettings, machine: Machine) -> tuple[float, float]:
    """Return the seconds of a training step in float32 and in bf16. Each is the fastest of several steps."""
    device, spent = torch.device(machine.device), 0.0
    trainings = list[Training]()
    for precision in ("float32", "bf16"):
        # so many steps that no epoch ends during the measurement
        train = settings.train.model_copy(update={"precision": precision, "steps_per_epoch": sys.maxsize})
        trainings.append(Training(settings.model_copy(update={"train": train}), device, machine.data))
        # the first step is slower than all others, so it is not measured
        trainings[-1].take_steps()
    fastest = [math.inf, math.inf]
    while spent < COMPARED_S:
        for place, training in enumerate(trainings):
            began = time.thread_time()
            training.take_steps()
            seconds = time.thread_time() - began
            fastest[place], spent = min(fastest[place], seconds), spent + seconds
    return fastest[0], fastest[1]


def _measure_step(settings: TrialSettings, machine: Machine) -> float:
    device = torch.device(machine.device)
    is_cpu = device.type == "cpu"
    # on a CPU, waiting for other processes must not count; a GPU works while the thread waits
    clock = time.thread_time if is_cpu else time.perf_counter
    training = Training(settings, device, machine.data)
    seconds = list[float]()
    while len(seconds) < settings.train.steps_per_epoch:
        began = clock()
        training.take_steps()
        if not is_cpu:
            # otherwise only the launch of the kernels would be measured
            torch.cuda.synchronize()
        seconds.append(clock() - began)
        if len(seconds) > 1 and sum(seconds) > MEASURED_S:
            break
    step = min(seconds)
    if step > MEASURED_S / 2:
        return step
    one_step = settings.train.model_copy(update={"epochs": 2, "steps_per_epoch": 1, "seconds": None})
    training = Training(settings.model_copy(update={"train": one_step}), device, machine.data)
    began = clock()
    training.advance()
    return step + max(0.0, clock() - began - step) / settings.train.steps_per_epoch
