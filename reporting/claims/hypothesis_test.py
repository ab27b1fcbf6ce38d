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
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """A test of whether the mean of paired differences lies in `region`.

    `region` is an open interval. `differences` has left minus right for each seed. If one is infinite, their
    median is tested by ranks, also if there are `ties`: seeds with which both sides are infinite, and whose
    difference is 0. If trainings ended before they reached a target, `differences` has the lowest possible
    values, and `highest` the highest. If both sides are `at_bound`, equal values are taken as proven, and no
    more can be
    shown.

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
    highest: Mapping[int, float] | None = None
    exact: bool = False
    ties: int = 0
    at_bound: bool = False
    pool: Pool | None = None
    family: int = 1
    alpha: float = 1.0

    @property
    def n(self) -> int:
        """Return the number of seeds with a value or a bound on both sides of the comparison."""
        return len(self.differences)

    @cached_property
    def _values(self) -> list[float]:
        return list(self.differences.values())

    @property
    def bounds(self) -> tuple[float | None, float | None] | None:
        """Return the lowest and the highest possible mean difference, if trainings missed a target.

        An end is None if it is unbounded.
        """
        if self.highest is None:
            return None
        return bounds_of_mean(list(zip(self._values, self.highest.values(), strict=True)))

    @property
    def is_unknown(self) -> bool:
        """Return whether no training of either side reached the target."""
        ends = zip(self._values, (self.highest or {}).values(), strict=False)
        return set(ends) == {(-math.inf, math.inf)}

    @cached_property
    def effect(self) -> float | None:
        """Return the estimate of left minus right; None if nothing or only `bounds` are known of it.

        It is the mean over seeds, or the Hodges–Lehmann estimate if ranks are tested.
        """
        if self.ties == self.n or self.highest is not None:
            return None
        return hodges_lehmann(self._values) if self._is_ranked else mean(self._values)

    @cached_property
    def _is_ranked(self) -> bool:
        return self.ties > 0 or self.highest is not None or any(map(math.isinf, self._values))

    @property
    def method(self) -> Test:
        """Return the name of the test.

        It is the one that the claim sets, except for `pooled`: with enough seeds, a permutation test replaces
        it, and without a pooled variance, the t interval of the comparison alone. Infinite values leave only
        Wilcoxon's test.
        """
        if self._is_ranked:
            return "wilcoxon"
        if self.test != "pooled":
            return self.test
        if permutation_decides(self.n, self.family, self.alpha):
            return "permutation"
        return "pooled" if self.pool else "t"

    @property
    def spread(self) -> float | None:
        """Return the standard deviation that the test uses.

        None below two seeds, for ranks and at a bound. It may be pooled over comparable cells. It is at least
        `rounding_sd`.
        """
        return None if self._spread is None else self._spread[0]

    @property
    def own_spread(self) -> float | None:
        """Return the standard deviation of the comparison's own differences, if the test uses a pooled one.

        Otherwise return None, since `spread` is then the same number.
        """
        is_pooled = self.method == "pooled" and self._spread is not None
        return sample_sd(self._values) if is_pooled else None

    @property
    def degrees(self) -> float | None:
        """Return the degrees of freedom of the t interval; None below two seeds."""
        return None if self._spread is None else self._spread[1]

    @cached_property
    def _spread(self) -> tuple[float, float] | None:
        found = None if self._is_ranked or self.at_bound else sample_sd(self._values)
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
        """Return whether the effect lies in the claimed region. Ranks decide it if they are tested."""
        if self._is_ranked:
            inside, outside = self._ranked_p
            return inside < outside
        low, high = self.region
        return self.effect is not None and low < self.effect < high

    @cached_property
    def p(self) -> float:
        """Return the p-value: the smallest significance level at which the test decides. At most 1."""
        if not self._values or not self.complete:
            return 1.0
        if self.exact:
            return 0.0
        if self.at_bound:
            return 0.0 if self.inside else 1.0
        if self._is_ranked:
            return min(self._ranked_p)
        found = map(self._p_against, self._ends)
        return max(found) if self.inside else min(found)  # inside, the mean must differ from both ends

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
        # `t_quantile` takes a number of values, which is one more than their degrees of freedom
        half = t_quantile(level, self.degrees + 1) * self.spread / math.sqrt(self.n)
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

    @cached_property
    def _ranked_p(self) -> tuple[float, float]:
        """Return the p-values for a median inside and outside the region, with the worst values for each."""
        lows, highs = self._values, list((self.highest or self.differences).values())
        low, high = self.region
        inside = max(_p_of_ranks(lows, low, 1), _p_of_ranks(highs, high, -1))
        return inside, min(_p_of_ranks(highs, low, -1), _p_of_ranks(lows, high, 1))

    @property
    def _ends(self) -> list[float]:
        """Return the ends of the region from which the effect must differ; outside, only the crossed end."""
        low, high = self.region
        if self.inside or self.effect is None:
            return [end for end in self.region if math.isfinite(end)]
        return [low] if self.effect <= low else [high]

    def _p_against(self, end: float) -> float:
        assert self.effect is not None
        method, distance = self.method, self.effect - end
        if method not in ("pooled", "t"):
            return paired_p((each - end for each in self._values), test=method)
        if self.spread is None or self.degrees is None or not distance:
            return 1.0
        error = self.spread / math.sqrt(self.n)
        return t_test_p(distance / error, self.degrees + 1) if error else 0.0


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
