"""Power laws fitted to cells: y = a xᵇ, or y = e + a xᵇ with an offset e and b < 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from .estimates import LEVEL, Interval, mean, t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.float64]
    Choice: TypeAlias = NDArray[np.bool_]
    _ConfidenceRegion: TypeAlias = tuple[Numbers, Numbers, Numbers, Numbers]

MIN_OFFSET_CELLS = 4
"""The minimum number of cells for an interval of a law with an offset."""

_GRID = 161  # exponents and shares evaluated at a time
_ZOOMS = 3
_WHOLE = ((1e-3, 4.0), (0.0, 0.9999))  # grid of exponents, and of the offset's shares at the largest x

_ROUNDING = 1e-12  # smaller deviations relative to the values count as zero


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """A power law y = a xᵇ fitted to `n` cells.

    It has no interval if there are only two cells, or if the law fits cells with one seed exactly. `center`
    and `spread` are the mean of the logarithms of x and the sum of squares around it; `error` is the residual
    standard deviation, or that of the cells' means over seeds if that is larger.
    """

    coefficient: float
    exponent: float
    half_width: float | None
    n: int
    center: float
    spread: float
    error: float | None
    offset: ClassVar[None] = None
    offset_interval: ClassVar[None] = None

    @property
    def exponent_interval(self) -> tuple[float, float] | None:
        """Return the interval of the exponent."""
        half = self.half_width
        return None if half is None else (self.exponent - half, self.exponent + half)

    def at(self, x: float) -> Interval:
        """Return the law's value at x, with its interval.

        The interval is ± t s √(1/n + (x − x̄)²/Sxx) on logarithms.
        """
        place = math.log(x) - self.center
        middle = math.log(self.coefficient) + self.exponent * math.log(x)
        if self.error is None:
            return Interval(math.exp(middle))
        half = t_quantile(LEVEL, self.n - 1) * self.error
        half *= math.sqrt(1 / self.n + place**2 / self.spread)
        return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))

    def next_cell(self, x: float) -> Interval:
        """Predict the result of a new cell with the cost x, with an interval.

        The interval includes the cell's own deviation from the law.
        """
        middle, low, _ = self.at(x)
        if low is None or self.error is None:
            return Interval(middle)
        own = t_quantile(LEVEL, self.n - 1) * self.error
        half = math.hypot(math.log(middle / low), own)
        return Interval(middle, middle * math.exp(-half), middle * math.exp(half))


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetLaw:
    """The law y = offset + coefficient · x ** exponent.

    The logarithm of y was fitted to `n` cells.

    Intervals are profile intervals (Bates and Watts 1988, section 6.1): they contain all values whose sum of
    squares is below the minimum plus F s². F is the quantile with 1 and n − 3 degrees of freedom, and s² the
    residual variance, or that of the cells' means over seeds if that is larger.
    Intervals are None if there are only three cells. `likely` has the laws within these intervals: exponents,
    shares of the offset at the largest x, the logarithms of y there, and half of their range.
    """

    coefficient: float
    exponent: float
    offset: float
    exponent_interval: tuple[float, float] | None
    offset_interval: tuple[float, float] | None
    n: int
    largest: float
    likely: _ConfidenceRegion | None

    @property
    def half_width(self) -> float | None:
        """Return half of the width of the exponent's interval."""
        interval = self.exponent_interval
        return None if interval is None else (interval[1] - interval[0]) / 2

    def at(self, x: float) -> Interval:
        """Return the law's value at x, with its interval."""
        return self._at(x, 1.0)

    def next_cell(self, x: float) -> Interval:
        """Predict the result of a new cell with the cost x, with an interval.

        The interval includes the cell's own deviation from the law.
        """
        # `half` belongs to a mean of n cells; a single cell has n times its variance on top
        return self._at(x, math.sqrt(self.n + 1))

    def _at(self, x: float, wider: float) -> Interval:
        middle = self.offset + self.coefficient * x**self.exponent
        if self.likely is None:
            return Interval(middle)
        steep, share, top, half = self.likely
        logs = top + np.log(share + (1 - share) * (x / self.largest) ** -steep)
        low, high = np.exp((logs - wider * half).min()), np.exp((logs + wider * half).max())
        return Interval(middle, float(low), float(high))


def error_of_means(cells: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of a cell's mean logarithm.

    It is estimated from the spread of the seeds, pooled over the cells. Each cell has the values of its
    seeds. Return 0 if each cell has one seed.
    """
    logs = [[math.log(value) for value in cell] for cell in cells]
    degrees = sum(len(each) - 1 for each in logs)
    if not degrees:
        return 0.0
    variance = math.fsum((value - mean(each)) ** 2 for each in logs for value in each) / degrees
    return math.sqrt(variance * mean([1 / len(each) for each in logs]))


def fit_power_law(points: Sequence[tuple[float, float]], least_error: float = 0.0) -> PowerLaw | None:
    """Fit y = a xᵇ by least squares on logarithms.

    All x and y must be above 0.

    `least_error` is the smallest possible error, such as the standard deviation of a cell's mean over its
    seeds: few cells may lie on the law by chance. Return None for fewer than two different x. A cell is one
    point, however many seeds it has, since all seeds of a cell deviate from the law together. So the error
    has n − 2 degrees of freedom (Draper and Smith 1998, chapter 1).
    """
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    if len(set(xs)) < 2:
        return None
    center, middle = mean(xs), mean(ys)
    spread = math.fsum((x - center) ** 2 for x in xs)
    exponent = math.fsum((x - center) * y for x, y in zip(xs, ys, strict=True)) / spread
    left = math.fsum((y - middle - exponent * (x - center)) ** 2 for x, y in zip(xs, ys, strict=True))
    degrees, error = len(points) - 2, None
    if left <= _ROUNDING**2 * max(1.0, *(y**2 for y in ys)):
        left = 0.0
    if degrees > 0 and (left or least_error):
        error = max(math.sqrt(left / degrees), least_error)
    return PowerLaw(
        coefficient=math.exp(middle - exponent * center),
        exponent=exponent,
        half_width=None if error is None else t_quantile(LEVEL, degrees + 1) * error / math.sqrt(spread),
        n=len(points),
        center=center,
        spread=spread,
        error=error,
    )


def fit_offset_law(points: Sequence[tuple[float, float]], least_error: float = 0.0) -> OffsetLaw | None:
    """Fit a power law with an offset of at least 0.

    Return None for fewer than three different x. `least_error` is that of `fit_power_law`.

    With u = x / (the largest x) the law is y = top · (s + (1 − s) u ** −α). α and s are searched on a grid
    that is refined several times. The logarithm of top is a mean.
    """
    if len({x for x, _ in points}) < 3:
        return None
    largest = max(x for x, _ in points)
    u = np.array([x / largest for x, _ in points])
    y = np.log([value for _, value in points])
    grid = _grid(u, y, *_WHOLE)
    for _ in range(_ZOOMS):
        place = _lowest(grid)
        steeps = _zoom(grid[0][:, 0], place[0], _WHOLE[0])
        grid = _grid(u, y, steeps, _zoom(grid[1][0], place[1], _WHOLE[1]))
    steep, share, top, left = (float(each[_lowest(grid)]) for each in grid)
    n, height = len(points), math.exp(top)
    degrees, likely = n - 3, None
    if degrees > 0:
        slack = t_quantile(LEVEL, degrees + 1) * max(math.sqrt(left / degrees), least_error)
        likely = _confidence_region(u, y, left, slack**2)
    return OffsetLaw(
        coefficient=height * (1 - share) * largest**steep,
        exponent=-steep,
        offset=height * share,
        exponent_interval=None if likely is None else (-float(likely[0].max()), -float(likely[0].min())),
        offset_interval=None if likely is None else _offsets(likely),
        n=n,
        largest=largest,
        likely=likely,
    )


def _grid(
    u: Numbers, y: Numbers, steeps: tuple[float, float], shares: tuple[float, float]
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return the best law at each point of a grid of exponents and offset shares.

    An offset share is the offset divided by the law's value at the largest x, which is `top`. The four arrays
    are exponents, shares, the best logarithm of `top` for each pair, and the sum of squared residuals.
    """
    steep, share = np.meshgrid(np.linspace(*steeps, _GRID), np.linspace(*shares, _GRID), indexing="ij")
    shape = np.log(share[..., None] + (1 - share[..., None]) * u ** -steep[..., None])
    over = y - shape  # (exponents, shares, cells)
    top = over.mean(axis=-1)
    return steep, share, top, ((over - top[..., None]) ** 2).sum(axis=-1)


def _zoom(values: Numbers, place: int, bounds: tuple[float, float]) -> tuple[float, float]:
    step = 4 * float(values[1] - values[0])
    return max(bounds[0], float(values[place]) - step), min(bounds[1], float(values[place]) + step)


def _confidence_region(u: Numbers, y: Numbers, lowest: float, slack: float) -> _ConfidenceRegion:
    """Return a confidence region: the laws with a small enough sum of squared errors.

    The sum may be up to `lowest` + `slack`. Each law has an exponent, an offset share, the logarithm of its
    value at the largest x, and half of the range of this logarithm.
    """
    # without the last term, an exact fit would leave no law but for rounding errors
    most = lowest + slack + _ROUNDING**2
    grid = _grid(u, y, *_WHOLE)
    for _ in range(_ZOOMS):
        within = _within(grid[3], most)
        steeps = _around(grid[0][:, 0], np.any(within, axis=1), _WHOLE[0])
        grid = _grid(u, y, steeps, _around(grid[1][0], np.any(within, axis=0), _WHOLE[1]))
    steep, share, top, left = (each[_within(grid[3], most)] for each in grid)
    return steep, share, top, np.sqrt(np.maximum(most - left, 0.0) / len(y))


def _within(left: Numbers, most: float) -> Choice:
    """Return a mask that selects the laws with small enough residuals.

    Their sums of squares (`left`) are at most `most`. If there are none, the best law is selected.
    """
    return left <= max(most, float(left.min()))


def _lowest(grid: tuple[Numbers, Numbers, Numbers, Numbers]) -> tuple[int, int]:
    row, column = divmod(int(grid[3].argmin()), _GRID)
    return row, column


def _around(values: Numbers, chosen: Choice, bounds: tuple[float, float]) -> tuple[float, float]:
    step, kept = float(values[1] - values[0]), values[chosen]
    return max(bounds[0], float(kept.min()) - step), min(bounds[1], float(kept.max()) + step)


def _offsets(likely: _ConfidenceRegion) -> tuple[float, float]:
    _, share, top, half = likely
    return float((share * np.exp(top - half)).min()), float((share * np.exp(top + half)).max())
