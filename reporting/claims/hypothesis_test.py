"""The test of one comparison, left against right.

It tests whether left minus right lies in the claimed region. The default is a t interval of the paired
differences. It assumes normality, which a few seeds cannot verify. Their spread is the larger of their own
and the pooled spread of all comparable cells. It counts as at least the spread of rounding: three lengths of
7 do not prove that the fourth is 7. With enough seeds a permutation test decides instead. `t` uses only the
comparison itself. `permutation` and `wilcoxon` assume less, and cannot decide anything below 6 seeds.

A diverged training has an infinite loss. Then Wilcoxon's signed-rank test decides, whatever test is set, and
an infinite difference has the largest rank. So two diverged seeds prove no more than any other two seeds.

If trainings ended before they reached a target, only bounds of their differences are known. Then Wilcoxon's
test decides, and only if it does so for all differences within the bounds.

If all values are at the largest possible value, or all at the smallest, nothing is tested: they cannot vary.

Cells whose seeds are not paired are independent groups. The t interval of their means and the rank-sum test
then take the place of the tests of paired differences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import median
from typing import Literal

from ...studies.claims.comparisons import Test
from ..statistics.estimates import (
    hodges_lehmann,
    mean,
    paired_p,
    pairs_needed,
    sample_sd,
    signed_rank_interval,
    signed_rank_sum,
    smallest_p,
    t_quantile,
    t_test_p,
)
from ..statistics.groups import Group, larger_error, own_error, rank_sum_p, shift_estimate
from ..statistics.pooled_differences import Pool, larger_variance, permutation_decides
from ..statistics.speedup import bounds_of_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """The result of a test of whether the mean of paired differences lies in `region`, an open interval.

    `values` are the differences of the `n` seeds with a value or a bound on both sides of the comparison.
    `effect` is their mean, or the Hodges–Lehmann estimate if ranks are tested; None if nothing or only
    `bounds` are known of it. `bounds` are the lowest and the highest possible mean, if trainings missed a
    target; an end is None if it is unbounded. `is_unknown` if no training of either side reached the target.

    `method` is the test. It is the one that the claim sets, except for `pooled`: with enough seeds, a
    permutation test replaces it, and without a pooled variance, the t interval of the comparison alone.
    Infinite values leave only Wilcoxon's test. `spread` is the standard deviation that the test uses, with
    its `degrees` of freedom; both are None below two seeds, at a bound and without a mean. `own_spread` is
    that of the comparison alone, if `spread` is pooled.

    `inside` says whether the effect lies in the region; ranks decide it if they are tested. `p` is the
    smallest significance level at which the test decides, at most 1; it is 1 unless the seeds are `complete`.
    `groups` are the numbers of runs of each cell if these are not paired; `n` is then the smallest of them. A
    comparison `is_certain` if it holds, or fails, without a test.
    """

    values: tuple[float, ...]
    n: int
    region: tuple[float, float]
    method: Test = "t"
    effect: float | None = None
    bounds: tuple[float | None, float | None] | None = None
    is_unknown: bool = False
    inside: bool = False
    p: float = 1.0
    spread: float | None = None
    degrees: float | None = None
    own_spread: float | None = None
    complete: bool = True
    exact: bool = False
    at_bound: bool = False
    is_certain: bool = False
    groups: tuple[int, ...] = ()

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the t interval of the mean difference, or for ranks that of Wilcoxon's test.

        None with too few seeds, at a bound, and if only `bounds` are known.
        """
        if self.effect is None:
            return None
        if self.method == "wilcoxon":
            return None if self.groups else signed_rank_interval(self.values, level)
        if self.exact:
            return (self.effect, self.effect)
        if self.spread is None or self.degrees is None:
            return None
        half = t_quantile(level, self.degrees) * self.spread / math.sqrt(self.n)
        return (self.effect - half, self.effect + half)

    def needed(self, level: float) -> int | None:
        """Return how many seeds of each cell decide the comparison with a power of 80 %; None if unknown.

        It is assumed that the true effect is as large as estimated. For ranks it is the fewest seeds that can
        decide, or None if these seeds are enough, or if p is 1.
        """
        smallest = _smallest_rank_sum_p if self.groups else smallest_p
        fewest = next(many for many in count(2) if smallest(many) <= 1 - level)
        if self.method == "wilcoxon":
            return fewest if self.p < 1 and fewest > self.n else None
        if self.effect is None or not self.spread or not self.complete or self.degrees is None:
            return None
        distance = min(abs(self.effect - end) for end in self.region)
        if not distance:
            return None
        return pairs_needed(
            distance / self.spread,
            level,
            min_pairs=2 if self.method in {"pooled", "t"} else fewest,
            degrees_per_pair=self.degrees / (self.n - 1),
        )


def paired_test(
    *,
    differences: Mapping[int, float],
    region: tuple[float, float],
    rounding: float,
    test: Test,
    complete: bool,
    highest: Mapping[int, float] | None = None,
    exact: bool = False,
    ties: int = 0,
    at_bound: bool = False,
    pool: Pool | None = None,
    family: int = 1,
    alpha: float = 1.0,
) -> PairedTest:
    """Test `differences`: left minus right for each seed.

    If one is infinite, their median is tested by ranks, also if there are `ties`: seeds with which both sides
    are infinite, and whose difference is 0. If trainings ended before they reached a target, `differences`
    has the lowest possible values, and `highest` the highest. If both sides are `at_bound`, equal values are
    taken as proven, and no more can be shown.

    `rounding` is the standard deviation from rounding alone, and `pool` that of all comparable
    cells. `family` is the number of comparisons of the claim, and `alpha` the level of one look at all of
    them. Costs that are computed, not measured, are `exact`: one value is enough. Unless the seeds are
    `complete`, nothing is decided.
    """
    values, (low, high) = tuple(differences.values()), region
    found = PairedTest(
        values=values, n=len(values), region=region, complete=complete, exact=exact, at_bound=at_bound
    )
    has_mean = bool(values) and not ties and highest is None and not any(map(math.isinf, values))
    if has_mean:
        effect, own = mean(values), larger_variance(values, None, rounding)
        found = replace(found, effect=effect, inside=low < effect < high)
        if own is not None and not at_bound:
            found = replace(found, spread=own.sd, degrees=own.degrees)
    if at_bound:
        found = replace(found, p=1.0 - found.inside)
    elif not has_mean or (test == "wilcoxon" and not exact):
        found = _by_ranks(found, None if highest is None else tuple(highest.values()), ties)
    elif test == "t" or (test == "pooled" and not permutation_decides(found.n, family, alpha)):
        found = _by_t(found, pool if test == "pooled" else None, rounding)
    else:
        found = _by_permutation(found)
    p = 0.0 if exact and values else found.p
    return replace(found, p=p if complete else 1.0, is_certain=exact or (at_bound and found.inside))


def groups_test(
    groups: Sequence[Group],
    constant: float,
    *,
    region: tuple[float, float],
    test: Test,
    complete: bool,
    at_bound: bool = False,
) -> PairedTest:
    """Test a weighted sum of the means of groups of runs that are not paired, plus a constant.

    With an infinite value, the ranks of two groups are compared; other sums are then not tested. The other
    arguments are those of `paired_test`.
    """
    (low, high), sizes = region, tuple(len(each.values) for each in groups)
    values = tuple(value for each in groups for value in each.values)
    found = PairedTest(
        values=values, n=min(sizes), region=region, complete=complete, at_bound=at_bound, groups=sizes
    )
    if not found.n:
        return replace(found, complete=False)
    if test == "wilcoxon" or any(map(math.isinf, values)):
        found = replace(found, method="wilcoxon")
        if sorted(each.weight for each in groups) == [-1.0, 1.0]:
            right, left = (each.values for each in sorted(groups, key=lambda each: each.weight))
            found = _by_rank_sums(found, [value + constant for value in left], right)
    else:
        effect = math.fsum(each.weight * mean(each.values) for each in groups) + constant
        found = replace(found, effect=effect, inside=low < effect < high)
        error = larger_error(groups) if test == "pooled" else own_error(groups)
        if error is not None and not at_bound:
            distance = min(abs(effect - end) for end in region)
            found = replace(
                found,
                method="pooled" if test == "pooled" and any(each.pool for each in groups) else "t",
                p=t_test_p(distance / error.sd, error.degrees) if error.sd else float(not distance),
                spread=error.sd * math.sqrt(found.n),
                degrees=error.degrees,
            )
    if at_bound:
        found = replace(found, p=1.0 - found.inside)
    return replace(found, p=found.p if complete else 1.0, is_certain=at_bound and found.inside)


def _by_rank_sums(found: PairedTest, left: Sequence[float], right: Sequence[float]) -> PairedTest:
    """Test the shift between two groups by the ranks of their values."""

    def p_of_side(limit: float, side: Literal[-1, 1]) -> float:
        if math.isinf(limit):
            return 0.0 if side * limit < 0 else 1.0
        p, direction = rank_sum_p([value - limit for value in left], right)
        return p if direction == side else 1.0

    low, high = found.region
    inside = max(p_of_side(low, 1), p_of_side(high, -1))
    outside = min(p_of_side(low, -1), p_of_side(high, 1))
    return replace(found, effect=shift_estimate(left, right), inside=inside < outside, p=min(inside, outside))


def _smallest_rank_sum_p(n: int) -> float:
    """Return the smallest p-value of the rank-sum test of two groups of n runs."""
    return 2 / math.comb(2 * n, n)


def _by_t(found: PairedTest, pool: Pool | None, rounding: float) -> PairedTest:
    """Test a mean with its own spread, or with that of the pool if it is larger."""
    method: Test = "t" if pool is None else "pooled"
    variance = larger_variance(found.values, pool, rounding)
    if found.effect is None or found.spread is None or variance is None:
        return replace(found, method=method)
    own = None if pool is None else sample_sd(found.values)
    # inside, the mean must differ from both ends, and the nearest one has the largest p
    distance, error = min(abs(found.effect - end) for end in found.region), variance.sd / math.sqrt(found.n)
    p = t_test_p(distance / error, variance.degrees) if error else float(not distance)
    return replace(found, method=method, p=p, spread=variance.sd, degrees=variance.degrees, own_spread=own)


def _by_permutation(found: PairedTest) -> PairedTest:
    """Test a mean by flips of the differences' signs."""
    low, high = found.region
    crossed = [low if found.effect is not None and found.effect <= low else high]
    ends = [end for end in found.region if math.isfinite(end)] if found.inside else crossed
    p = max(paired_p(each - end for each in found.values) for end in ends)
    return replace(found, method="permutation", p=p)


def _by_ranks(found: PairedTest, highest: tuple[float, ...] | None, ties: int) -> PairedTest:
    """Test the ranks of the differences or, if only bounds are known, of the worst values for each side."""
    lows, (low, high) = found.values, found.region
    highs = lows if highest is None else highest
    inside = max(_p_of_ranks(lows, low, 1), _p_of_ranks(highs, high, -1))
    outside = min(_p_of_ranks(highs, low, -1), _p_of_ranks(lows, high, 1))
    ends = list(zip(lows, highs, strict=True))
    return replace(
        found,
        method="wilcoxon",
        effect=hodges_lehmann(lows) if highest is None and ties < len(lows) else None,
        bounds=None if highest is None else bounds_of_mean(ends),
        is_unknown=set(ends) == {(-math.inf, math.inf)},
        inside=inside < outside,
        p=min(inside, outside),
    )


def _p_of_ranks(differences: Sequence[float], limit: float, side: Literal[-1, 1]) -> float:
    """Return the p-value for a median above `limit` (side 1) or below it (side −1).

    It is that of Wilcoxon's signed-rank test. It is 1 unless the median and the ranks of the differences
    point to this side. An infinite difference has the largest rank. All values are beyond an infinite limit,
    or none.
    """
    if math.isinf(limit):
        return 0.0 if side * limit < 0 else 1.0
    # only ranks count, so any value beyond all finite distances can stand for infinity
    finite = (abs(each - limit) for each in differences if math.isfinite(each))
    far = 2 * max(finite, default=0.0) + 1
    distances = [each - limit if math.isfinite(each) else math.copysign(far, each) for each in differences]
    if not distances or side * signed_rank_sum(distances) <= 0 or side * median(distances) <= 0:
        return 1.0
    return paired_p(distances, test="wilcoxon")
