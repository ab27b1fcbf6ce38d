"""Times of training steps, measured on this machine before a run or for its plan."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType

import torch

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
from ..core.resources import Machine, count_gpus, cpus_here
from ..trial.training import Training

MEASURED_S = 0.1
"""The seconds of measurement for each kind of trial."""

ASSUMED_SPEED: Speed = ((0.0, 0.02), (1e10, 1.02))
"""The assumed speed of a slow core, if no step is measured: 10 GFLOP/s, and 0.02 s of overhead for a step."""


def short_grid_seconds(
    study: Study,
    trials: Sequence[Trial],
    times: TimeEstimator,
    machine: Machine,
    shares: Mapping[str, float] = MappingProxyType({}),
) -> float | None:
    """Estimate the seconds to train a short grid in this process, one trial after another.

    `shares` are the shares of the work that are left of trials that continue others. Return None if Ray
    should train the trials. Ray trains long grids, searches, and grids on a cluster, on several GPUs or with
    a memory limit. If the plan has no estimate for a trial, some of its steps are measured.
    """
    if study.search is not None or machine.address is not None:
        return None
    if machine.device == "cuda" and count_gpus() > 1:
        return None
    workers = int(cpus_here() / machine.cpus)
    limit = max_seconds_in_process(workers)
    known = [times.estimate(trial).scaled(shares.get(trial.id, 1.0)).seconds for trial in trials]
    unknown = [trial for trial, seconds in zip(trials, known, strict=True) if seconds is None]
    total = sum(seconds for seconds in known if seconds is not None)
    if unknown and total <= limit:
        steps = steps_to_measure([trial.settings for trial in unknown])
        speed = measure_speed(steps, machine) or ASSUMED_SPEED
        total += sum(
            trial_seconds(trial.settings, speed, grows_every=2) * shares.get(trial.id, 1.0)
            for trial in unknown
        )
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


COMPARED_S = 0.1
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
        endless = settings.with_train(precision=precision, steps_per_epoch=sys.maxsize)
        trainings.append(Training.begin(endless, device, machine.data))
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
    training = Training.begin(settings, device, machine.data)
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
    if step > MEASURED_S:
        return step
    one_step = settings.with_train(epochs=2, steps_per_epoch=1, seconds=None)
    training = Training.begin(one_step, device, machine.data)
    began = clock()
    training.advance()
    return step + max(0.0, clock() - began - step) / settings.train.steps_per_epoch
