"""Speedups: how much cheaper one cell reaches a target than another.

A speedup is the ratio of two cells' costs to reach the target, with an interval. The ratio is paired by seed,
and computed on logarithms: its centre is the geometric mean of the seeds' ratios, with the t interval of the
mean logarithm. As for a claim, its variance is the larger of the pooled variance and its own.

An evaluation that reaches the target only shows that the target was reached after the previous evaluation. So
the middle between both evaluations counts, and the variance is at least the variance of this resolution.
`bench/speedup_coverage.py` simulates how often the interval covers the true ratio.

If trainings missed the target, only bounds of a ratio are known. Bounds use the costs at the evaluations
themselves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...studies.catalog.metrics import format_number
from .estimates import LEVEL, mean, t_quantile
from .pooled_differences import Pool, larger_variance, pooled_variance

FIRST_SENTENCE = "A target counts as reached at the first evaluation that meets it."
"""The sentence below costs of reaching a target."""

HALFWAY_SENTENCE = (
    "In a speedup, a target counts as reached halfway between the first evaluation that meets it and the one "
    "before."
)
"""The sentence below speedups."""

BOUND_WORDS = "> and < are bounds, from the costs at evaluations"
"""The words on bounds of speedups and differences."""

Ends = tuple[float, float]
"""The lowest and the highest possible value of a number.

They are equal for a known number. An unbounded end is infinite.
"""


def bounds_of_mean(ends: Collection[Ends]) -> tuple[float | None, float | None]:
    """Return the lowest and the highest mean that numbers with bounds can have; None if unbounded."""
    low, high = (
        mean(side) if side and all(map(math.isfinite, side)) else None
        for side in ([end[place] for end in ends] for place in (0, 1))
    )
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCosts:
    """The costs of a cell's trainings up to the target, by seed.

    `reached` has the costs at which trainings met the target. `limits` has the costs of trainings that missed
    the target, up to their last evaluation. `resolution` is each training's cost between two evaluations.
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
    def relative_step(self) -> float:
        """Return the mean of the steps between evaluations as shares of the costs; 0 if unknown."""
        known = {seed: value for seed, value in self.middles.items() if math.isfinite(value)}
        shares = [step / value for seed, value in known.items() if (step := self.resolution[seed])]
        return mean(shares) if shares else 0.0

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


def log_ratios(cell: TargetCosts, baseline: TargetCosts) -> dict[int, Ends]:
    """Return the lowest and the highest possible log speedup for each seed that two cells share.

    The speedup is the baseline's cost divided by the cell's cost. If both trainings of a seed reached the
    target, the middles of their costs give it, and the ends are equal. Otherwise the ends are certain; a
    ratio of two costs that are both unknown has no end. Other seeds change nothing.
    """
    return {
        seed: _ends(cell, baseline, seed)
        for seed in sorted(
            (cell.reached.keys() | cell.limits.keys()) & (baseline.reached.keys() | baseline.limits.keys())
        )
    }


def _ends(cell: TargetCosts, baseline: TargetCosts, seed: int) -> Ends:
    if seed in cell.reached and seed in baseline.reached:
        ratio = _log_ratio(baseline.middles[seed], cell.middles[seed])
        return ratio, ratio
    (low, high), (their_low, their_high) = (
        (each.reached[seed],) * 2 if seed in each.reached else (each.limits[seed], math.inf)
        for each in (cell, baseline)
    )
    return _log_ratio(their_low, high), _log_ratio(their_high, low)


def _log_ratio(above: float, below: float) -> float:
    """Return the logarithm of a ratio of costs, which may be infinite. Equal costs have a ratio of 1."""
    if above == below:
        return 0.0
    if math.isinf(above) or math.isinf(below):
        return math.inf if above > below else -math.inf
    return math.log(above / below)


def speedups(cells: Sequence[TargetCosts], baseline: int) -> list[SpeedupEstimate | None]:
    """Return the speedup of each cell over the cell with the index `baseline`.

    An item is None for the baseline itself and for an unknown speedup. A speedup is unknown if the cells
    share no seed, or if trainings of both cells missed the target.
    """
    logs = [
        {seed: math.log(value) for seed, value in cell.middles.items()}
        for cell in cells
        if cell.reached and not cell.limits
    ]
    pool = pooled_variance(logs)
    found: list[SpeedupEstimate | None] = []
    for place, cell in enumerate(cells):
        ratios = log_ratios(cell, cells[baseline])
        if place == baseline or not ratios:
            found.append(None)
        elif cell.limits or cells[baseline].limits:
            found.append(_bounded(list(ratios.values())))
        else:
            rounding = math.sqrt(cell.rounding + cells[baseline].rounding)
            found.append(_estimated([ratio for ratio, _ in ratios.values()], pool, rounding))
    return found


def _estimated(differences: Sequence[float], pool: Pool | None, rounding: float) -> SpeedupEstimate:
    """Return a speedup from each seed's difference of log costs, whose spread is at least `rounding`."""
    n, middle = len(differences), mean(differences)
    if (variance := larger_variance(differences, pool, rounding)) is None:
        return SpeedupEstimate(value=math.exp(middle), n=n)
    half = t_quantile(LEVEL, variance.degrees) * variance.sd / math.sqrt(n)
    return SpeedupEstimate(
        value=math.exp(middle), n=n, low=math.exp(middle - half), high=math.exp(middle + half)
    )


LARGEST = 1000.0
"""The largest ratio that `format_ratio` writes as a number; it writes a larger ratio as `> 1,000`."""


def format_ratio(ratio: float, decimals: int) -> str:
    """Return a ratio as text: `1.52`, or `> 1,000`."""
    return format_number(ratio, decimals) if ratio <= LARGEST else f"> {format_number(LARGEST, 0)}"


def _bounded(ratios: Sequence[Ends]) -> SpeedupEstimate | None:
    low, high = bounds_of_mean(ratios)
    if low is not None:
        return SpeedupEstimate(value=math.exp(low), n=len(ratios), bound="" if low == high else ">")
    return None if high is None else SpeedupEstimate(value=math.exp(high), n=len(ratios), bound="<")
