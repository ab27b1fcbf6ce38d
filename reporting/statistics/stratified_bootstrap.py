"""Statistics of runs on several tasks, with intervals from resampled runs (Agarwal et al. 2021).

In this stratified bootstrap the tasks are fixed, and runs are resampled within each task. Percentile
intervals of so few runs are too narrow. So an interval is the value ± t standard errors of the bootstrap
(Hesterberg 2015, section 4). The errors are multiplied by √(n / (n − 1)) for n runs of a task. Student's t
has n − 1 degrees of freedom for each task that determines the value. All tasks determine a mean, half of them
an interquartile mean, and the middle one or two a median. `bench/interval_coverage.py` simulates the
coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .estimates import LEVEL, Interval, t_quantile

Floats = NDArray[np.float64]

Runs = Sequence[Sequence[float]]
"""The scores of a method's runs, task by task."""

_ANY = (-math.inf, math.inf)  # the possible scores of a task without bounds

_ROUNDING = 1e-12  # smaller deviations relative to the values count as zero


Function = Callable[[Sequence[Floats]], Floats]
"""Computes a number for each resample from the runs of each task, of shape (resamples, runs)."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic: a function from the runs of all tasks to a number.

    `deciding` returns how many of the tasks determine this number.
    """

    of: Function
    deciding: Callable[[int], int] = lambda tasks: tasks


def interquartile_mean(runs: Sequence[Floats]) -> Floats:
    """Return the mean of the runs without the lowest and highest quarter (rounded down to whole runs)."""
    every = np.sort(np.concatenate(list(runs), axis=1), axis=1)
    cut = every.shape[1] // 4
    return every[:, cut : every.shape[1] - cut].mean(axis=1)


def mean_of_tasks(runs: Sequence[Floats]) -> Floats:
    """Return the mean of the tasks' means. The mean of a task is taken over its runs."""
    return _task_means(runs).mean(axis=1)


def median_of_tasks(runs: Sequence[Floats]) -> Floats:
    """Return the median of the tasks' means. The mean of a task is taken over its runs."""
    return np.median(_task_means(runs), axis=1)


def optimality_gap(target: float, *, sign: int = 1) -> Statistic:
    """Return a statistic that measures how far runs are below a target.

    It is the mean distance. Runs beyond the target count as 0. Lower is better if `sign` is −1.
    """
    return Statistic(lambda runs: mean_of_tasks([np.maximum(sign * (target - each), 0.0) for each in runs]))


def share_above(threshold: float, *, sign: int = 1, deciding: int | None = None) -> Statistic:
    """Return a statistic that measures the share of runs above a threshold.

    Above means better. The share is averaged over tasks. `deciding` is the number of tasks on which it is not
    fixed; by default all tasks.
    """
    return Statistic(
        lambda runs: mean_of_tasks([(sign * each > sign * threshold).astype(float) for each in runs]),
        (lambda tasks: tasks) if deciding is None else (lambda _tasks: deciding),
    )


INTERQUARTILE_MEAN = Statistic(interquartile_mean, lambda tasks: -(-tasks // 2))
MEAN = Statistic(mean_of_tasks)
MEDIAN = Statistic(median_of_tasks, lambda tasks: 2 - tasks % 2)


def aggregate_all(
    runs: Runs,
    statistics: Mapping[str, Statistic],
    *,
    resamples: int,
    seed: int,
    limits: Runs | None = None,
) -> dict[str, Interval]:
    """Return the value and interval of each statistic for one method's runs.

    A value has no interval if a task has only one run, or if the runs do not vary. All intervals use the same
    resamples. They end at the values of the statistic for the lowest and the highest possible score of each
    task, a pair in `limits`.
    """
    plain = [np.asarray(task, dtype=float)[None, :] for task in runs]
    drawn = _resampled(plain, np.random.default_rng(seed), resamples)
    limits, counts = limits or [_ANY] * len(runs), [len(task) for task in runs]
    return {name: _aggregate(each, plain, drawn, counts, limits) for name, each in statistics.items()}


def probability_of_improvement(
    runs: Runs, baseline: Runs, *, sign: int = 1, resamples: int, seed: int
) -> Interval:
    """Return the chance that a run is better than a baseline's run on the same task.

    The chance is averaged over tasks. Ties count half (Mann and Whitney 1947). The runs of both methods are
    resampled.
    """
    tasks = len(runs)
    generator = np.random.default_rng(seed)
    plain = [np.asarray(task, dtype=float)[None, :] for task in (*runs, *baseline)]
    drawn = _resampled(plain, generator, resamples)
    statistic = Statistic(lambda sides: _wins(sides[:tasks], sides[tasks:], sign))
    counts = [min(len(one), len(other)) for one, other in zip(runs, baseline, strict=True)]
    return _aggregate(statistic, plain, drawn, counts, [_ANY] * tasks + [_ANY[::-1]] * tasks)


def _aggregate(
    statistic: Statistic,
    runs: Sequence[Floats],
    drawn: Sequence[Floats],
    counts: Sequence[int],
    limits: Runs,
) -> Interval:
    value, found = float(statistic.of(runs)[0]), statistic.of(drawn)
    fewest, deviation = min(counts), float(found.std())
    if fewest < 2 or deviation <= _ROUNDING * float(np.abs(found).max()):
        return Interval(value)
    degrees = (sum(counts) - len(counts)) * statistic.deciding(len(counts)) / len(counts)
    half = deviation * math.sqrt(fewest / (fewest - 1)) * t_quantile(LEVEL, round(degrees))
    # the interval keeps its center, even where a plug-in goes beyond the bounds of its metric
    ends = (list(map(np.full_like, runs, scores)) for scores in zip(*limits, strict=True))
    possible = [value, *(float(statistic.of(each)[0]) for each in ends)]
    return Interval(value, max(value - half, min(possible)), min(value + half, max(possible)))


def _resampled(runs: Sequence[Floats], generator: np.random.Generator, count: int) -> list[Floats]:
    return [each[0][generator.integers(each.shape[1], size=(count, each.shape[1]))] for each in runs]


def _task_means(runs: Sequence[Floats]) -> Floats:
    return np.stack([each.mean(axis=1) for each in runs], axis=1)


def _wins(runs: Sequence[Floats], baseline: Sequence[Floats], sign: int) -> Floats:
    shares = list[Floats]()
    for one, other in zip(runs, baseline, strict=True):
        differences = sign * (one[:, :, None] - other[:, None, :])
        shares.append(((differences > 0) + 0.5 * (differences == 0)).mean(axis=(1, 2)))
    return np.stack(shares, axis=1).mean(axis=1)
