"""Decisions on whether two cells differ, or whether they differ by less than a margin.

A difference is tested at several looks with growing numbers of seeds. Two tests cover all looks, each
corrected for the other differences (Holm 1979), and each keeps its own level. One tests whether the
difference exists. The other tests whether it is smaller than the margin (two one-sided tests, Schuirmann
1987).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from .estimates import holm_adjusted, holm_levels
from .pooled_differences import Difference, Values, differences_between

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_NODES = 64  # nodes of the quadrature between the boundaries
_TINY = 1e-5  # below this the quadrature is inaccurate


@lru_cache(maxsize=1024)
def look_level(counts: tuple[int, ...], alpha: float) -> float:
    """Return the level of each look (interim test) at which all looks together have the error rate `alpha`.

    `counts` are the numbers of pairs at the looks, which need not be evenly spaced (Pocock 1977). Without an
    effect the sum of n normal differences is a Brownian motion. Its chance to stay within z √n at all looks
    is integrated numerically. If t tests use these levels, the error rate is kept (Jennison and Turnbull
    2000, section 3.8), as a simulation in `bench/verdicts.py` shows.
    """
    if len(counts) == 1:
        return alpha
    from scipy.special import ndtr  # noqa: PLC0415 -- a table without tests does not need it

    low, high = 0.0, 10.0
    # the chance of crossing falls as the boundary z grows, so bisection finds z
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _chance_of_crossing(counts, middle) > alpha else (low, middle)
    return 2.0 * float(ndtr(-high))


@lru_cache(maxsize=4096)
def p_over_looks(counts: tuple[int, ...], p: float) -> float:
    """Correct the smallest p-value of several looks (interim tests) for their number.

    The result is the chance, without an effect, that any look has a p-value as small as this. For tiny p it
    is p times the number of looks.
    """
    if len(counts) == 1:
        return p
    from scipy.special import ndtri  # noqa: PLC0415 -- as above

    chance = _chance_of_crossing(counts, -float(ndtri(max(p, _TINY) / 2)))
    return min(chance, len(counts) * p)


def _chance_of_crossing(counts: Sequence[int], z: float) -> float:
    """Return the chance that a Brownian motion crosses ± z √n at one of the times n in `counts`."""
    import numpy as np  # noqa: PLC0415 -- a table without tests does not need it
    from scipy.special import ndtr  # noqa: PLC0415 -- as above

    nodes, weights = _quadrature()
    first, *later = counts
    edge = z * math.sqrt(first)
    deviation, at = 0.0, edge * nodes
    # the density of paths that stayed inside at all looks so far, times the weights of the nodes
    mass = edge * weights * np.exp(-(at**2) / (2 * first)) / math.sqrt(2 * math.pi * first)
    before = first
    for count in later:
        deviation, edge = math.sqrt(count - before), z * math.sqrt(count)
        if count == later[-1]:
            break
        points = edge * nodes
        steps = (points[:, None] - at) / deviation  # (points, nodes before)
        density = np.exp(-(steps**2) / 2) @ mass / (deviation * math.sqrt(2 * math.pi))
        at, mass, before = points, edge * weights * density, count
    inside = ndtr((edge - at) / deviation) - ndtr((-edge - at) / deviation)
    return 1.0 - float(mass @ inside)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    import numpy as np  # noqa: PLC0415 -- as above

    return np.polynomial.legendre.leggauss(_NODES)


SIGNIFICANCE_LEVEL = 0.05
"""A corrected p below this is significant."""

ValuesByLook = Sequence[Values]
"""The values of a cell at each look that it has reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedDifference:
    """The difference between two cells at several looks (interim tests), and whether it is decided.

    `shown` is the difference at the look that decided it, or at the last look that both cells have reached.
    `last` is the difference at the last look, and `looks` the number of looks so far. `p` covers all looks
    and is corrected for the other differences; None if unknown. `differs` and `is_within` are the decisions.
    `level` and `level_within` are the levels of one look, corrected for the differences that are still
    undecided.
    """

    shown: Difference
    last: Difference
    looks: int
    p: float | None = None
    differs: bool = False
    is_within: bool = False
    level: float = SIGNIFICANCE_LEVEL
    level_within: float = SIGNIFICANCE_LEVEL

    @property
    def is_decided(self) -> bool:
        """Return whether the cells are shown to differ, or to differ by less than the margin."""
        return self.differs or self.is_within


def differences_at_looks(
    cells: Sequence[ValuesByLook],
    pairs: Sequence[tuple[int, int]],
    counts: Sequence[int],
    margin: float | None = None,
    *,
    step: float = 0.0,
) -> tuple[list[tuple[Difference, ...]], list[Difference | None]]:
    """Return the difference of each pair of cells at each look (interim test), then all at the last look.

    It is the first cell minus the second. A pair has a difference at the looks that both cells have reached.

    Intervals have the level of one look. `counts` are the numbers of seeds of all looks. The variance at a
    look is estimated from the seeds that each cell has at this look. `step` is the rounding of values.
    """
    level = 1 - look_level(tuple(counts), SIGNIFICANCE_LEVEL)
    found = [
        differences_between(
            [cell[min(look, len(cell) - 1)] for cell in cells], pairs, level=level, margin=margin, step=step
        )
        for look in range(max(map(len, cells), default=1))
    ]
    each = [
        tuple(
            difference
            for look, differences in enumerate(found[: min(len(cells[one]), len(cells[other]))])
            if (difference := differences[number]) is not None
        )
        for number, (one, other) in enumerate(pairs)
    ]
    return each, found[-1]


def decide(found: Sequence[Sequence[Difference]], counts: Sequence[int]) -> list[DecidedDifference]:
    """Decide which differences exist, and which are negligible (within their margin).

    Each difference has at least one look.
    """
    zero, within = (
        _tested(p_values, tuple(counts))
        for p_values in (
            [[each.p for each in looks] for looks in found],
            [[each.p_within for each in looks] for looks in found],
        )
    )
    return [
        DecidedDifference(
            # if both are shown, that of the look that showed that the difference exists
            shown=looks[next((look for look in (differs, is_within) if look is not None), -1)],
            last=looks[-1],
            looks=len(looks),
            p=p,
            differs=differs is not None,
            is_within=is_within is not None,
            level=level,
            level_within=level_within,
        )
        for looks, (p, differs, level), (_, is_within, level_within) in zip(found, zero, within, strict=True)
    ]


def _tested(
    p_values: Sequence[Sequence[float | None]], counts: tuple[int, ...]
) -> list[tuple[float | None, int | None, float]]:
    """Test each difference over all looks (interim tests).

    Return its p-value, the first significant look, and the significance level of a single look. The p-values
    are corrected for the looks and for the number of differences (Holm 1979); None without values.
    """
    known = [number for number, looks in enumerate(p_values) if any(p is not None for p in looks)]
    looked = {number: [1.0 if p is None else p for p in p_values[number]] for number in known}
    raised = [min(1.0, p_over_looks(counts, min(looked[number]))) for number in known]
    adjusted = dict(zip(known, holm_adjusted(raised), strict=True))
    limits = dict(zip(known, holm_levels(raised, SIGNIFICANCE_LEVEL), strict=True))
    rejected = {number for number, p in adjusted.items() if p < SIGNIFICANCE_LEVEL}
    left = SIGNIFICANCE_LEVEL / max(1, len(known) - len(rejected))
    found: list[tuple[float | None, int | None, float]] = []
    for number in range(len(p_values)):
        first = None
        if number in rejected:
            limit, looks = look_level(counts, limits[number]), looked[number]
            # the numerical integration is inexact: if no p is below the limit, the smallest p decides
            first = next((look for look, p in enumerate(looks) if p < limit), looks.index(min(looks)))
        found.append((adjusted.get(number), first, look_level(counts, left)))
    return found
