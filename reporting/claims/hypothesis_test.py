"""The test of one comparison, left against right.

It tests whether left minus right lies in the claimed region. The default is a t interval of the paired
differences. It assumes normality, which a few seeds cannot verify. Their spread is the larger of their own
and the pooled spread of all comparable cells. It counts as at least the spread of rounding: three lengths of
7 do not prove that the fourth is 7. With enough seeds a permutation test decides instead. `t` uses only the
comparison itself. `permutation` and `wilcoxon` assume less, and cannot decide anything below 6 seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from statistics import median

from ...studies.claims.comparisons import Test
from ..statistics.estimates import (
    mean,
    paired_p,
    pairs_needed,
    sample_sd,
    signed_rank_sum,
    smallest_p,
    t_quantile,
    t_test_p,
)
from ..statistics.pooled_differences import Pool, own_or_pooled, permutation_decides


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """A test of whether the mean of paired differences lies in `region`.

    `region` is an open interval. `differences` has left minus right for each seed. An infinite difference
    outweighs all finite ones. The test is then the limit for larger and larger differences: infinite ones
    count as 1, finite ones and the ends of the region as 0.

    Values of trainings that did not reach a target are `censored`: infinite, and only their ranks count. The
    effect is then the median difference, and the test is Wilcoxon's. It decides nothing unless the median and
    the sum of ranks are on one side of an end of the region.

    `rounding_sd` is the standard deviation from rounding alone, and `pool` the variance of all comparable
    cells. `family` is the number of comparisons of the claim, and `alpha` the level of one look at all of
    them. Costs that are computed, not measured, are `exact`: one value is enough. Unless the seeds are
    `complete`, nothing is decided.
    """

    differences: Mapping[int, float]
    region: tuple[float, float]
    rounding_sd: float
    test: Test
    complete: bool
    exact: bool = False
    pool: Pool | None = None
    family: int = 1
    alpha: float = 1.0
    censored: bool = False

    @property
    def n(self) -> int:
        """Return the number of seeds with a value on both sides of the comparison."""
        return len(self.differences)

    @cached_property
    def effect(self) -> float | None:
        """Return the estimate of left minus right; None without seeds.

        It is the mean over seeds, or the median if some values are censored.
        """
        if self.censored:
            return median(self.differences.values()) if self.differences else None
        if self._limit is not None:
            return math.copysign(math.inf, self._limit.effect) if self._limit.effect else 0.0
        return mean(list(self.differences.values())) if self.differences else None

    @cached_property
    def _limit(self) -> PairedTest | None:
        """Return a test with finite stand-ins for infinite differences.

        None if all differences are finite. Infinite differences count as 1 or −1, and finite differences as
        0.
        """
        if self.censored or not any(map(math.isinf, self.differences.values())):
            return None
        low, high = self.region
        return replace(
            self,
            differences={
                seed: math.copysign(1.0, each) if math.isinf(each) else 0.0
                for seed, each in self.differences.items()
            },
            region=(low if math.isinf(low) else 0.0, high if math.isinf(high) else 0.0),
            rounding_sd=0.0,
            pool=None,
        )

    @property
    def method(self) -> Test:
        """Return the name of the test.

        It is the one that the claim sets, except for `pooled`: with enough seeds, a permutation test replaces
        it, and without a pooled variance, the t interval of the comparison alone.
        """
        if self.test != "pooled":
            return self.test
        if permutation_decides(self.n, self.family, self.alpha):
            return "permutation"
        return "pooled" if self.pool else "t"

    @property
    def spread(self) -> float | None:
        """Return the standard deviation that the test uses.

        None below two seeds. It may be pooled over comparable cells. It is at least `rounding_sd`.
        """
        return None if self._spread is None else self._spread[0]

    @property
    def own_spread(self) -> float | None:
        """Return the standard deviation of the comparison's own differences.

        Return None unless the test uses a pooled spread, since `spread` is then the same number.
        """
        is_pooled = self.method == "pooled" and self._spread is not None
        return sample_sd(list(self.differences.values())) if is_pooled else None

    @property
    def degrees(self) -> float | None:
        """Return the degrees of freedom of the t interval; None below two seeds."""
        return None if self._spread is None else self._spread[1]

    @cached_property
    def _spread(self) -> tuple[float, float] | None:
        found = (
            None if self.censored or self._limit is not None else sample_sd(list(self.differences.values()))
        )
        if found is None:
            return None
        own, degrees = max(found, self.rounding_sd), self.n - 1.0
        if self.method != "pooled":
            return own, degrees
        assert self.pool is not None
        variance, degrees = own_or_pooled(own**2, self.n, self.pool)
        return math.sqrt(variance), degrees

    @property
    def inside(self) -> bool:
        """Return whether the effect lies in the claimed region."""
        if self._limit is not None:
            return self._limit.inside
        if self.effect is None:
            return False
        low, high = self.region
        if math.isinf(self.effect):  # the median of censored values may be infinite
            return math.isinf(high if self.effect > 0 else low)
        return low < self.effect < high

    @cached_property
    def p(self) -> float:
        """Return the p-value: the smallest significance level at which the test decides.

        At most 1.
        """
        if self.effect is None or not self.complete:
            return 1.0
        if self._limit is not None:
            return self._limit.p
        if self.exact:
            return 0.0
        if self.inside:  # the mean must differ from both ends
            return max(map(self._p_against, self._ends))
        return min(map(self._p_against, self._crossed_ends))

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the t interval of the mean difference; None below two seeds."""
        if self.effect is not None and self.exact:
            return (self.effect, self.effect)
        if self.effect is None or self.spread is None or self.degrees is None:
            return None
        # `t_quantile` takes a number of values, which is one more than their degrees of freedom
        half = t_quantile(level, self.degrees + 1) * self.spread / math.sqrt(self.n)
        return (self.effect - half, self.effect + half)

    def needed(self, level: float) -> int | None:
        """Return how many seeds decide the comparison with a power of 80 %; None if unknown.

        It is assumed that the true effect is as large as estimated.
        """
        effect, spread = self.effect, self.spread
        if self.censored and effect is not None and self.complete:
            fewest = next(n for n in count(2) if smallest_p(n) <= 1 - level)
            return fewest if fewest > self.n else None
        if effect is None or not spread or not self.complete:
            return None
        distance = min(abs(effect - end) for end in (self._ends if self.inside else self._crossed_ends))
        min_pairs, by_t = 2, self.method in {"pooled", "t"}
        while not by_t and smallest_p(min_pairs) > 1 - level:
            min_pairs += 1
        if not distance or self.degrees is None:
            return None
        more = self.degrees / (self.n - 1)
        return pairs_needed(distance / spread, level, min_pairs=min_pairs, degrees_per_pair=more)

    @property
    def _ends(self) -> list[float]:
        return [end for end in self.region if math.isfinite(end)]

    @property
    def _crossed_ends(self) -> list[float]:
        low, high = self.region
        assert self.effect is not None
        return [low] if self.effect <= low else [high]

    def _p_against(self, end: float) -> float:
        """Return the two-sided p-value of the hypothesis that the true mean difference is `end`."""
        assert self.effect is not None
        if self.censored:
            return self._rank_p(end)
        method = self.method
        if method not in ("pooled", "t"):
            return paired_p(self.differences, dict.fromkeys(self.differences, end), test=method)
        if self.spread is None or self.degrees is None:
            return 1.0
        distance = self.effect - end
        if not distance:
            return 1.0
        return (
            t_test_p(distance / (self.spread / math.sqrt(self.n)), self.degrees + 1) if self.spread else 0.0
        )

    def _rank_p(self, end: float) -> float:
        """Return the p-value of Wilcoxon's signed-rank test of the hypothesis that the median is `end`.

        All infinite differences share the highest rank. Return 1 unless the ranks and the median point to the
        same side of `end`.
        """
        # only ranks count, so any value beyond all finite distances can stand for infinity
        finite = [abs(each - end) for each in self.differences.values() if math.isfinite(each)]
        far = 2 * max(finite, default=0.0) + 1
        distances = {
            seed: each - end if math.isfinite(each) else math.copysign(far, each)
            for seed, each in self.differences.items()
        }
        if not signed_rank_sum(list(distances.values())) * (median(distances.values())) > 0:
            return 1.0
        return paired_p(distances, dict.fromkeys(distances, 0.0), test="wilcoxon")
