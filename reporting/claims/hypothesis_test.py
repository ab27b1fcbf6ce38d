"""The test of one comparison, left against right.

It tests whether left minus right lies in the claimed region. The default is a t interval of the paired
differences. It assumes normality, which a few seeds cannot verify. Their spread is the larger of their own
and the pooled spread of all comparable cells. It counts as at least the spread of rounding: three lengths of
7 do not prove that the fourth is 7. With enough seeds a permutation test decides instead. `t` uses only the
comparison itself. `permutation` and `wilcoxon` assume less, and cannot decide anything below 6 seeds.

If trainings ended before they reached a target, only bounds of their differences are known. Then Wilcoxon's
test decides, and only if it does so for all differences within the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from statistics import median
from typing import ClassVar, Literal

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
from ..statistics.speedup import Ends, bounds_of_mean


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """A test of whether the mean of paired differences lies in `region`.

    `region` is an open interval. `differences` has left minus right for each seed. An infinite difference
    outweighs all finite ones. The test is then the limit for larger and larger differences: infinite ones
    count as 1, finite ones and the ends of the region as 0.

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

    @property
    def n(self) -> int:
        """Return the number of seeds with a value on both sides of the comparison."""
        return len(self.differences)

    @cached_property
    def effect(self) -> float | None:
        """Return the estimate of left minus right, its mean over seeds; None without seeds."""
        if self._limit is not None:
            return math.copysign(math.inf, self._limit.effect) if self._limit.effect else 0.0
        return mean(list(self.differences.values())) if self.differences else None

    @cached_property
    def _limit(self) -> PairedTest | None:
        """Return a test with finite stand-ins for infinite differences.

        None if all differences are finite. Infinite differences count as 1 or −1, and finite differences as
        0.
        """
        if not any(map(math.isinf, self.differences.values())):
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
        """Return the standard deviation of the comparison's own differences, if the test uses a pooled one.

        Otherwise return None, since `spread` is then the same number.
        """
        is_pooled = self.method == "pooled" and self._spread is not None
        return sample_sd(list(self.differences.values())) if is_pooled else None

    @property
    def degrees(self) -> float | None:
        """Return the degrees of freedom of the t interval; None below two seeds."""
        return None if self._spread is None else self._spread[1]

    @cached_property
    def _spread(self) -> tuple[float, float] | None:
        found = None if self._limit is not None else sample_sd(list(self.differences.values()))
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
        return low < self.effect < high

    @cached_property
    def p(self) -> float:
        """Return the p-value: the smallest significance level at which the test decides. At most 1."""
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
        assert self.effect is not None
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


@dataclass(frozen=True, kw_only=True)
class BoundedTest:
    """A test of a comparison in which trainings ended before they reached a target.

    `ends` has the lowest and the highest possible value of left minus right for each seed. They are equal if
    both trainings of a seed reached the target. The test asks whether the median lies in the open interval
    `region`. Unless the seeds are `complete`, nothing is decided. Instead of an effect with an interval there
    are `bounds`.
    """

    ends: Mapping[int, Ends]
    region: tuple[float, float]
    complete: bool
    exact: ClassVar = False
    method: ClassVar[Test] = "wilcoxon"
    effect: ClassVar = None
    spread: ClassVar = None
    own_spread: ClassVar = None
    degrees: ClassVar = None

    @property
    def n(self) -> int:
        """Return the number of seeds with a value or a bound on both sides of the comparison."""
        return len(self.ends)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Return the lowest and the highest possible mean difference; None for an end that is unbounded."""
        return bounds_of_mean(self.ends.values())

    @property
    def is_unknown(self) -> bool:
        """Return whether no training of either side reached the target."""
        return set(self.ends.values()) == {(-math.inf, math.inf)}

    @property
    def inside(self) -> bool:
        """Return whether the p-value for the claimed region is smaller than the one against it."""
        return self._p_inside < self._p_outside

    @property
    def p(self) -> float:
        """Return the p-value: the smallest significance level at which the test decides. At most 1."""
        return min(self._p_inside, self._p_outside) if self.complete else 1.0

    def interval(self, level: float) -> None:
        """Return None, since bounds have no t interval at any level."""

    def needed(self, level: float) -> int | None:
        """Return the fewest seeds that can decide the comparison; None if unknown.

        It is unknown if the bounds allow both verdicts.
        """
        fewest = next(n for n in count(2) if smallest_p(n) <= 1 - level)
        return fewest if self.p < 1 and fewest > self.n else None

    @cached_property
    def _p_inside(self) -> float:
        low, high = self.region
        return max(self._p_beyond(low, 1), self._p_beyond(high, -1))

    @cached_property
    def _p_outside(self) -> float:
        low, high = self.region
        return min(self._p_beyond(low, -1), self._p_beyond(high, 1))

    def _p_beyond(self, limit: float, side: Literal[-1, 1]) -> float:
        """Return the p-value for a median above `limit` (side 1) or below it (side −1).

        It is that of Wilcoxon's signed-rank test with the least favourable values, at the ends of all
        differences. It is 1 unless their median and their ranks point to this side. All values are beyond an
        infinite limit, or none.
        """
        if math.isinf(limit):
            return 0.0 if side * limit < 0 else 1.0
        worst = {seed: ends[0 if side > 0 else 1] for seed, ends in self.ends.items()}
        # only ranks count, so any value beyond all finite distances can stand for infinity
        far = 2 * max((abs(each - limit) for each in worst.values() if math.isfinite(each)), default=0.0) + 1
        distances = {
            seed: each - limit if math.isfinite(each) else math.copysign(far, each)
            for seed, each in worst.items()
        }
        values = list(distances.values())
        if not values or side * signed_rank_sum(values) <= 0 or side * median(values) <= 0:
            return 1.0
        return paired_p(distances, dict.fromkeys(distances, 0.0), test="wilcoxon")
