"""Tests of groups of runs that are not paired, such as runs of other people with any seeds.

The means of independent groups are compared by the rule of `larger_variance`: the larger of the comparison's
own variance, with Welch's degrees of freedom, and the variance pooled over all comparable groups. If a value
is infinite, ranks decide. `bench/unpaired_groups.py` simulates both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .estimates import mean, power_of_two, sample_sd, t_quantile, t_test_p
from .pooled_differences import Difference, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The values of independent runs, and the weight of their mean in a sum of means.

    `pool` is the variance of all comparable groups, None if it is unknown. `rounding` is the standard
    deviation of rounding alone.
    """

    weight: float
    values: Sequence[float]
    pool: Pool | None = None
    rounding: float = 0.0


RANK_SUMS = "rank-sum test"
"""The name of the test in a caption."""


def pool_groups(groups: Sequence[Sequence[float]]) -> Pool | None:
    """Estimate the variance of a value from all groups that vary; None if none does."""
    varying = [each for each in groups if len(set(each)) > 1]
    degrees = sum(len(each) - 1 for each in varying)
    if not degrees:
        return None
    sds = [sample_sd(each) or 0.0 for each in varying]
    scale = power_of_two(sds)
    squares = math.fsum((len(each) - 1) * (sd / scale) ** 2 for each, sd in zip(varying, sds, strict=True))
    return Pool(sd=scale * math.sqrt(squares / degrees), degrees=degrees)


def own_error(groups: Sequence[Group]) -> Pool | None:
    """Return Welch's standard error of a weighted sum of means, with its degrees of freedom (Welch 1947).

    A group varies at least by rounding. Return None if a group has fewer than two values.
    """
    if any(len(each.values) < 2 for each in groups):
        return None
    sds = [max(sample_sd(each.values) or 0.0, each.rounding) for each in groups]
    errors = [
        abs(each.weight) * sd / math.sqrt(len(each.values)) for each, sd in zip(groups, sds, strict=True)
    ]
    return _summed([(error, len(each.values) - 1) for error, each in zip(errors, groups, strict=True)])


def larger_error(groups: Sequence[Group]) -> Pool | None:
    """Return the standard error that tests a weighted sum of means: the larger of its own and the pooled one.

    Groups with an equal pool share its degrees of freedom. Return None if a group has fewer than two values.
    """
    own, pooled = own_error(groups), dict[int, tuple[Pool, float]]()
    for each in groups:
        if own is None or each.pool is None:
            return own
        pool, error = pooled.get(id(each.pool), (each.pool, 0.0))
        part = each.weight * each.pool.sd / math.sqrt(len(each.values))
        pooled[id(each.pool)] = pool, math.hypot(error, part)
    shared = _summed([(error, pool.degrees) for pool, error in pooled.values()])
    # equal up to rounding error, as with two groups of one size: the pool has more degrees of freedom
    return shared if own is None or own.sd <= shared.sd * (1 + 1e-9) else own


def _summed(parts: Sequence[tuple[float, float]]) -> Pool:
    """Return the error of a sum of independent parts, with the degrees of freedom of Satterthwaite (1946)."""
    sd = math.hypot(*(error for error, _ in parts))
    if not sd:
        return Pool(sd=0.0, degrees=min((degrees for _, degrees in parts), default=0))
    return Pool(sd=sd, degrees=1 / math.fsum((error / sd) ** 4 / degrees for error, degrees in parts))


def differences_of_groups(
    cells: Sequence[Sequence[float]], pairs: Sequence[tuple[int, int]], *, step: float = 0.0
) -> list[Difference]:
    """Return the mean of first minus second for each pair of cells whose runs are not paired.

    Each p is uncorrected. Interval and p are unknown with a single run, and if no values vary. Values are
    rounded to steps of `step`.
    """
    pool, found = pool_groups(cells), list[Difference]()
    for pair in pairs:
        groups = [
            Group(weight=weight, values=cells[cell], pool=pool, rounding=step / math.sqrt(12))
            for weight, cell in zip((1.0, -1.0), pair, strict=True)
        ]
        middle, error = mean(cells[pair[0]]) - mean(cells[pair[1]]), larger_error(groups)
        n = min(len(each.values) for each in groups)
        if error is None or not error.sd:
            found.append(Difference(mean=middle, n=n))
            continue
        found.append(
            Difference(
                mean=middle,
                n=n,
                half_width=error.sd * t_quantile(0.95, error.degrees),
                p=t_test_p(middle / error.sd, error.degrees),
                error=error.sd,
                degrees=error.degrees,
            )
        )
    return found


def shift_estimate(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the median of all differences of a left and a right value (Hodges and Lehmann 1963).

    Two equal infinities differ by 0.
    """
    return median(0.0 if one == other else one - other for one in left for other in right)


def rank_sum_p(left: Sequence[float], right: Sequence[float]) -> tuple[float, int]:
    """Return the two-sided p-value of the exact rank-sum test, and the side on which `left` is (1, 0 or −1).

    All ways to choose the ranks of `left` are counted, so ties keep the test exact. Values may be infinite.
    """
    from scipy.stats import rankdata  # noqa: PLC0415 -- slow to load, and few tables need it

    # twice the ranks, which are whole numbers
    ranks = [round(2 * float(rank)) for rank in rankdata([*left, *right])]
    ways = [Counter[int]() for _ in range(len(left) + 1)]  # by the number of chosen ranks: their sums
    ways[0][0] = 1
    for rank in ranks:
        for chosen in range(len(left), 0, -1):
            for total, count in ways[chosen - 1].items():
                ways[chosen][total + rank] += count
    expected = len(left) * (len(ranks) + 1)
    off = sum(ranks[: len(left)]) - expected
    beyond = sum(count for total, count in ways[-1].items() if abs(total - expected) >= abs(off))
    return beyond / math.comb(len(ranks), len(left)), (off > 0) - (off < 0)
