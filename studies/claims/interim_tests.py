"""The looks (interim tests) at a study whose seeds are added until its questions are decided."""

import math
from collections.abc import Sequence

GROWTH = 1.5
"""The number of seed pairs at one look (interim analysis), divided by the number at the previous look."""


def looks(first: int, most: int) -> tuple[int, ...]:
    """Return the growing seed counts at which a claim is tested, from `first` to `most`.

    Each number is GROWTH times the previous one, rounded up.
    """
    found = [first]
    while found[-1] < most:
        found.append(min(most, math.ceil(GROWTH * found[-1])))
    return tuple(found)


def seeds_at_looks(seeds: Sequence[int], later: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the seeds that each look (interim test of a claim) uses, from `seeds` to all `later` ones."""
    every = (*seeds, *later)
    return tuple(every[:count] for count in looks(len(seeds), len(every)))
