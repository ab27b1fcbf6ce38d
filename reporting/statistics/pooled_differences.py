"""How surely cells differ from a baseline when there are few seeds: their variance is taken from all of them.

With three seeds a permutation test cannot reach 0.05, and a paired t test has two degrees of freedom. Cells
that are trained alike vary alike, so that the variance of a difference is pooled over all pairs of cells. If
one comparison varies more than that, the largest holds for all, which keeps the rate of false findings below
its level for cells that do not vary alike (`bench/false_findings.py` simulates both).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from .corrections import holm_adjusted
from .estimates import mean, sample_sd, t_quantile
from .paired_tests import paired_p, smallest_p, t_test_p

Values = Mapping[int, float]
"""Values by the unit that they are paired by."""

_ENOUGH = 0.01
"""Where the smallest corrected p that a permutation test can give is at most this, it decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A mean difference over `n` pairs, half the width of its interval, and its p; None if not known."""

    mean: float
    n: int
    half_width: float | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What differs between cells; `error` is the standard error of the difference with the fewest pairs.

    `degrees` are those of the pooled variance; None where each difference has its own, or none is known.
    """

    each: tuple[Difference | None, ...]
    degrees: int | None = None
    error: float | None = None


def differences_from(baseline: Values, others: Sequence[Values], *, level: float = 0.95) -> Differences:
    """The difference of each from the baseline, as in `differences_between`."""
    cells = [baseline, *others]
    return differences_between(cells, [(number, 0) for number in range(1, len(cells))], level=level)


def differences_between(
    cells: Sequence[Values], pairs: Sequence[tuple[int, int]], *, level: float = 0.95
) -> Differences:
    """The first cell of each pair less the second, on the units that both have; None where there are none.

    Each p is for itself, not corrected for the others. Neither interval nor p is known where no pair of
    cells has two units in common, or nothing varies. The pairs are to connect the cells without a circle.
    """
    paired = [_pairs(cells[one], cells[other]) for one, other in pairs]
    counts = [len(found) for found in paired if found]
    if counts and smallest_p(min(counts)) * len(counts) <= _ENOUGH:
        return Differences(each=tuple(_by_permutation(found, level) if found else None for found in paired))
    degrees = sum(count - 1 for count in counts)
    variance = max([_pooled_variance(cells), *map(_variance, paired)], default=0.0)
    if not variance or not degrees:
        each = (Difference(mean=mean(found), n=len(found)) if found else None for found in paired)
        return Differences(each=tuple(each))
    return Differences(
        each=tuple(_by_t(found, variance, degrees, level) if found else None for found in paired),
        degrees=degrees,
        error=math.sqrt(variance / min(counts)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """The p of each pair of cells by their numbers, not corrected for the others; as for `Differences`."""

    p_values: Mapping[tuple[int, int], float]
    degrees: int | None = None
    error: float | None = None


def compare_all(cells: Sequence[Values]) -> Comparisons:
    """Each cell with each other, by the rule that `differences_from` has for comparisons with a baseline."""
    numbers = list(combinations(range(len(cells)), 2))
    paired = {(one, two): pairs for one, two in numbers if (pairs := _pairs(cells[one], cells[two]))}
    counts = [len(pairs) for pairs in paired.values()]
    if counts and smallest_p(min(counts)) * len(counts) <= _ENOUGH:
        return Comparisons(p_values={at: _permutation_p(pairs) for at, pairs in paired.items()})
    units = set[int]().union(*cells)
    degrees = sum(map(len, cells)) - len(cells) - len(units) + 1  # of what cells and units leave over
    variance = max([_pooled_variance(cells), *map(_variance, paired.values())], default=0.0)
    if not variance or degrees < 1:
        return Comparisons(p_values={})
    return Comparisons(
        p_values={at: _t_p(pairs, variance, degrees) for at, pairs in paired.items()},
        degrees=degrees,
        error=math.sqrt(variance / min(counts)),
    )


def corrected(differences: Sequence[Difference | None]) -> list[float | None]:
    """The p values of a column of differences, corrected for how many they are (Holm 1979)."""
    adjusted = iter(holm_adjusted([each.p for each in differences if each and each.p is not None]))
    return [None if each is None or each.p is None else next(adjusted) for each in differences]


def _pairs(values: Values, baseline: Values) -> list[float]:
    """The differences on the units that both have."""
    return [values[unit] - baseline[unit] for unit in sorted(values.keys() & baseline.keys())]


def _variance(differences: Sequence[float]) -> float:
    return (sample_sd(differences) or 0.0) ** 2


def _pooled_variance(cells: Sequence[Values]) -> float:
    """The variance of a difference between two cells: the mean over all pairs, by their degrees of freedom.

    Where all cells have the same units it is twice the residual variance of the cells with units as blocks.
    """
    found = [
        (len(pairs) - 1, _variance(pairs))
        for one, two in combinations(cells, 2)
        if (pairs := _pairs(one, two))
    ]
    degrees = sum(each for each, _ in found)
    return math.fsum(each * variance for each, variance in found) / degrees if degrees else 0.0


def _by_t(pairs: Sequence[float], variance: float, degrees: int, level: float) -> Difference:
    error, middle = math.sqrt(variance / len(pairs)), mean(pairs)
    return Difference(
        mean=middle,
        n=len(pairs),
        half_width=error * t_quantile(level, degrees + 1),
        p=_t_p(pairs, variance, degrees),
    )


def _t_p(pairs: Sequence[float], variance: float, degrees: int) -> float:
    return t_test_p(mean(pairs) / math.sqrt(variance / len(pairs)), degrees + 1)


def _permutation_p(pairs: Sequence[float]) -> float:
    return paired_p(dict(enumerate(pairs)), dict.fromkeys(range(len(pairs)), 0.0))


def _by_permutation(pairs: Sequence[float], level: float) -> Difference:
    """A difference with enough pairs of its own."""
    deviation = sample_sd(pairs) or 0.0
    half = deviation / math.sqrt(len(pairs)) * t_quantile(level, len(pairs))
    return Difference(mean=mean(pairs), n=len(pairs), half_width=half or None, p=_permutation_p(pairs))
