"""The levels of interim tests (looks), which claims use as seeds are added."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

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
