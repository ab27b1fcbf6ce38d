"""Tests of seed-paired differences with corrections for multiple tests, and the needed numbers of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from .estimates import StatisticsError, finite_values, t_quantile

Test = Literal["permutation", "wilcoxon"]
"""The tests that only assume that differences are symmetric."""

TESTS: Mapping[Test, str] = {
    "permutation": "paired permutation test",
    "wilcoxon": "Wilcoxon signed-rank test",
}
"""The name of each test in a caption."""

_MAX_EXACT_PAIRS = 14  # up to 2 ** 14 sign patterns are all counted
_SAMPLED_PATTERNS = 19_999  # of sign patterns, where they are too many


def paired_p(first: Mapping[int, float], second: Mapping[int, float], *, test: Test = "permutation") -> float:
    """Return the two-sided p of two sets of values, on shared seeds; raises StatisticsError without any.

    The permutation test flips the signs of the differences. Wilcoxon's test flips the signs of their ranks,
    without zeros. Up to n = 14 all 2 ** n sign patterns are enumerated, for larger n a fixed random sample.
    """
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        raise StatisticsError(
            f"expected a common seed, got {_format_seeds(first)} and {_format_seeds(second)}"
        )
    differences = finite_values(first[seed] - second[seed] for seed in seeds)
    return _sign_flip_p(differences if test == "permutation" else _signed_ranks(differences))


def smallest_p(n: int) -> float:
    """Return the smallest p that `paired_p` can give with n pairs, however large the effect: 0.25 with 3."""
    return min(1.0, 2 * 0.5**n)


def t_test_p(errors: float, count: float) -> float:
    """Return the two-sided p of a mean that is `errors` standard errors from 0 (t test, `count` values)."""
    from scipy.special import stdtr  # noqa: PLC0415 -- a table of deviations does not need it

    return min(1.0, 2 * float(stdtr(count - 1, -abs(errors))))


def signed_rank_sum(differences: Sequence[float]) -> float:
    """Return the sum of the signed ranks of differences, as Wilcoxon's test takes it."""
    return math.fsum(_signed_ranks(differences))


def _signed_ranks(differences: Sequence[float]) -> list[float]:
    """Return the signed ranks of the non-zero differences, by absolute size; ties share a rank."""
    from scipy.stats import rankdata  # noqa: PLC0415 -- slow to load, and few ask for this test

    sizes = [difference for difference in differences if difference]
    ranks = rankdata([abs(size) for size in sizes])
    return [math.copysign(rank, size) for rank, size in zip(ranks, sizes, strict=True)]


def _sign_flip_p(weights: Sequence[float]) -> float:
    """Return the share of sign patterns with a sum at least as far from 0 as the weights' own sum."""
    import numpy as np  # noqa: PLC0415 -- a table without tests does not need it

    sizes = np.sort(np.abs(np.asarray(weights, dtype=float)))
    count, slack = len(sizes), 1e-12 * math.fsum(sizes)
    if count <= _MAX_EXACT_PAIRS:
        signs = 1.0 - 2.0 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)  # (patterns, weights)
        extra = 0
    else:
        signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(_SAMPLED_PATTERNS, count))
        extra = 1  # the pattern that was found is one of them
    sums = np.abs(signs @ sizes)
    reached = int(np.count_nonzero(sums >= abs(math.fsum(weights)) - slack))
    return (reached + extra) / (len(sums) + extra)


def _format_seeds(values: Mapping[int, float]) -> str:
    return ", ".join(map(str, sorted(values))) or "none"


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the Holm-adjusted p-values of a family, to be compared with a single test's level.

    None is lowered, their order is kept, and none exceeds 1 (Holm 1979).
    """
    count, raised = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        raised = max(raised, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = raised
    return tuple(adjusted)


def holm_levels(p_values: Sequence[float], alpha: float) -> tuple[float, ...]:
    """Return the level with which Holm's procedure compares each p, if all smaller ones are significant."""
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    ranks = {index: rank for rank, index in enumerate(ranked)}
    return tuple(alpha / (len(p_values) - ranks[index]) for index in range(len(p_values)))


def hochberg_threshold(p_values: Sequence[float], alpha: float) -> float:
    """Return the largest significant p-value of a family by Hochberg's procedure (1988).

    It is `alpha` if all are significant, and `alpha / n` if only one can be.
    """
    ordered = sorted(p_values, reverse=True)
    steps = (alpha / number for number, p in enumerate(ordered, 1) if p <= alpha / number)
    return next(steps, alpha / max(1, len(ordered)))


def hochberg_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the Hochberg-adjusted p-values of a family, to be compared with a single test's level."""
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
    """Return how many pairs a t test needs to detect an effect, in standard deviations, with power POWER.

    Each pair after the first adds `degrees_per_pair` degrees of freedom: more than 1 if the variance is
    pooled. At least `min_pairs`; None above MAX_PAIRS.
    """

    def power(n: int) -> float:
        return _power(effect_size, n, degrees_per_pair * (n - 1), level)

    low, high = min_pairs - 1, min_pairs
    while power(high) < POWER:
        if high > MAX_PAIRS:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high if high <= MAX_PAIRS else None


def _power(effect_size: float, n: int, degrees: float, level: float) -> float:
    """Return the power of a t test of n pairs for an effect of `effect_size` standard deviations."""
    from scipy.special import nctdtr  # noqa: PLC0415 -- a table without tests does not need it

    return 1.0 - float(nctdtr(degrees, effect_size * math.sqrt(n), t_quantile(level, degrees + 1)))


def detectable(error: float, degrees: int, level: float) -> float:
    """Return the difference that a two-sided t test at this level detects with a power of POWER.

    `error` is the standard error of the difference, and `degrees` its degrees of freedom.
    """
    from scipy.special import nctdtr  # noqa: PLC0415 -- as above

    limit, low, high = t_quantile(1 - level, degrees + 1), 0.0, 1.0
    while 1.0 - float(nctdtr(degrees, high, limit)) < POWER:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 1.0 - float(nctdtr(degrees, middle, limit)) < POWER else (low, middle)
    return high * error
