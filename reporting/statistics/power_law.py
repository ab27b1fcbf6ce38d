"""Power laws fitted to cells: y = a xᵇ, or y = e + a xᵇ with an offset e and b < 0.

They are fitted by least squares on logarithms. Without an offset, the model is linear. With one, b and e have
profile intervals (Bates and Watts 1988, section 6.1), and predictions the intervals of the linearised model
(section 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .estimates import LEVEL, Interval, mean, t_quantile, t_test_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.float64]

MIN_OFFSET_CELLS = 4
"""The minimum number of cells for an interval of a law with an offset."""

_FLATTEST = -1e-3  # the largest exponent of a law with an offset
_STEEPEST = -100.0  # its smallest exponent, times the range of the logarithms of x
_STARTS = (0.0, 0.5, 0.9)  # the offsets where the search for the best one begins, as shares of the lowest y
_TOLERANCE = 1e-14

_MAX_POWER = 709.0  # the exponential of a larger number is no float

_ROUNDING = 1e-12  # smaller deviations relative to the values count as zero


class PowerLaw:
    """A law y = offset + coefficient · x ** exponent fitted to `n` cells.

    `exponent_interval` is the exponent's interval; without an offset, `half_width` is half of its width. The
    `offset` is None if the law has none. Ends of intervals are infinite if the cells do not bound them.
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
        self.coefficient = _exp(level - self.exponent * center)
        self.offset = offset[0] if offset else None
        self.half_width = None if offset else self._half_width(np.array([0.0, 1.0]))
        self.exponent_interval: tuple[float, float] | None = None
        self.offset_interval: tuple[float, float] | None = None
        if self.half_width is not None:
            self.exponent_interval = self.exponent - self.half_width, self.exponent + self.half_width

    def at(self, x: float, own: float = 0.0) -> Interval:
        """Return the law's value at x, with an interval whose variance includes `own` times error²."""
        logs, rows = _evaluate(self._parameters, np.array([math.log(x) - self._center]))
        middle, half = float(logs[0]), self._half_width(rows[0], own)
        if half is None:
            return Interval(_exp(middle))
        return Interval(_exp(middle), _exp(middle - half), _exp(middle + half))

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


def _exp(power: float) -> float:
    """Return e to this power; infinity if it is too large for a float."""
    return math.exp(power) if power < _MAX_POWER else math.inf


def exponent_difference(law: PowerLaw, other: PowerLaw) -> tuple[Interval, float] | None:
    """Return the difference of the exponents of two laws without an offset, with its interval and its p.

    Welch's t test for slopes: the variances of both exponents add up, with Satterthwaite's degrees of freedom
    (Zar 2010, section 18.1, without its assumption of equal variances). It assumes that the logarithms of
    cells deviate from their law independently and normally. Deviations that both laws share, as those of
    equal sizes with the same data, make it cautious. Return None unless both exponents have an interval.
    """
    widths = [(each.half_width, each.n) for each in (law, other) if each.half_width is not None]
    if len(widths) < 2:
        return None
    one, two = ((width / t_quantile(LEVEL, n - 2)) ** 2 for width, n in widths)
    degrees = (one + two) ** 2 / (one**2 / (law.n - 2) + two**2 / (other.n - 2))
    difference, error = law.exponent - other.exponent, math.sqrt(one + two)
    half = t_quantile(LEVEL, degrees) * error
    return Interval(difference, difference - half, difference + half), t_test_p(difference / error, degrees)


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
    seeds: few cells may lie on the law by chance. Return None if there are fewer different x than parameters,
    and if y does not fall where a law with an offset does. A cell is one point, however many seeds it has,
    since all seeds of a cell deviate from the law together (Draper and Smith 1998, chapter 1).
    """
    if len({x for x, _ in points}) < 2 + offset:
        return None
    x, y = np.log(np.array(points)).T
    center = float(x.mean())
    curve = _OffsetLaw(x - center, y) if offset else None
    parameters = curve.best() if curve else np.polyfit(x - center, y, 1)[::-1]
    if parameters is None:
        return None
    logs, rows = _evaluate(parameters, x - center)
    left, degrees, error = float(((y - logs) ** 2).sum()), len(points) - len(parameters), None
    if left <= _ROUNDING**2 * max(1.0, float((y**2).max())):
        left = 0.0
    if degrees > 0 and (left or least_error):
        error = max(math.sqrt(left / degrees), least_error)
    law = PowerLaw(
        parameters=parameters,
        center=center,
        n=len(points),
        error=error,
        covariance=np.linalg.pinv(rows.T @ rows, hermitian=True).astype(np.float64),
    )
    if curve is not None and error is not None:
        limit = left + (t_quantile(LEVEL, degrees) * error) ** 2
        law.exponent_interval, law.offset_interval = (curve.profile(parameters, at, limit) for at in (1, 2))
    return law


def _evaluate(parameters: Numbers, places: Numbers) -> tuple[Numbers, Numbers]:
    """Return the logarithm of a law at each place, and a row of its derivatives by the parameters.

    A place is the logarithm of x minus the center.
    """
    part = np.exp(parameters[0] + parameters[1] * places)
    value = part + sum(parameters[2:])
    columns = [part, places * part, np.ones_like(part)][: len(parameters)]
    return np.log(value), np.column_stack(columns) / value[:, None]


class _OffsetLaw:
    """Laws with an offset through cells at `places`, whose results have the logarithms `y`."""

    def __init__(self, places: Numbers, y: Numbers) -> None:
        self._places, self._y, self._lowest = places, y, math.exp(float(y.min()))
        steepest = _STEEPEST / float(np.ptp(places))
        self._bounds = np.array([[-np.inf, steepest, 0.0], [np.inf, _FLATTEST, np.inf]])

    def best(self) -> Numbers | None:
        """Return the parameters of the best law, from several starts; None if the results do not fall."""
        slope = float(np.polyfit(self._places, self._y, 1)[0])
        found = (self._fit(min(slope, 2 * _FLATTEST), share * self._lowest) for share in _STARTS)
        parameters, _ = min(found, key=lambda each: each[1])
        return parameters if slope < 0 and parameters[1] < 2 * _FLATTEST else None

    def profile(self, best: Numbers, at: int, limit: float) -> tuple[float, float]:
        """Return the lowest and the highest value of a parameter with which a law is good enough.

        The squares of its deviations add up to at most `limit`. An end at the bound of offsets or exponents
        is that bound, except that the steepest exponents are unbounded.
        """
        from scipy.optimize import root_scalar  # noqa: PLC0415 -- slow to load, and few laws have an offset

        def excess(value: float) -> float:
            fixed = [*best[:at], value, *best[at + 1 :]]
            return self._fit(*fixed[1:], fixed=at)[1] - limit

        ends = list[float]()
        for side, bound in zip((-1, 1), self._bounds[:, at], strict=True):
            inner, step = float(best[at]), side * (self._lowest / 10 if at == 2 else abs(best[1]) / 4)
            while inner != bound:
                outer = min(inner + step, bound) if side > 0 else max(inner + step, bound)
                if excess(outer) > 0:
                    inner = root_scalar(excess, bracket=(inner, outer), rtol=1e-6).root
                    break
                inner, step = outer, 2 * step
            ends.append(-math.inf if inner == bound and at == 1 and side < 0 else float(inner))
        return ends[0], ends[1]

    def _fit(self, exponent: float, offset: float, fixed: int | None = None) -> tuple[Numbers, float]:
        """Return the parameters of the best law, from one start, and the sum of its squared deviations.

        The start has the result of the first cell. The parameter `fixed` keeps its value.
        """
        from scipy.optimize import least_squares  # noqa: PLC0415 -- as above

        first = math.exp(self._y[0])
        level = math.log(max(first - offset, 1e-3 * first)) - exponent * self._places[0]
        start, free = np.array([level, exponent, offset]), np.array([at for at in range(3) if at != fixed])

        def whole(part: Numbers) -> Numbers:
            found = start.copy()
            found[free] = part
            return found

        found = least_squares(
            lambda part: _evaluate(whole(part), self._places)[0] - self._y,
            start[free],
            jac=lambda part: _evaluate(whole(part), self._places)[1][:, free],  # pyright: ignore[reportArgumentType] -- the stub only has names
            bounds=self._bounds[:, free],
            x_scale="jac",
            ftol=_TOLERANCE,
            xtol=_TOLERANCE,
            gtol=_TOLERANCE,
        )
        return whole(found.x), 2 * float(found.cost)
