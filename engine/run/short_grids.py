"""Measured steps: which grids are so short that they train in this process, and what others take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch

from ...studies.catalog.tasks import AlgorithmicSettings, GeneratedTask
from ...studies.planning.time_estimates import TimeEstimator
from ...studies.resolve.costs import flops_of_test, highest_length, max_training_flops
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study
from ..core.gpus import count_gpus
from ..core.resources import Machine, cpus_here
from ..trial.training import Training

SHORT_S = 200.0
"""Ray is used where it saves so many seconds, besides as many of a core's time that its start takes."""

MEASURED_FLOPS = 1e10
"""Steps of at most so many FLOPs are measured: a slow core takes about a second for the largest."""

PLANNED_FLOPS = 3e10
"""The same for a plan, which may wait some seconds for what a run of hours costs."""

MEASURED_S = 0.2
"""How long the steps of one kind of trial are measured."""

FLOPS_PER_S = 1e10
"""The FLOPs that a slow core computes in a second, where no step is measured."""

STEP_S = 0.02
"""What a step takes besides its FLOPs, where none is measured."""

_Speed = Sequence[tuple[float, float]]
"""The FLOPs of steps that were measured, ascending, and their seconds."""


def short_grid_seconds(
    study: Study, trials: Sequence[Trial], times: TimeEstimator, machine: Machine
) -> float | None:
    """Return about how long these trials of a grid take one after the other, or None if Ray is to train them.

    Ray trains a search, and what a cluster, several GPUs or a limit of memory asks for. Trials of which the
    plan knows no time have some of their steps measured.
    """
    if study.search is not None or machine.address is not None or machine.memory_limit is not None:
        return None
    if machine.device == "cuda" and count_gpus() > 1:
        return None
    workers = max(2, int(cpus_here() / machine.cpus))
    limit = SHORT_S * (workers + 1) / (workers - 1)  # what is saved is total · (1 - 1 / workers)
    known = [times.estimate(trial).seconds for trial in trials]
    unknown = [trial.settings for trial, seconds in zip(trials, known, strict=True) if seconds is None]
    total = sum(seconds for seconds in known if seconds is not None)
    if unknown and total <= limit:
        speed = _measure_speed(unknown, machine, MEASURED_FLOPS) or [
            (flops, STEP_S + flops / FLOPS_PER_S) for flops in sorted(_steps_to_measure(unknown))
        ]
        total += sum(_seconds(settings, speed, grows_every=2) for settings in unknown)
    return total if total <= limit else None


def measure_steps(
    all_settings: Sequence[TrialSettings], machine: Machine
) -> Callable[[TrialSettings], float] | None:
    """Measure some steps, and return a function that gives the seconds of a whole trial at most.

    None if steps are too large to be tried, or need data that may not be here.
    """
    if not all(isinstance(each.task, AlgorithmicSettings | GeneratedTask) for each in all_settings):
        return None
    speed = _measure_speed(all_settings, machine, PLANNED_FLOPS)
    return None if speed is None else lambda settings: _seconds(settings, speed, grows_every=1)


def _seconds(settings: TrialSettings, speed: _Speed, *, grows_every: int) -> float:
    """Return how long a trial takes by the speed of measured steps, its tests at the speed of the largest.

    A length that grows is taken to do so every so many epochs.
    """
    epochs, steps = settings.train.epochs, settings.train.steps_per_epoch
    growing = -(-epochs // grows_every)
    grown = settings.model_copy(update={"train": settings.train.model_copy(update={"epochs": growing})})
    flops = max_training_flops(grown) / (growing * steps)
    largest_flops, largest_s = speed[-1]
    return epochs * steps * _interpolate(flops, speed) + flops_of_test(settings) * largest_s / largest_flops


def _interpolate(flops: float, speed: _Speed) -> float:
    """Return the seconds of a step of so many FLOPs: in proportion beyond the largest that was measured."""
    largest_flops, largest_s = speed[-1]
    if flops >= largest_flops:
        return largest_s * flops / largest_flops
    for (low, low_s), (high, high_s) in pairwise(speed):
        if low <= flops <= high:
            return low_s + (high_s - low_s) * (flops - low) / max(high - low, 1.0)
    return speed[0][1]


def _steps_to_measure(all_settings: Sequence[TrialSettings]) -> dict[float, TrialSettings]:
    """Return the cheapest and the dearest of these trials, by the FLOPs of a step.

    The dearest is there at its longest length too.
    """
    kinds = sorted(all_settings, key=max_training_flops)
    tried = [
        _short(kinds[0], longest=False),
        _short(kinds[-1], longest=False),
        _short(kinds[-1], longest=True),
    ]
    return {max(1.0, max_training_flops(each) / each.train.steps_per_epoch): each for each in tried}


def _measure_speed(all_settings: Sequence[TrialSettings], machine: Machine, most: float) -> _Speed | None:
    """Measure some steps of at most so many FLOPs; None if there are none, or one fails."""
    steps = {flops: each for flops, each in _steps_to_measure(all_settings).items() if flops <= most}
    threads = torch.get_num_threads()
    torch.set_num_threads(machine.threads)
    try:
        return sorted((flops, _measure_step(each, machine)) for flops, each in steps.items()) or None
    except Exception:  # noqa: BLE001 -- whatever fails here fails in the trial, which reports it
        return None
    finally:
        torch.set_num_threads(threads)


def _short(settings: TrialSettings, *, longest: bool) -> TrialSettings:
    """Return the settings of one epoch at a trial's first length, or at its last, without its callbacks."""
    train = settings.train
    changes: dict[str, object] = {"epochs": 1, "compile": False, "callbacks": ()}
    if longest and train.curriculum is not None:
        start = highest_length(settings)
        changes["curriculum"] = train.curriculum.model_copy(update={"start": start, "end": None})
    return settings.model_copy(update={"train": train.model_copy(update=changes)})


def _measure_step(settings: TrialSettings, machine: Machine) -> float:
    """Return the seconds of the quickest step: of computing alone, however busy the machine is."""
    device = torch.device(machine.device)
    is_cpu = device.type == "cpu"
    clock = time.thread_time if is_cpu else time.perf_counter
    with torch.random.fork_rng(devices=[]):
        training = Training(settings, device, machine.data)
        seconds = list[float]()
        while len(seconds) < settings.train.steps_per_epoch:
            began = clock()
            training.take_steps()
            if not is_cpu:
                torch.cuda.synchronize()
            seconds.append(clock() - began)
            if len(seconds) > 1 and sum(seconds) > MEASURED_S:
                break
        return min(seconds)
