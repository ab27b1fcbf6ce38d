"""Tests of differences between cells with few seeds, by one variance that is estimated from all cells.

With three seeds a permutation test cannot reach 0.05, and a paired t test has two degrees of freedom.
Similarly trained cells have similar variances. So the variance of a difference is pooled over all pairs of
cells with any variance. Cells without variance do not count: three lengths of 7 do not show that lengths
never vary. `larger_variance` is the one rule of tables, claims and speedups: each comparison takes the larger
of the pooled variance and its own, which has fewer degrees of freedom. `bench/verdicts.py` simulates claims
and tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from .estimates import mean, paired_p, power_of_two, sample_sd, smallest_p, t_quantile, t_test_p

Values = Mapping[int, float]
"""Values by the unit by which they are paired, such as a seed."""

_ENOUGH = 0.01
_ROUNDING = 1e-12  # rounding error of sums of floats, relative to the largest value


def permutation_decides(n: int, tests: int, alpha: float = 1.0) -> bool:
    """Return whether a permutation test of n pairs can reach a useful p-value.

    After a correction for `tests` tests, its smallest p-value must be at most `alpha`, and at most 0.01.
    """
    return smallest_p(n) * tests <= min(_ENOUGH, alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The standard deviation of a value or a difference, as of two cells with the same seed.

    Its square is estimated with `degrees` degrees of freedom.
    """

    sd: float
    degrees: float


def pooled_variance(cells: Sequence[Values]) -> Pool | None:
    """Estimate the variance of a difference between two cells from the values of all cells.

    Return None if it is unknown. The variance is the mean over all pairs of cells, weighted by degrees of
    freedom. If all cells have the same units, the variance is twice the residual variance of a model of the
    cells with the units as blocks.
    """
    scale = power_of_two(value for cell in cells for value in cell.values())
    varying = [
        {unit: value / scale for unit, value in cell.items()} for cell in cells if len(set(cell.values())) > 1
    ]
    # cells with the same units are grouped: there may be too many pairs of cells to visit each
    alike: dict[frozenset[int], list[Values]] = {}
    for cell in varying:
        alike.setdefault(frozenset(cell), []).append(cell)
    found = [
        _squares_of_pairs(alike[one], alike[two] if one != two else None, sorted(one & two))
        for one, two in combinations_with_replacement(alike, 2)
        if len(one & two) > 1
    ]
    weight = sum(each for each, _ in found)
    units = set[int]().union(*varying)
    degrees = sum(map(len, varying)) - len(varying) - len(units) + 1  # residuals after cell and unit effects
    if not weight or degrees < 1:
        return None
    sd = math.sqrt(math.fsum(squares for _, squares in found) / weight)
    return Pool(sd=scale * _beyond_rounding(sd, varying), degrees=degrees)


def _beyond_rounding(sd: float, cells: Sequence[Values]) -> float:
    largest = max((abs(value) for cell in cells for value in cell.values()), default=0.0)
    return sd if sd > _ROUNDING * largest else 0.0


def _squares_of_pairs(
    ones: Sequence[Values], others: Sequence[Values] | None, units: Sequence[int]
) -> tuple[int, float]:
    """Return the degrees of freedom and the sum of squares over all pairs of cells.

    A pair has a difference for each unit, and its squares are around the mean of these differences. Each of
    `ones` is paired with each of `others`; without `others`, `ones` are paired with each other. There may be
    millions of pairs, so the sum is computed from each cell's deviation from its group's mean.
    """
    mean_of_ones, own = _residuals(ones, units)
    if others is None:
        return math.comb(len(ones), 2) * (len(units) - 1), len(ones) * own
    mean_of_others, theirs = _residuals(others, units)
    apart = math.fsum((a - b) ** 2 for a, b in zip(mean_of_ones, mean_of_others, strict=True))
    pairs = len(ones) * len(others)
    return pairs * (len(units) - 1), len(others) * own + len(ones) * theirs + pairs * apart


def _residuals(cells: Sequence[Values], units: Sequence[int]) -> tuple[list[float], float]:
    courses = [_centred([cell[unit] for unit in units]) for cell in cells]
    means = [mean(values) for values in zip(*courses, strict=True)]
    rest = math.fsum((value - at) ** 2 for course in courses for value, at in zip(course, means, strict=True))
    return means, rest


def _centred(values: Sequence[float]) -> list[float]:
    middle = mean(values)
    return [value - middle for value in values]


def larger_variance(differences: Sequence[float], pool: Pool | None, rounding: float = 0.0) -> Pool | None:
    """Return the variance that tests a comparison: the larger of its own and the pooled one.

    Its own is that of its `differences`. It counts as at least the square of `rounding`, the standard
    deviation of rounding alone: seeds of equal values do not prove that the next one is equal. It has Welch's
    degrees of freedom, n − 1 for n paired differences. Return None for fewer than two, whose variance is
    unknown.
    """
    if len(differences) < 2:
        return None
    own = max(sample_sd(differences) or 0.0, rounding)
    if pool is not None and own <= pool.sd:
        return pool
    return Pool(sd=own, degrees=len(differences) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean difference of two cells over `n` pairs of values.

    `half_width` is half of the width of its interval. Unknown values are None. `p` tests against no
    difference, by a t test or, if it `is_permuted`, by a permutation test. `error` is the standard error of
    the interval, with its `degrees` of freedom.
    """

    mean: float
    n: int
    half_width: float | None = None
    p: float | None = None
    error: float | None = None
    degrees: float | None = None
    is_permuted: bool = False


def differences_between(
    cells: Sequence[Values],
    pairs: Sequence[tuple[int, int]],
    *,
    step: float = 0.0,
) -> list[Difference | None]:
    """Return the mean of first minus second for each pair of cells, over the units (seeds) that both have.

    A difference is None if the cells share no unit. Each p is uncorrected. Interval and p are unknown if no
    pair of cells shares two units, or if the values do not vary. Values that are rounded to steps of `step`
    vary at least by rounding: seeds of equal values do not prove that the next one is equal.
    """
    paired = [
        [cells[one][unit] - cells[other][unit] for unit in sorted(cells[one].keys() & cells[other].keys())]
        for one, other in pairs
    ]
    counts = [len(found) for found in paired if found]
    if counts and permutation_decides(min(counts), len(counts)):
        return [_difference(found, None) if found else None for found in paired]
    pool = pooled_variance(cells)
    tested: list[Difference | None] = []
    for found in paired:
        variance = larger_variance(found, pool, step / math.sqrt(6))  # √2 · step / √12
        if variance is not None and _beyond_rounding(variance.sd, cells):
            tested.append(_difference(found, variance))
        else:
            tested.append(Difference(mean=mean(found), n=len(found)) if found else None)
    return tested


def _difference(pairs: Sequence[float], variance: Pool | None) -> Difference:
    """Test the mean of differences: by a t test with this variance, or without one by permutation.

    The 95 % interval has the same variance, or that of the pairs.
    """
    middle, n = mean(pairs), len(pairs)
    degrees = n - 1 if variance is None else variance.degrees
    error = (sample_sd(pairs) or 0.0 if variance is None else variance.sd) / math.sqrt(n)
    return Difference(
        mean=middle,
        n=n,
        half_width=error * t_quantile(0.95, degrees) or None,
        p=paired_p(pairs) if variance is None else t_test_p(middle / error, degrees),
        error=error or None,
        degrees=degrees,
        is_permuted=variance is None,
    )
