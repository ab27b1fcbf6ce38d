"""What no point of a search surpasses: the best so far, and the front of two metrics with its hypervolume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Pair = tuple[float, float]
"""Two numbers of a point."""

Signs = tuple[int, int]
"""For each of the two 1 where higher is better, else -1."""


def best_so_far(values: Sequence[float], sign: int) -> list[float]:
    """The best of all values up to each."""
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


def hypervolumes(pairs: Sequence[Pair], signs: Signs, others: Sequence[Pair] = ()) -> list[float]:
    """After each pair the share of the box between the worst and the best of each number that is surpassed.

    The box is that of all pairs, so that the last share is of the whole front, and of the others.
    """
    if not pairs:
        return []
    every = [*pairs, *others]
    scaled = list(zip(*(_scaled([pair[at] for pair in every], signs[at]) for at in (0, 1)), strict=True))
    return [_area(scaled[: count + 1]) for count in range(len(pairs))]


def _scaled(values: Sequence[float], sign: int) -> Iterator[float]:
    """Values from 0, the worst of them, to 1, the best; 1 where all are equal."""
    low, high = min(sign * value for value in values), max(sign * value for value in values)
    return ((sign * value - low) / (high - low) if high > low else 1.0 for value in values)


def _area(pairs: Sequence[Pair]) -> float:
    """The area of all rectangles from (0, 0) to a pair; along a front heights fall from left to right."""
    area, left = 0.0, 0.0
    for first, second in (pairs[number] for number in front_of(pairs, (1, 1))):
        area += (first - left) * second
        left = first
    return area
