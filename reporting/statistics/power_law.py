"""Power laws, y = a xᵇ, fitted to cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .estimates import LEVEL, mean, t_quantile

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

    def at(self, x: float) -> tuple[float, float | None, float | None]:
        """Return the law's value at x, with its interval.

        The interval is ± t s √(1/n + (x − x̄)²/Sxx) on logarithms.
        """
        place = math.log(x) - self.center
        middle = math.log(self.coefficient) + self.exponent * math.log(x)
        if self.error is None:
            return math.exp(middle), None, None
        half = t_quantile(LEVEL, self.n - 1) * self.error
        half *= math.sqrt(1 / self.n + place**2 / self.spread)
        return math.exp(middle), math.exp(middle - half), math.exp(middle + half)

    def next_cell(self, x: float) -> tuple[float, float | None, float | None]:
        """Predict the result of a new cell with the cost x, with an interval.

        The interval includes the cell's own deviation from the law.
        """
        middle, low, _ = self.at(x)
        if low is None or self.error is None:
            return middle, None, None
        own = t_quantile(LEVEL, self.n - 1) * self.error
        half = math.hypot(math.log(middle / low), own)
        return middle, middle * math.exp(-half), middle * math.exp(half)


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
