"""What a few seeds can say: centres with their intervals, paired comparisons, and Holm's correction.

Everything is the same to the last bit in any order of the values, and for one `seed` in any process.
NumPy and SciPy are loaded by the first call that needs them, so that plain tables stay quick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from ...errors import ActivememError
from ...studies.schema.table import Center, Spread, Test

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

Alternative = Literal["two-sided", "greater", "less"]

POWER = 0.8
"""The chance to find an effect that is there, at which `Comparison.needed` pairs would do."""

MAX_PAIRS = 10_000
"""An effect that needs more pairs than these is one of which nothing useful can be said."""

_MAX_EXACT_PAIRS = 14  # up to 2 ** 14 sign patterns are all counted
_SAMPLED_PATTERNS = 19_999  # of sign patterns, where they are too many
_RESAMPLES = 9_999  # of a bootstrap


class StatisticsError(ActivememError):
    """Values from which nothing can be computed; the message says what was expected and what came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A centre of `n` values, and how far it may be off.

    `spread` is what was asked for, half the interval's width for "ci"; `low` and `high` lie that far from the
    value, or bound its interval. All three are None where so few values do not allow them.
    """

    value: float
    low: float | None
    high: float | None
    spread: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """The mean difference of `n` pairs, first less second, and how sure it is.

    `low` and `high` bound the two-sided t interval of the mean difference, None below two pairs. `test` names
    how `p` was found. `needed` pairs of this effect and spread would be found significant with a chance of
    POWER; None where it cannot be said: no spread, no effect, one of the other sign, or above MOST_PAIRS.
    """

    effect: float
    low: float | None
    high: float | None
    p: float
    n: int
    test: str
    needed: int | None


def estimate(
    values: Iterable[float],
    *,
    center: Center = "mean",
    spread: Spread = "sd",
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The centre of the values, and their spread; StatisticsError without values, or with one not finite.

    "iqm" is the mean of what is left when a quarter of the values, rounded down, is cut off at either end
    (Agarwal et al. 2021). "sd" is the sample standard deviation around the mean, whatever the centre. "se" is
    the standard error and "ci" the t interval of a mean; of the other centres both are a bootstrap's, and
    there is no interval below the number of values that its level takes: 6 for 95 %.
    """
    ordered = sorted(_finite(values))
    count, value = len(ordered), _CENTERS[center](ordered)
    half = None
    if spread == "sd":
        half = sample_sd(ordered)
    elif center == "mean":
        half = _standard_error(ordered)
        if half is not None and spread == "ci":
            half *= t_quantile(level, count)
    elif spread == "se":
        half = _bootstrap_error(ordered, center, seed)
    else:
        interval = _bootstrap_interval(ordered, center, level, seed)
        if interval is None:
            return Estimate(value=value, low=None, high=None, spread=None, n=count)
        low, high = interval
        return Estimate(value=value, low=low, high=high, spread=(high - low) / 2, n=count)
    if half is None:
        return Estimate(value=value, low=None, high=None, spread=None, n=count)
    return Estimate(value=value, low=value - half, high=value + half, spread=half, n=count)


def compare_paired(
    first: Mapping[int, float],
    second: Mapping[int, float],
    *,
    test: Test = "permutation",
    level: float = 0.95,
    alternative: Alternative = "two-sided",
) -> PairedComparison:
    """Compare two sets of values by seed, on the seeds that both have; StatisticsError if there are none.

    The permutation test flips the signs of the differences; Wilcoxon's flips those of their ranks, zeros left
    out. All 2 ** n patterns are counted up to n = 14, else a fixed draw of them. So p is never below 2 ** -n,
    or 2 ** (1 - n) two-sided: 0.25 with 3 seeds, however large the effect.
    """
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        raise StatisticsError(
            f"expected a seed that both have, got {_format_seeds(first)} and {_format_seeds(second)}"
        )
    differences = _finite(first[seed] - second[seed] for seed in seeds)
    count, effect, error = len(differences), mean(differences), _standard_error(differences)
    half = None if error is None else error * t_quantile(level, count)
    weights = differences if test == "permutation" else _signed_ranks(differences)
    how = "exact" if len(weights) <= _MAX_EXACT_PAIRS else f"{_SAMPLED_PATTERNS:,} draws"
    return PairedComparison(
        effect=effect,
        low=None if half is None else effect - half,
        high=None if half is None else effect + half,
        p=_sign_flips(weights, alternative),
        n=count,
        test=f"{TESTS[test]}, {how}",
        needed=_needed(effect, sample_sd(differences), level, alternative),
    )


TESTS: Mapping[Test, str] = {
    "permutation": "paired permutation test",
    "wilcoxon": "Wilcoxon signed-rank test",
}
"""How a caption names each test."""


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p values of a family, each raised so that it can be held to the level of a single test (Holm 1979).

    None is lowered, their order stays, and none passes 1.
    """
    count, raised = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        raised = max(raised, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = raised
    return tuple(adjusted)


def mean(values: Sequence[float]) -> float:
    """The mean, the same to the last bit in any order of the values."""
    return math.fsum(values) / len(values)


def sample_sd(values: Sequence[float]) -> float | None:
    """The sample standard deviation, of squares divided by count - 1; None below two values."""
    if len(values) < 2:
        return None
    center = mean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))


def hochberg_threshold(p_values: Sequence[float], alpha: float) -> float:
    """The largest p that counts as significant in a family (Hochberg 1988): all that are at most this are.

    It is `alpha` where every p is, and `alpha / n` where only one can be.
    """
    ordered = sorted(p_values, reverse=True)
    steps = (alpha / number for number, p in enumerate(ordered, 1) if p <= alpha / number)
    return next(steps, alpha / max(1, len(ordered)))


def hochberg_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p values of a family, each raised so that it can be held to the level of a single test."""
    lowest, adjusted = 1.0, [0.0] * len(p_values)
    descending = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    for number, index in enumerate(descending, 1):
        lowest = min(lowest, number * p_values[index])
        adjusted[index] = lowest
    return tuple(adjusted)


@lru_cache(maxsize=1024)
def t_quantile(level: float, count: int) -> float:
    """How many standard errors a two-sided t interval of this many values reaches to either side."""
    from scipy.special import stdtrit  # noqa: PLC0415 -- a table of deviations does not need it

    return float(stdtrit(count - 1, (1 + level) / 2))


def t_test_p(errors: float, count: int) -> float:
    """The two-sided p of a mean of `count` values that lies so many standard errors off."""
    from scipy.special import stdtr  # noqa: PLC0415 -- a table of deviations does not need it

    return min(1.0, 2 * float(stdtr(count - 1, -abs(errors))))


def pairs_needed(effect_size: float, level: float, *, sides: int = 2, min_pairs: int = 2) -> int | None:
    """How many pairs a t test takes to find an effect of `size` deviations with a chance of POWER.

    At least `fewest`; None above MOST_PAIRS.
    """
    low, high = min_pairs - 1, min_pairs
    while _power(effect_size, high, level, sides) < POWER:
        if high > MAX_PAIRS:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect_size, middle, level, sides) >= POWER else (middle, high)
    return high if high <= MAX_PAIRS else None


def smallest_p(n: int, alternative: Alternative = "two-sided") -> float:
    """The smallest p that either paired test can give with n pairs."""
    return min(1.0, (2 if alternative == "two-sided" else 1) * 0.5**n)


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


def _bootstrap(ordered: Sequence[float], center: Center, seed: int) -> Floats:
    """The centre of each of many resamples, sorted."""
    import numpy as np  # noqa: PLC0415 -- only a median or an iqm needs it

    generator, count = np.random.default_rng(seed), len(ordered)
    picks = generator.integers(count, size=(_RESAMPLES, count))
    samples = np.sort(np.asarray(ordered)[picks], axis=1)  # (resamples, values)
    cut = (count - 1) // 2 if center == "median" else count // 4
    return np.sort(samples[:, cut : count - cut].mean(axis=1))


def _bootstrap_error(ordered: Sequence[float], center: Center, seed: int) -> float | None:
    """The standard deviation of the centre over resamples; None below two values."""
    return float(_bootstrap(ordered, center, seed).std(ddof=1)) if len(ordered) > 1 else None


def _bootstrap_interval(
    ordered: Sequence[float], center: Center, level: float, seed: int
) -> tuple[float, float] | None:
    """The percentile interval of the centre, its percentiles moved outwards for few values (Hesterberg 2015).

    No resample leaves the range of the values, and that range misses the median of what they are drawn from
    with a chance of 2 ** (1 - n); so there is no interval where this chance is above what the level allows.
    """
    import numpy as np  # noqa: PLC0415 -- only a median or an iqm needs it
    from scipy.special import ndtr  # noqa: PLC0415 -- as above

    count = len(ordered)
    if smallest_p(count) > 1 - level:
        return None
    tail = float(ndtr(-math.sqrt(count / (count - 1)) * t_quantile(level, count)))
    low, high = np.quantile(_bootstrap(ordered, center, seed), [tail, 1 - tail])
    return float(low), float(high)


def _signed_ranks(differences: Sequence[float]) -> list[float]:
    """The ranks of the differences that are not 0 by their size, with their signs; ties share a rank."""
    from scipy.stats import rankdata  # noqa: PLC0415 -- slow to load, and few ask for this test

    sizes = [difference for difference in differences if difference]
    ranks = rankdata([abs(size) for size in sizes])
    return [math.copysign(rank, size) for rank, size in zip(ranks, sizes, strict=True)]


def _sign_flips(weights: Sequence[float], alternative: Alternative) -> float:
    """The share of sign patterns under which the sum of the weights is as extreme as it is."""
    import numpy as np  # noqa: PLC0415 -- a table without tests does not need it

    sizes = np.sort(np.abs(np.asarray(weights, dtype=float)))
    count, slack = len(sizes), 1e-12 * math.fsum(sizes)
    found = math.fsum(weights) * (-1 if alternative == "less" else 1)
    if count <= _MAX_EXACT_PAIRS:
        signs = 1.0 - 2.0 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)  # (patterns, weights)
        extra = 0
    else:
        signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(_SAMPLED_PATTERNS, count))
        extra = 1  # the pattern that was found is one of them
    sums = signs @ sizes
    if alternative == "two-sided":
        sums, found = np.abs(sums), abs(found)
    reached = int(np.count_nonzero(sums >= found - slack))
    return (reached + extra) / (len(sums) + extra)


def _needed(effect: float, spread: float | None, level: float, alternative: Alternative) -> int | None:
    """The fewest pairs that both tests can call significant, and a t test does with a chance of POWER."""
    toward = {"two-sided": abs(effect), "greater": effect, "less": -effect}[alternative]
    if spread is None or toward <= 0:
        return None
    fewest = next(n for n in range(2, 1100) if smallest_p(n, alternative) <= 1 - level)
    if spread <= 1e-12 * toward:
        return fewest
    sides = 2 if alternative == "two-sided" else 1
    return pairs_needed(toward / spread, level, sides=sides, min_pairs=fewest)


def _power(size: float, n: int, level: float, sides: int) -> float:
    """The chance that a t test of n pairs finds an effect of this many standard deviations, on its side."""
    from scipy.special import nctdtr  # noqa: PLC0415 -- a table without tests does not need it

    reach = t_quantile(1 - (1 - level) * 2 / sides, n)
    return 1.0 - float(nctdtr(n - 1, size * math.sqrt(n), reach))


def _finite(values: Iterable[float]) -> list[float]:
    """The values as a list; StatisticsError if there are none, or one is not finite."""
    found = [float(value) for value in values]
    wrong = [value for value in found if not math.isfinite(value)]
    if not found or wrong:
        raise StatisticsError(f"expected finite values, got {', '.join(map(str, wrong)) or 'none'}")
    return found


def _format_seeds(values: Mapping[int, float]) -> str:
    return ", ".join(map(str, sorted(values))) or "none"
