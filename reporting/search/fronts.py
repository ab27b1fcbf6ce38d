"""The best points of a search so far, and the front of two metrics."""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[float, float]
"""Two numbers of a point."""

Signs = tuple[int, int]
"""For each of the two 1 where higher is better, else -1."""


def best_so_far(values: Sequence[float], sign: int) -> list[float]:
    """Return the best of all values up to each."""
    found: list[float] = []
    for value in values:
        found.append(value if not found or sign * value > sign * found[-1] else found[-1])
    return found


def front_of(pairs: Sequence[Pair], signs: Signs) -> list[int]:
    """The numbers of the pairs that none surpasses, by their first number; of equal ones the earliest."""

    def key(number: int) -> tuple[float, float, int]:
        first, second = pairs[number]
        return (-signs[0] * first, -signs[1] * second, number)

    front: list[int] = []
    for number in sorted(range(len(pairs)), key=key):
        if not front or signs[1] * pairs[number][1] > signs[1] * pairs[front[-1]][1]:
            front.append(number)
    return sorted(front, key=lambda number: pairs[number][0])
