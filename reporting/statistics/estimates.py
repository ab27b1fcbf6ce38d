"""The centre of a few values and its spread: standard deviation, standard error or confidence interval.

Results are bit-identical for any order of the values, and in any process. NumPy and SciPy are loaded by the
first call that needs them, so that plain tables stay quick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ...errors import ActivememError
from ...studies.presentation.kinds import Center, Spread

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_RESAMPLES = 9_999  # of a bootstrap


class StatisticsError(ActivememError):
    """Values that allow no result; the message has the expected and actual values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A centre of `n` values with its spread.

    `spread` has the requested kind; for "ci" it is half the interval's width. `low` and `high` bound the
    interval, or are one spread from the centre. All three are None if there are too few values.
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


def estimate(
    values: Iterable[float], *, center: Center = "mean", spread: Spread = "sd", level: float = 0.95
) -> Estimate:
    """Return the centre of the values and their spread.

    Raise StatisticsError for no or non-finite values. "iqm" is the mean without the lowest and highest
    quarters of the values, each rounded down (Agarwal et al.

    2021). "sd" is the sample standard deviation around the mean, for any centre. "se" and "ci" are the
    standard error and the t interval of a mean. For other centres both come from a bootstrap. It gives no
    interval below the number of values that its level needs: 6 for 95 %. Equal values have a deviation of 0,
    but say nothing about an error or an interval.
    """
    ordered = sorted(finite_values(values))
    count, value = len(ordered), _CENTERS[center](ordered)
    half = None
    if spread == "sd":
        half = sample_sd(ordered)
    elif center == "mean":
        half = _standard_error(ordered) or None
        if half is not None and spread == "ci":
            half *= t_quantile(level, count)
    elif spread == "se":
        half = (float(_bootstrap(ordered, center).std(ddof=1)) if len(ordered) > 1 else None) or None
    elif ordered[0] < ordered[-1] and (interval := _bootstrap_interval(ordered, center, level)):
        low, high = interval
        return Estimate(value=value, low=low, high=high, spread=(high - low) / 2, n=count)
    if half is None:
        return Estimate(value=value, low=None, high=None, spread=None, n=count)
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


def _median(ordered: Sequence[float]) -> float:
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else mean(ordered[half - 1 : half + 1])


def _interquartile_mean(ordered: Sequence[float]) -> float:
    cut = len(ordered) // 4
    return mean(ordered[cut : len(ordered) - cut])


_CENTERS: Mapping[Center, Callable[[Sequence[float]], float]] = {
    "mean": mean,
    "median": _median,
    "iqm": _interquartile_mean,
}


def _standard_error(values: Sequence[float]) -> float | None:
    spread = sample_sd(values)
    return None if spread is None else spread / math.sqrt(len(values))


def _bootstrap(ordered: Sequence[float], center: Center) -> Floats:
    import numpy as np  # noqa: PLC0415 -- only a median or an iqm needs it

    generator, count = np.random.default_rng(0), len(ordered)
    picks = generator.integers(count, size=(_RESAMPLES, count))
    samples = np.sort(np.asarray(ordered)[picks], axis=1)  # (resamples, values)
    cut = (count - 1) // 2 if center == "median" else count // 4
    return np.sort(samples[:, cut : count - cut].mean(axis=1))


def _bootstrap_interval(ordered: Sequence[float], center: Center, level: float) -> tuple[float, float] | None:
    """Return the percentile interval of the centre, widened for few values (Hesterberg 2015).

    No resample leaves the range of the values. That range misses the population's median with a chance of 2
    ** (1 - n). The interval is None if the level does not allow this chance.
    """
    import numpy as np  # noqa: PLC0415 -- only a median or an iqm needs it
    from scipy.special import ndtr  # noqa: PLC0415 -- as above

    count = len(ordered)
    if 2.0 ** (1 - count) > 1 - level:
        return None
    tail = float(ndtr(-math.sqrt(count / (count - 1)) * t_quantile(level, count)))
    low, high = np.quantile(_bootstrap(ordered, center), [tail, 1 - tail])
    return float(low), float(high)
