"""Short grids, which train in this process before Ray would have started its workers."""

from __future__ import annotations

from collections.abc import Sequence

from ...studies.planning.time_estimates import TimeEstimator
from ...studies.resolve.costs import flops_of_test, max_training_flops
from ...studies.resolve.trial import Trial
from ...studies.study import Study
from ..core.gpus import count_gpus
from ..core.resources import Machine

SHORT_S = 120.0
"""How long all trials of a short grid take together."""

FLOPS_PER_S = 1e10
"""The FLOPs that a slow core computes in a second, where no trial was measured on this machine."""

STEP_S = 0.02
"""What a step takes besides its FLOPs, where no trial was measured on this machine."""


def short_grid_seconds(
    study: Study, trials: Sequence[Trial], times: TimeEstimator, machine: Machine
) -> float | None:
    """Return about how long these trials of a grid take one after the other, or None if Ray is to train them.

    So it is where a search, a cluster, several GPUs or a limit of memory asks for it.
    """
    if study.search is not None or machine.address is not None or machine.memory_limit is not None:
        return None
    if machine.device == "cuda" and count_gpus() > 1:
        return None
    seconds = sum(_seconds(trial, times) for trial in trials)
    return seconds if seconds <= SHORT_S else None


def _seconds(trial: Trial, times: TimeEstimator) -> float:
    """Return how long a trial takes, by the plan or by its FLOPs and steps."""
    if (known := times.estimate(trial).seconds) is not None:
        return known
    settings = trial.settings
    steps = settings.train.epochs * settings.train.steps_per_epoch
    return (max_training_flops(settings) + flops_of_test(settings)) / FLOPS_PER_S + steps * STEP_S
