"""Power laws fitted to cells: y = a xᵇ, or y = e + a xᵇ with an offset e and b < 0.

They are fitted by least squares on logarithms. The intervals of a law with an offset are those of the
linearised model (Bates and Watts 1988, section 2.3); without an offset, the model is linear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .estimates import LEVEL, Interval, mean, t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.float64]

MIN_OFFSET_CELLS = 4
"""The minimum number of cells for an interval of a law with an offset."""

_FLATTEST = -1e-3  # the largest exponent of a law with an offset
_STARTS = (0.0, 0.5, 0.9)  # the offsets where the search for the best one begins, as shares of the lowest y
_TOLERANCE = 1e-14

_ROUNDING = 1e-12  # smaller deviations relative to the values count as zero


class PowerLaw:
    """A law y = offset + coefficient · x ** exponent fitted to `n` cells.

    `half_width` is half of the width of the exponent's interval, and `exponent_interval` this interval. The
    `offset` is None if the law has none. `offset_interval` is at least 0.
    """

    def __init__(
        self, *, parameters: Numbers, center: float, n: int, error: float | None, covariance: Numbers
    ) -> None:
        """Make a law from fitted parameters.

        `parameters` are the logarithm of a xᵇ at the center, b and, in a law with an offset, the offset.
        `center` is the mean logarithm of x. `error` is the residual standard deviation, or that of the cells'
        means over seeds if that is larger. It is None if there are no degrees of freedom, or if the law fits
        cells with one seed exactly; then there are no intervals. `covariance` is that of the parameters,
        divided by error².
        """
        self.n, self.error, self._parameters, self._center = n, error, parameters, center
        self._covariance = covariance
        level, self.exponent, *offset = map(float, parameters)
        self.coefficient = math.exp(level - self.exponent * center)
        self.offset = offset[0] if offset else None
        _, self.half_width, *offset_half = map(self._half_width, np.eye(len(parameters)))
        self.exponent_interval = self.offset_interval = None
        if self.half_width is not None:
            self.exponent_interval = self.exponent - self.half_width, self.exponent + self.half_width
        if self.offset is not None and offset_half[0] is not None:
            self.offset_interval = max(0.0, self.offset - offset_half[0]), self.offset + offset_half[0]

    def at(self, x: float, own: float = 0.0) -> Interval:
        """Return the law's value at x, with an interval whose variance includes `own` times error²."""
        logs, rows = _evaluate(self._parameters, np.array([math.log(x) - self._center]))
        middle, half = float(logs[0]), self._half_width(rows[0], own)
        if half is None:
            return Interval(math.exp(middle))
        return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))

    def next_cell(self, x: float) -> Interval:
        """Predict the result of a new cell with the cost x. The interval includes its own deviation."""
        return self.at(x, 1.0)

    def _half_width(self, row: Numbers, own: float = 0.0) -> float | None:
        """Return half of the width of the interval of a weighted sum of the parameters.

        `own` is added to its variance, in units of error².
        """
        if self.error is None:
            return None
        quantile = t_quantile(LEVEL, self.n - len(self._parameters))
        return quantile * self.error * math.sqrt(float(row @ self._covariance @ row) + own)


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


def fit_power_law(
    points: Sequence[tuple[float, float]], least_error: float = 0.0, *, offset: bool = False
) -> PowerLaw | None:
    """Fit a power law by least squares on logarithms. All x and y must be above 0.

    `least_error` is the smallest possible error, such as the standard deviation of a cell's mean over its
    seeds: few cells may lie on the law by chance. Return None if there are fewer different x than parameters.
    A cell is one point, however many seeds it has, since all seeds of a cell deviate from the law together
    (Draper and Smith 1998, chapter 1).
    """
    if len({x for x, _ in points}) < 2 + offset:
        return None
    x, y = np.log(np.array(points)).T
    center = float(x.mean())
    parameters = _best_with_offset(x - center, y) if offset else np.polyfit(x - center, y, 1)[::-1]
    logs, rows = _evaluate(parameters, x - center)
    left, degrees, error = float(((y - logs) ** 2).sum()), len(points) - len(parameters), None
    if left <= _ROUNDING**2 * max(1.0, float((y**2).max())):
        left = 0.0
    if degrees > 0 and (left or least_error):
        error = max(math.sqrt(left / degrees), least_error)
    return PowerLaw(
        parameters=parameters,
        center=center,
        n=len(points),
        error=error,
        covariance=np.linalg.pinv(rows.T @ rows, hermitian=True).astype(np.float64),
    )


def _evaluate(parameters: Numbers, places: Numbers) -> tuple[Numbers, Numbers]:
    """Return the logarithm of a law at each place, and a row of its derivatives by the parameters.

    A place is the logarithm of x minus the center.
    """
    part = np.exp(parameters[0] + parameters[1] * places)
    value = part + sum(parameters[2:])
    columns = [part, places * part, np.ones_like(part)][: len(parameters)]
    return np.log(value), np.column_stack(columns) / value[:, None]


def _best_with_offset(places: Numbers, y: Numbers) -> Numbers:
    """Return the parameters of the best law with an offset, from several starts."""
    from scipy.optimize import least_squares  # noqa: PLC0415 -- slow to load, and few laws have an offset

    lowest = math.exp(float(y.min()))
    found = []
    for share in _STARTS:
        slope, level = np.polyfit(places, np.log(np.exp(y) - share * lowest), 1)
        found.append(
            least_squares(
                lambda parameters: _evaluate(parameters, places)[0] - y,
                [level, min(slope, 2 * _FLATTEST), share * lowest],
                bounds=([-np.inf, -np.inf, 0.0], [np.inf, _FLATTEST, np.inf]),
                x_scale="jac",
                ftol=_TOLERANCE,
                xtol=_TOLERANCE,
                gtol=_TOLERANCE,
            )
        )
    return min(found, key=lambda each: each.cost).x
