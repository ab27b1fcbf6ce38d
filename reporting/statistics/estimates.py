"""The mean of a few values and its spread: standard deviation, standard error or confidence interval.

Results are bit-identical for any order of the values, and in any process. SciPy is loaded by the
first call that needs it, so that plain tables stay quick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ...errors import ActivememError
from ...studies.presentation.kinds import Spread


class StatisticsError(ActivememError):
    """Values that allow no result; the message has the expected and actual values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The mean of `n` values with its spread.

    `spread` has the requested kind; for "ci" it is half the interval's width. `low` and `high` bound the
    interval, or are one spread from the mean. All three are None if there are too few values.
    """

    value: float
    low: float | None
    high: float | None
    spread: float | None
    n: int

    def within_share(self) -> Estimate:
        """Return the estimate with its ends clipped to [0, 1], for a metric that is a share."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(self.low, 0.0), high=min(self.high, 1.0))


def estimate(values: Iterable[float], *, spread: Spread = "sd", level: float = 0.95) -> Estimate:
    """Return the mean of the values and its spread.

    Raise StatisticsError for no or non-finite values. "sd" is the sample standard deviation, "se" the
    standard error, and "ci" the t interval. Equal values have a deviation of 0, but say nothing about an
    error or an interval.
    """
    found = finite_values(values)
    count, value, half = len(found), mean(found), sample_sd(found)
    if half is not None and spread != "sd":
        half = half / math.sqrt(count) or None
    if half is None:
        return Estimate(value=value, low=None, high=None, spread=None, n=count)
    half *= t_quantile(level, count) if spread == "ci" else 1
    return Estimate(value=value, low=value - half, high=value + half, spread=half, n=count)


def mean(values: Sequence[float]) -> float:
    """Return the mean, bit-identical for any order of the values."""
    return math.fsum(values) / len(values)


def sample_sd(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation, with a divisor of n − 1; None below two values."""
    if len(values) < 2:
        return None
    center = mean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))


@lru_cache(maxsize=1024)
def t_quantile(level: float, count: float) -> float:
    """Return the half width, in standard errors, of a two-sided t interval of `count` values."""
    from scipy.special import stdtrit  # noqa: PLC0415 -- a table of deviations does not need it

    return float(stdtrit(count - 1, (1 + level) / 2))


def finite_values(values: Iterable[float]) -> list[float]:
    """Return the values as a list; raise StatisticsError if there are none, or one is not finite."""
    found = [float(value) for value in values]
    wrong = [value for value in found if not math.isfinite(value)]
    if not found or wrong:
        raise StatisticsError(f"expected finite values, got {', '.join(map(str, wrong)) or 'none'}")
    return found
