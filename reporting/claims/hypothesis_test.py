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
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from ..statistics.pooled_differences import Pool, own_or_pooled, permutation_decides
from ..statistics.speedup import bounds_of_mean


class PairedTest:
    """A test of whether the mean of paired differences lies in `region`, an open interval.

    `n` is the number of seeds with a value or a bound on both sides of the comparison. `effect` is the mean
    over seeds, or the Hodges–Lehmann estimate if ranks are tested; None if nothing or only `bounds` are known
    of it. `bounds` are the lowest and the highest possible mean, if trainings missed a target; an end is None
    if it is unbounded. `is_unknown` if no training of either side reached the target.

    `method` is the test. It is the one that the claim sets, except for `pooled`: with enough seeds, a
    permutation test replaces it, and without a pooled variance, the t interval of the comparison alone.
    Infinite values leave only Wilcoxon's test. `spread` is the standard deviation that the test uses, with
    its `degrees` of freedom; both are None below two seeds, for ranks and at a bound. `own_spread` is that of
    the comparison alone, if `spread` is pooled.

    `inside` says whether the effect lies in the region; ranks decide it if they are tested. `p` is the
    smallest significance level at which the test decides, at most 1.
    """

    def __init__(
        self,
        *,
        differences: Mapping[int, float],
        region: tuple[float, float],
        rounding_sd: float,
        test: Test,
        complete: bool,
        highest: Mapping[int, float] | None = None,
        exact: bool = False,
        ties: int = 0,
        at_bound: bool = False,
        pool: Pool | None = None,
        family: int = 1,
        alpha: float = 1.0,
    ) -> None:
        """Test `differences`: left minus right for each seed.

        If one is infinite, their median is tested by ranks, also if there are `ties`: seeds with which both
        sides are infinite, and whose difference is 0. If trainings ended before they reached a target,
        `differences` has the lowest possible values, and `highest` the highest. If both sides are `at_bound`,
        equal values are taken as proven, and no more can be shown.

        `rounding_sd` is the standard deviation from rounding alone, and `pool` the variance of all comparable
        cells. `family` is the number of comparisons of the claim, and `alpha` the level of one look at all of
        them. Costs that are computed, not measured, are `exact`: one value is enough. Unless the seeds are
        `complete`, nothing is decided.
        """
        self.region, self.complete, self.exact, self.at_bound = region, complete, exact, at_bound
        self._values = values = list(differences.values())
        self.n, highs = len(values), values if highest is None else list(highest.values())
        ends = list(zip(values, highs, strict=True))
        self.bounds = None if highest is None else bounds_of_mean(ends)
        self.is_unknown = set(ends) == {(-math.inf, math.inf)}
        has_mean = not ties and highest is None and not any(map(math.isinf, values))
        self._is_ranked = not has_mean or (test == "wilcoxon" and not (exact or at_bound))
        self.effect: float | None = None
        if ties < self.n and highest is None:
            self.effect = hodges_lehmann(values) if self._is_ranked else mean(values)
        self.method: Test = test
        if self._is_ranked:
            self.method = "wilcoxon"
        elif test == "pooled" and permutation_decides(self.n, family, alpha):
            self.method = "permutation"
        elif test == "pooled" and pool is None:
            self.method = "t"
        self.spread: float | None = None
        self.degrees: float | None = None
        self.own_spread: float | None = None
        own = None if not has_mean or at_bound else sample_sd(values)
        if own is not None:
            self.spread, self.degrees = max(own, rounding_sd), self.n - 1.0
            if self.method == "pooled" and pool is not None:
                variance, self.degrees = own_or_pooled(self.spread**2, self.n, pool)
                self.spread, self.own_spread = math.sqrt(variance), own
        low, high = region
        self._ends = [end for end in region if math.isfinite(end)]  # from which the effect must differ
        if self._is_ranked:
            # with the worst values for each side
            inside = max(_p_of_ranks(values, low, 1), _p_of_ranks(highs, high, -1))
            outside = min(_p_of_ranks(highs, low, -1), _p_of_ranks(values, high, 1))
            self.inside = inside < outside
            p_values = [inside, outside]
        else:
            self.inside = self.effect is not None and low < self.effect < high
            if self.effect is not None and not self.inside:  # only the end that is crossed
                self._ends = [low if self.effect <= low else high]
            p_values = [self._p_against(end) for end in self._ends]
        self.p = 1.0
        if values and complete and (exact or at_bound):
            self.p = 0.0 if exact or self.inside else 1.0
        elif values and complete:
            # inside, the mean must differ from both ends
            self.p = max(p_values) if self.inside and not self._is_ranked else min(p_values)

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the t interval of the mean difference, or for ranks that of Wilcoxon's test.

        None with too few seeds, at a bound, and if only `bounds` are known.
        """
        if self.effect is None:
            return None
        if self._is_ranked:
            return signed_rank_interval(self._values, level)
        if self.exact:
            return (self.effect, self.effect)
        if self.spread is None or self.degrees is None:
            return None
        half = t_quantile(level, self.degrees) * self.spread / math.sqrt(self.n)
        return (self.effect - half, self.effect + half)

    def needed(self, level: float) -> int | None:
        """Return how many seeds decide the comparison with a power of 80 %; None if unknown.

        It is assumed that the true effect is as large as estimated. For ranks it is the fewest seeds that can
        decide, or None if these seeds are enough, or if p is 1.
        """
        fewest = next(many for many in count(2) if smallest_p(many) <= 1 - level)
        if self._is_ranked:
            return fewest if self.p < 1 and fewest > self.n else None
        if self.effect is None or not self.spread or not self.complete or self.degrees is None:
            return None
        distance = min(abs(self.effect - end) for end in self._ends)
        if not distance:
            return None
        return pairs_needed(
            distance / self.spread,
            level,
            min_pairs=2 if self.method in {"pooled", "t"} else fewest,
            degrees_per_pair=self.degrees / (self.n - 1),
        )

    def _p_against(self, end: float) -> float:
        if self.effect is None:
            return 1.0
        distance = self.effect - end
        if self.method not in ("pooled", "t"):
            return paired_p((each - end for each in self._values), test=self.method)
        if self.spread is None or self.degrees is None or not distance:
            return 1.0
        error = self.spread / math.sqrt(self.n)
        return t_test_p(distance / error, self.degrees) if error else 0.0


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
