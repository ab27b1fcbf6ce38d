"""The p values of a family of tests corrected for how many they are: Holm's and Hochberg's procedures."""

from __future__ import annotations

from collections.abc import Sequence


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values of a family raised to the level of a single test (Holm 1979).

    None is lowered, their order stays, and none exceeds 1.
    """
    count, raised = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        raised = max(raised, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = raised
    return tuple(adjusted)


def holm_levels(p_values: Sequence[float], alpha: float) -> tuple[float, ...]:
    """Return the level with which Holm's procedure compares each p of a family if all smaller ones pass."""
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    ranks = {index: rank for rank, index in enumerate(ranked)}
    return tuple(alpha / (len(p_values) - ranks[index]) for index in range(len(p_values)))


def hochberg_threshold(p_values: Sequence[float], alpha: float) -> float:
    """Return the largest p that is significant in a family (Hochberg 1988), as are all up to it.

    It is `alpha` where every p is, and `alpha / n` where only one can be.
    """
    ordered = sorted(p_values, reverse=True)
    steps = (alpha / number for number, p in enumerate(ordered, 1) if p <= alpha / number)
    return next(steps, alpha / max(1, len(ordered)))


def hochberg_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values of a family, each raised so that it can be held to the level of a single test."""
    lowest, adjusted = 1.0, [0.0] * len(p_values)
    descending = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    for number, index in enumerate(descending, 1):
        lowest = min(lowest, number * p_values[index])
        adjusted[index] = lowest
    return tuple(adjusted)
