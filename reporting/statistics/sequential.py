"""Tests at several looks at growing data, with the error rate of a single test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ...studies.claims.comparisons import looks

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_NODES = 64  # of a quadrature between the boundaries
_TINY = 1e-5  # below, the quadrature has few digits


def seeds_at_looks(seeds: Sequence[int], later: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the seeds of each look of a study with these seeds, to which `later` ones may be added."""
    every = (*seeds, *later)
    return tuple(every[:count] for count in looks(len(seeds), len(every)))


@lru_cache(maxsize=1024)
def look_level(counts: tuple[int, ...], alpha: float) -> float:
    """Return the level of each look, the same for all; `alpha` is the level of all looks together.

    `counts` are the numbers of pairs at the looks, which need not be evenly spaced (Pocock 1977). Without an
    effect the sum of n normal differences is a Brownian motion. Its chance to stay within z √n at all looks
    is integrated numerically. Used as nominal levels of t tests, these levels keep the error rate (Jennison
    and Turnbull 2000, section 3.8). `bench/verdicts.py` simulates it.
    """
    from scipy.special import ndtr  # noqa: PLC0415 -- a table without tests does not need it

    if len(counts) == 1:
        return alpha
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _chance_of_crossing(counts, middle) > alpha else (low, middle)
    return 2.0 * float(ndtr(-high))


@lru_cache(maxsize=4096)
def p_over_looks(counts: tuple[int, ...], p: float) -> float:
    """Return the p over all looks, given the smallest p of one look.

    It is the chance, without an effect, that any look has so small a p. For a tiny p it is p times the number
    of looks.
    """
    from scipy.special import ndtri  # noqa: PLC0415 -- as above

    if len(counts) == 1:
        return p
    chance = _chance_of_crossing(counts, -float(ndtri(max(p, _TINY) / 2)))
    return min(chance, len(counts) * p)


def _chance_of_crossing(counts: Sequence[int], z: float) -> float:
    """Return the chance that a Brownian motion exceeds z √n at any of the times n."""
    import numpy as np  # noqa: PLC0415 -- a table without tests does not need it
    from scipy.special import ndtr  # noqa: PLC0415 -- as above

    nodes, weights = _quadrature()
    first, *later = counts
    edge = z * math.sqrt(first)
    deviation, at = 0.0, edge * nodes
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
    """Return the nodes and weights of the Gauss-Legendre rule on [-1, 1]."""
    import numpy as np  # noqa: PLC0415 -- as above

    return np.polynomial.legendre.leggauss(_NODES)
