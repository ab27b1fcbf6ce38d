"""Pareto fronts of loss vectors; lower is better in each component."""

from __future__ import annotations

import math
from collections.abc import Sequence

Losses = Sequence[float]
"""A point's loss for each objective; lower is better."""


def dominates(first: Losses, second: Losses) -> bool:
    """Return whether the first vector is nowhere worse, and somewhere better."""
    return all(a <= b for a, b in zip(first, second, strict=True)) and tuple(first) != tuple(second)


def front(points: Sequence[Losses]) -> list[int]:
    """Return the indices of undominated points, sorted by the first objective; all of equal ones.

    Two objectives are sorted (Kung et al. 1975). With more, each point is compared with the front so far.
    """
    order = sorted(range(len(points)), key=lambda place: tuple(points[place]))
    found: list[int] = []
    if points and len(points[0]) == 2:
        least = math.inf
        for place in order:
            second = points[place][1]
            is_equal = bool(found) and tuple(points[found[-1]]) == tuple(points[place])
            if second < least or is_equal:
                found.append(place)
                least = min(least, second)
        return found
    for place in order:  # none dominates one before it
        if not any(dominates(points[other], points[place]) for other in found):
            found.append(place)
    return found


def ranks(points: Sequence[Losses]) -> list[int]:
    """Return the front of each point: 0 if undominated, 1 if dominated only by front 0, and so on."""
    left, found, rank = list(range(len(points))), [0] * len(points), 0
    while left:
        first = {left[place] for place in front([points[each] for each in left])}
        for place in first:
            found[place] = rank
        left, rank = [place for place in left if place not in first], rank + 1
    return found


def crowding(points: Sequence[Losses]) -> list[float]:
    """Return the crowding distance of each point, relative to the ranges.

    It is ∞ at an end (Deb et al. 2002).
    """
    found = [0.0] * len(points)
    for axis in range(len(points[0]) if points else 0):
        order = sorted(range(len(points)), key=lambda place: points[place][axis])
        low, high = points[order[0]][axis], points[order[-1]][axis]
        found[order[0]] = found[order[-1]] = math.inf
        if not (math.isfinite(high - low) and high > low):
            continue
        for before, place, after in zip(order, order[1:], order[2:], strict=False):
            found[place] += (points[after][axis] - points[before][axis]) / (high - low)
    return found
