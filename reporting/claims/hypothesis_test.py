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
from typing import ClassVar, Literal

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
from ..statistics.speedup import Ends, bounds_of_mean


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """A test of whether the mean of paired differences lies in `region`.

    `region` is an open interval. `differences` has left minus right for each seed. If one is infinite, or if
    the values are `ranked` since both sides of a seed are infinite, which is a tie, their median is tested by
    ranks. If both sides are `at_bound`, equal values are taken as proven, and no more can be shown.

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
    ranked: bool = False
    at_bound: bool = False
    pool: Pool | None = None
    family: int = 1
    alpha: float = 1.0

    @property
    def n(self) -> int:
        """Return the number of seeds with a value on both sides of the comparison."""
        return len(self.differences)

    @cached_property
    def effect(self) -> float | None:
        """Return the estimate of left minus right; None without seeds.

        It is the mean over seeds, or the Hodges–Lehmann estimate if ranks are tested.
        """
        if not self.differences:
            return None
        values = list(self.differences.values())
        return hodges_lehmann(values) if self._is_ranked else mean(values)

    @cached_property
    def _is_ranked(self) -> bool:
        return self.ranked or any(map(math.isinf, self.differences.values()))

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
        return sample_sd(list(self.differences.values())) if is_pooled else None

    @property
    def degrees(self) -> float | None:
        """Return the degrees of freedom of the t interval; None below two seeds."""
        return None if self._spread is None else self._spread[1]

    @cached_property
    def _spread(self) -> tuple[float, float] | None:
        without = self._is_ranked or self.at_bound
        found = None if without else sample_sd(list(self.differences.values()))
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
        if self.effect is None:
            return False
        low, high = self.region
        return low < self.effect < high

    @cached_property
    def p(self) -> float:
        """Return the p-value: the smallest significance level at which the test decides. At most 1."""
        if self.effect is None or not self.complete:
            return 1.0
        if self.exact:
            return 0.0
        if self.at_bound:
            return 0.0 if self.inside else 1.0
        if self._is_ranked:
            return min(self._ranked_p)
        if self.inside:  # the mean must differ from both ends
            return max(map(self._p_against, self._ends))
        return min(map(self._p_against, self._crossed_ends))

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the t interval of the mean difference, or for ranks that of Wilcoxon's test.

        None with too few seeds, and at a bound.
        """
        if self._is_ranked:
            return signed_rank_interval(list(self.differences.values()), level)
        if self.effect is not None and self.exact:
            return (self.effect, self.effect)
        if self.effect is None or self.spread is None or self.degrees is None:
            return None
        # `t_quantile` takes a number of values, which is one more than their degrees of freedom
        half = t_quantile(level, self.degrees + 1) * self.spread / math.sqrt(self.n)
        return (self.effect - half, self.effect + half)

    def needed(self, level: float) -> int | None:
        """Return how many seeds decide the comparison with a power of 80 %; None if unknown.

        It is assumed that the true effect is as large as estimated. For ranks it is the fewest seeds that can
        decide.
        """
        if self._is_ranked:
            return _fewest_seeds(self.p, self.n, level)
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

    @cached_property
    def _ranked_p(self) -> tuple[float, float]:
        values = list(self.differences.values())
        return _p_by_ranks(values, values, self.region)

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
            return paired_p((each - end for each in self.differences.values()), test=method)
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
    at_bound: ClassVar = False
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
        inside, outside = self._ranked_p
        return inside < outside

    @property
    def p(self) -> float:
        """Return the p-value: the smallest significance level at which the test decides. At most 1."""
        return min(self._ranked_p) if self.complete else 1.0

    def interval(self, level: float) -> None:
        """Return None, since bounds have no t interval at any level."""

    def needed(self, level: float) -> int | None:
        """Return the fewest seeds that can decide the comparison; None if unknown.

        It is unknown if the bounds allow both verdicts.
        """
        return _fewest_seeds(self.p, self.n, level)

    @cached_property
    def _ranked_p(self) -> tuple[float, float]:
        lows, highs = ([ends[side] for ends in self.ends.values()] for side in (0, 1))
        return _p_by_ranks(lows, highs, self.region)


def _p_by_ranks(
    lows: Sequence[float], highs: Sequence[float], region: tuple[float, float]
) -> tuple[float, float]:
    """Return the p-values for a median inside and outside the region, with the least favourable values.

    `lows` and `highs` are the ends of all differences.
    """
    low, high = region
    inside = max(_p_of_ranks(lows, low, 1), _p_of_ranks(highs, high, -1))
    return inside, min(_p_of_ranks(highs, low, -1), _p_of_ranks(lows, high, 1))


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


def _fewest_seeds(p: float, n: int, level: float) -> int | None:
    """Return the fewest seeds with which ranks can decide; None if `n` are enough, or if p is 1."""
    fewest = next(many for many in count(2) if smallest_p(many) <= 1 - level)
    return fewest if p < 1 and fewest > n else None
