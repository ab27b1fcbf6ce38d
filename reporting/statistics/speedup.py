"""Speedups: how much cheaper one cell reaches a target than another.

A speedup is the ratio of two cells' costs to reach the target, with an interval. The ratio is paired by seed,
and computed on logarithms: its centre is the geometric mean of the seeds' ratios, with the t interval of the
mean logarithm. As for a claim, its variance is the larger of the pooled variance and its own.

An evaluation that reaches the target only shows that the target was reached after the previous evaluation. So
the middle between both evaluations counts, and the variance is at least the variance of this resolution.
`bench/speedup_coverage.py` simulates how often the interval covers the true ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...studies.catalog.metrics import format_number
from .estimates import LEVEL, mean, sample_sd, t_quantile
from .pooled_differences import Pool, Values, own_or_pooled, pooled_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCosts:
    """The costs of a cell's trainings up to the target, by seed.

    `reached` has the costs at which trainings met the target. `limits` has the total costs of trainings that
    missed the target. `resolution` is each training's cost between two evaluations.
    """

    reached: Mapping[int, float]
    limits: Mapping[int, float]
    resolution: Mapping[int, float]

    @property
    def middles(self) -> dict[int, float]:
        """Estimate the exact cost at which each training reached the target, by seed.

        The estimate is the middle between two costs: at the first evaluation that met the target, and at the
        evaluation before.
        """
        return {seed: value - self.resolution[seed] / 2 for seed, value in self.reached.items()}

    @property
    def rounding(self) -> float:
        """Return how much variance the gaps between evaluations add to the log of the cost."""
        # an error that is uniform over a gap of width w has the variance w² / 12
        return mean([(self.resolution[seed] / value) ** 2 for seed, value in self.middles.items()]) / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupEstimate:
    """The baseline's cost divided by a cell's cost, over `n` seeds.

    `bound` is "" if all trainings reached the target, ">" if trainings of the baseline missed it, and "<" if
    trainings of the cell missed it. A bound has no interval.
    """

    value: float
    n: int
    low: float | None = None
    high: float | None = None
    bound: Literal["", "<", ">"] = ""


def speedups(cells: Sequence[TargetCosts], baseline: int) -> list[SpeedupEstimate | None]:
    """Return the speedup of each cell over the cell with the index `baseline`.

    An item is None for the baseline itself and for an unknown speedup. A speedup is unknown if the cells
    share no seed, or if trainings of both cells missed the target.
    """
    logs = {
        place: {seed: math.log(value) for seed, value in cell.middles.items()}
        for place, cell in enumerate(cells)
        if cell.reached and not cell.limits
    }
    pool = pooled_variance(list(logs.values()))
    found: list[SpeedupEstimate | None] = []
    for place, cell in enumerate(cells):
        if place == baseline:
            found.append(None)
        elif place in logs and baseline in logs:
            found.append(_paired(logs[place], logs[baseline], pool, cell.rounding + cells[baseline].rounding))
        else:
            found.append(_bounded(cell, cells[baseline]))
    return found


def _paired(own: Values, baseline: Values, pool: Pool | None, rounding: float) -> SpeedupEstimate | None:
    """Return the speedup of a cell, paired by seed.

    `own` and `baseline` are logarithms of costs.

    The variance used is at least `rounding`.
    """
    differences = [baseline[seed] - own[seed] for seed in sorted(own.keys() & baseline.keys())]
    if not differences:
        return None
    n, middle = len(differences), mean(differences)
    variance, degrees = max((sample_sd(differences) or 0.0) ** 2, rounding), n - 1.0
    if pool is not None:
        variance, degrees = own_or_pooled(variance, n, pool)
    if degrees < 1:
        return SpeedupEstimate(value=math.exp(middle), n=n)
    half = t_quantile(LEVEL, degrees + 1) * math.sqrt(variance / n)
    return SpeedupEstimate(
        value=math.exp(middle), n=n, low=math.exp(middle - half), high=math.exp(middle + half)
    )


LARGEST = 1000.0
"""The largest ratio that `format_ratio` writes as a number; it writes a larger ratio as `> 1,000`."""


def format_ratio(ratio: float, decimals: int) -> str:
    """Return a ratio as text: `1.52`, or `> 1,000`."""
    return format_number(ratio, decimals) if ratio <= LARGEST else f"> {format_number(LARGEST, 0)}"


def _bounded(cell: TargetCosts, baseline: TargetCosts) -> SpeedupEstimate | None:
    """Return a bound of the speedup if one of the two cells missed the target.

    It missed the target if any of its trainings did. Return None if both cells did or neither, or if they
    share no seed.
    """
    own, theirs = ({**each.reached, **each.limits} for each in (cell, baseline))
    seeds = sorted(own.keys() & theirs.keys())
    if not seeds or bool(cell.limits) == bool(baseline.limits):
        return None
    middle = mean([math.log(theirs[seed] / own[seed]) for seed in seeds])
    return SpeedupEstimate(value=math.exp(middle), n=len(seeds), bound="<" if cell.limits else ">")
