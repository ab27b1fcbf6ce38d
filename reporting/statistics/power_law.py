"""A power law fitted to cells: y = a xᵇ, as a straight line through their logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .estimates import mean, t_quantile

_ROUNDING = 1e-12  # a deviation this small beside the values is nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """The law through `n` cells; without an interval where they are two, or where nothing is left over.

    `center` and `spread` are the mean of the logarithms of x and the sum of squares around it; `error` is the
    standard deviation of what is left over.
    """

    coefficient: float
    exponent: float
    half_width: float | None
    n: int
    center: float
    spread: float
    error: float | None
    level: float

    def at(self, x: float) -> tuple[float, float | None, float | None]:
        """The law at x with the line's interval, in logarithms t s √(1/n + (x − x̄)²/Sxx) to either side."""
        place = math.log(x) - self.center
        middle = math.log(self.coefficient) + self.exponent * math.log(x)
        if self.error is None:
            return math.exp(middle), None, None
        half = t_quantile(self.level, self.n - 1) * self.error
        half *= math.sqrt(1 / self.n + place**2 / self.spread)
        return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def fit_power_law(points: Sequence[tuple[float, float]], *, level: float = 0.95) -> PowerLaw | None:
    """The law by least squares on the logarithms of x and y, both above 0; None without two different x.

    A cell is one point, whatever its seeds, since cells stray from a law together with all of theirs: so the
    error has n − 2 degrees of freedom (Draper and Smith 1998, chapter 1).
    """
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    if len(set(xs)) < 2:
        return None
    center, middle = mean(xs), mean(ys)
    spread = math.fsum((x - center) ** 2 for x in xs)
    exponent = math.fsum((x - center) * y for x, y in zip(xs, ys, strict=True)) / spread
    left = math.fsum((y - middle - exponent * (x - center)) ** 2 for x, y in zip(xs, ys, strict=True))
    degrees = len(points) - 2
    is_known = degrees > 0 and left > _ROUNDING**2 * max(1.0, *(y**2 for y in ys))
    error = math.sqrt(left / degrees) if is_known else None
    return PowerLaw(
        coefficient=math.exp(middle - exponent * center),
        exponent=exponent,
        half_width=None if error is None else t_quantile(level, degrees + 1) * error / math.sqrt(spread),
        n=len(points),
        center=center,
        spread=spread,
        error=error,
        level=level,
    )
