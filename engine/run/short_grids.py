"""Short grids, which train in this process because Ray would save little; and measured step times."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

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
from ..core.gpus import count_gpus
from ..core.resources import Machine, cpus_here
from ..trial.training import Training

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
    """Estimate the sequential seconds of a grid's trials; None if Ray should train them.

    Ray trains searches, and grids on a cluster, on several GPUs or with a memory limit. If the plan has no
    estimate for a trial, some of its steps are measured.
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
    """Measure the seconds of steps, given by their FLOPs; None if there are none or one fails."""
    threads = torch.get_num_threads()
    torch.set_num_threads(machine.threads)
    try:
        return sorted((flops, _measure_step(each, machine)) for flops, each in steps.items()) or None
    except Exception:  # noqa: BLE001 -- whatever fails here fails in the trial, which reports it
        return None
    finally:
        torch.set_num_threads(threads)


def _measure_step(settings: TrialSettings, machine: Machine) -> float:
    """Return the seconds of a step, including its share of the work after each epoch.

    The fastest step counts, so that other load on the machine does not matter. The evaluation after an epoch
    is measured only for short steps, because it takes as long as many of them.
    """
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
        step = min(seconds)
        if step > MEASURED_S / 2:
            return step
        one_step = settings.train.model_copy(update={"epochs": 2, "steps_per_epoch": 1})
        training = Training(settings.model_copy(update={"train": one_step}), device, machine.data)
        began = clock()
        training.advance()
        return step + max(0.0, clock() - began - step) / settings.train.steps_per_epoch
