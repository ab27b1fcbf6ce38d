"""Means of a few values, and tests of differences that are paired by seed.

The tests come with corrections for multiple tests, and with the number of pairs that they need. Results are
bit-identical for any order of the values, and in any process. SciPy is loaded by the first call that needs
it, so that plain tables stay quick.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...errors import ActivememError
from ...studies.presentation.kinds import Spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL = 0.95
"""The level of confidence intervals."""


class Interval(NamedTuple):
    """A number with its interval. Both ends are None if they are unknown."""

    value: float
    low: float | None = None
    high: float | None = None


class StatisticsError(ActivememError):
    """Error for values that allow no result, such as an empty list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The mean of `n` values, with their spread and an interval.

    `spread` has the requested kind; for "ci" it is half the interval's width. `low` and `high` bound the
    interval, or are one spread from the mean. All three are None if there are too few values.
    """

    value: float
    low: float | None
    high: float | None
    spread: float | None
    n: int

    def within(self, bounds: tuple[float, float]) -> Estimate:
        """Clip the interval to possible values, such as [0, 1]."""
        if self.low is None or self.high is None:
            return self
        # the interval keeps its center, even where a plug-in goes beyond the bounds of its metric
        lowest, highest = min(bounds[0], self.value), max(bounds[1], self.value)
        return replace(self, low=max(self.low, lowest), high=min(self.high, highest))


def estimate(values: Iterable[float], *, spread: Spread = "sd") -> Estimate:
    """Return the mean of the values and their spread.

    Raise StatisticsError if there are no values, or if a value is not finite. "sd" is the sample standard
    deviation, "se" the standard error, and "ci" the t interval. If all values are equal, the standard
    deviation is 0, but the error and the interval are unknown.
    """
    found = finite_values(values)
    count, value, half = len(found), mean(found), sample_sd(found)
    if half is not None and spread != "sd":
        half = half / math.sqrt(count) or None
    if half is None:
        return Estimate(value=value, low=None, high=None, spread=None, n=count)
    half *= t_quantile(LEVEL, count - 1) if spread == "ci" else 1
    return Estimate(value=value, low=value - half, high=value + half, spread=half, n=count)


def mean(values: Sequence[float]) -> float:
    """Return the mean of values. Every bit is the same for any order of the values."""
    scale = power_of_two(values)
    return math.fsum([value / scale for value in values]) / len(values) * scale


def power_of_two(values: Iterable[float]) -> float:
    """Return a power of two by which values are divided before they are squared or added.

    It is 1, unless values are so large or so small that squares leave the range of floats. Dividing by it
    changes no digit.
    """
    largest = max(map(abs, values), default=0.0)
    return 1.0 if not largest or 1e-100 < largest < 1e100 else 2.0 ** (math.frexp(largest)[1] - 1)


def sample_sd(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation, with a divisor of n − 1. None for fewer than two values."""
    if len(values) < 2:
        return None
    if min(values) == max(values):  # their mean may be rounded, which would make deviations of equal values
        return 0.0
    center = mean(values)
    deviations = [value - center for value in values]
    scale = power_of_two(deviations)
    return scale * math.sqrt(math.fsum([(each / scale) ** 2 for each in deviations]) / (len(values) - 1))


@lru_cache(maxsize=1024)
def t_quantile(level: float, degrees: float) -> float:
    """Return the half-width of a t interval with these degrees of freedom, in standard errors."""
    from scipy.special import stdtrit  # noqa: PLC0415 -- a table of deviations does not need it

    return float(stdtrit(degrees, (1 + level) / 2))


def finite_values(values: Iterable[float]) -> list[float]:
    """Return the values as a list. Raise StatisticsError if the list is empty or a value is not finite."""
    found = array("d", values).tolist()
    if not found or not all(map(math.isfinite, found)):
        wrong = [value for value in found if not math.isfinite(value)]
        raise StatisticsError(f"expected finite values, got {', '.join(map(str, wrong)) or 'none'}")
    return found


SymmetryTest = Literal["permutation", "wilcoxon"]
"""The tests that assume only that differences are symmetric."""

TESTS: Mapping[SymmetryTest, str] = {
    "permutation": "paired permutation test",
    "wilcoxon": "Wilcoxon signed-rank test",
}
"""The name of each test in a caption."""

_MAX_EXACT_PAIRS = 20  # up to 2 ** 20 sign patterns are enumerated
_SAMPLED_PATTERNS = 19_999  # random sign patterns, if there are too many


def paired_p(differences: Iterable[float], *, test: SymmetryTest = "permutation") -> float:
    """Return the two-sided p-value of differences, such as those of values that are paired by seed.

    The permutation test flips the signs of the differences. Wilcoxon's test flips the signs of the ranks of
    the non-zero differences. Up to n = 20 all 2 ** n sign patterns are enumerated, for larger n a fixed
    random sample. Raise StatisticsError without a difference.
    """
    found = finite_values(differences)
    return _sign_flip_p(found if test == "permutation" else _signed_ranks(found))


def smallest_p(n: int) -> float:
    """Return the smallest p-value of an exact test of n pairs, such as 0.25 for n = 3."""
    return min(1.0, 2 * 0.5**n)


def t_test_p(errors: float, degrees: float) -> float:
    """Return the two-sided p-value of a t test that a mean is 0, which is `errors` standard errors away."""
    from scipy.special import stdtr  # noqa: PLC0415 -- a table of deviations does not need it

    return min(1.0, 2 * float(stdtr(degrees, -abs(errors))))


def signed_rank_sum(differences: Sequence[float]) -> float:
    """Return the sum of the signed ranks of differences. It is the statistic of Wilcoxon's test."""
    return math.fsum(_signed_ranks(differences))


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the median of the averages of all pairs of differences (Hodges and Lehmann 1963).

    A difference is also paired with itself. Differences may be infinite; ∞ and −∞ average to 0.
    """
    return median(_walsh_averages(differences, 0.0))


def signed_rank_interval(differences: Sequence[float], level: float) -> tuple[float, float] | None:
    """Return the interval of Wilcoxon's signed-rank test, an end of which may be infinite.

    Its ends are averages of pairs of differences, at the rank that the exact distribution of the test gives.
    Differences may be infinite; the average of ∞ and −∞ may be anything. Return None if there are too few
    differences for this level, or if neither end is finite.
    """
    patterns = [1]  # how many subsets of the ranks so far have each sum
    for rank in range(1, len(differences) + 1):
        longer = [*patterns, *[0] * rank]
        for total, count in enumerate(patterns):
            longer[total + rank] += count
        patterns = longer
    beyond, outside = 0, 0
    while 2 * (outside + patterns[beyond]) <= (1 - level) * 2 ** len(differences):
        outside += patterns[beyond]
        beyond += 1
    if not beyond:
        return None
    low = sorted(_walsh_averages(differences, -math.inf))[beyond - 1]
    high = sorted(_walsh_averages(differences, math.inf))[-beyond]
    return (low, high) if math.isfinite(low) or math.isfinite(high) else None


def _walsh_averages(differences: Sequence[float], opposite: float) -> list[float]:
    """Return the averages of all pairs of differences; `opposite` is that of ∞ and −∞."""
    averages = [(one + other) / 2 for one, other in combinations_with_replacement(differences, 2)]
    return [opposite if math.isnan(each) else each for each in averages]


def _signed_ranks(differences: Sequence[float]) -> list[float]:
    from scipy.stats import rankdata  # noqa: PLC0415 -- slow to load, and few ask for this test

    sizes = [difference for difference in differences if difference]
    ranks = rankdata([abs(size) for size in sizes])
    return [math.copysign(rank, size) for rank, size in zip(ranks, sizes, strict=True)]


def _sign_flip_p(weights: Sequence[float]) -> float:
    """Return the p-value of a sign-flip test of the sum of `weights`.

    It is the share of sign patterns whose sum is at least as far from 0 as the observed sum.
    """
    import numpy as np  # noqa: PLC0415 -- a table without tests does not need it

    # sorted, so that the order of the values does not change the rounding of the sums
    scale = power_of_two(weights)
    weights = [weight / scale for weight in weights]
    sizes = np.sort(np.abs(np.asarray(weights, dtype=float)))
    count, slack = len(sizes), 1e-12 * math.fsum(sizes)
    if count <= _MAX_EXACT_PAIRS:
        sums, extra = np.zeros(1), 0
        for size in sizes:  # each weight doubles the number of patterns
            sums = np.concatenate((sums - size, sums + size))
    else:
        sums, extra = _sampled_signs(count) @ sizes, 1  # the observed pattern is one of them
    # the slack counts sums that differ from the observed sum only by rounding
    reached = int(np.count_nonzero(np.abs(sums) >= abs(math.fsum(weights)) - slack))
    return (reached + extra) / (len(sums) + extra)


@lru_cache(maxsize=1)
def _sampled_signs(count: int) -> NDArray[np.float64]:
    """Return random sign patterns of `count` numbers, the same at each call, so that p stays the same."""
    import numpy as np  # noqa: PLC0415 -- as above

    return np.random.default_rng(0).choice((-1.0, 1.0), size=(_SAMPLED_PATTERNS, count))


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust the p-values of several tests by Holm's procedure.

    An adjusted p-value is compared with the level of a single test. No p-value becomes smaller or exceeds 1,
    and their order is kept (Holm 1979).
    """
    count, raised = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        raised = max(raised, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = raised
    return tuple(adjusted)


def hochberg_threshold(p_values: Sequence[float], alpha: float) -> float:
    """Return the significance threshold of Hochberg's procedure (1988).

    P-values up to this threshold are significant. It is `alpha` if all p-values are significant, and `alpha /
    n` if only one can be significant.
    """
    ordered = sorted(p_values, reverse=True)
    steps = (alpha / number for number, p in enumerate(ordered, 1) if p <= alpha / number)
    return next(steps, alpha / max(1, len(ordered)))


def hochberg_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust the p-values of several tests by Hochberg's procedure.

    An adjusted p-value is compared with the level of a single test.
    """
    lowest, adjusted = 1.0, [0.0] * len(p_values)
    descending = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    for number, index in enumerate(descending, 1):
        lowest = min(lowest, number * p_values[index])
        adjusted[index] = lowest
    return tuple(adjusted)


POWER = 0.8
"""The power at which a number of pairs counts as sufficient."""

MAX_PAIRS = 10_000
"""The maximum number of pairs that is reported as needed."""


def pairs_needed(
    effect_size: float, level: float, *, min_pairs: int = 2, degrees_per_pair: float = 1.0
) -> int | None:
    """Return how many pairs a t test needs to detect an effect with a power of 80 % (POWER).

    `effect_size` is in standard deviations. Each pair after the first adds `degrees_per_pair` degrees of
    freedom: more than 1 if the variance is pooled. The result is at least `min_pairs`; None if more than
    MAX_PAIRS are needed.
    """
    from scipy.special import nctdtr  # noqa: PLC0415 -- a table without tests does not need it

    def power(n: int) -> float:
        degrees = degrees_per_pair * (n - 1)
        return 1.0 - float(nctdtr(degrees, effect_size * math.sqrt(n), t_quantile(level, degrees)))

    # the power grows with n
    found = bisect_left(range(MAX_PAIRS + 1), POWER, lo=min_pairs, key=power)
    return found if found <= MAX_PAIRS else None


def detectable(error: float, degrees: float, level: float) -> float:
    """Return the smallest difference that a two-sided t test detects with a power of 80 % (POWER).

    `error` is the standard error of the difference, `degrees` its degrees of freedom, and `level` the
    significance level.
    """
    from scipy.special import nctdtrinc  # noqa: PLC0415 -- as above

    return float(nctdtrinc(degrees, 1.0 - POWER, t_quantile(1 - level, degrees))) * error
