"""Cells drawn from a grid of any size without making it: at random, or as a Latin hypercube.

What is drawn follows from the seed and the names of the factors, by SHA-256, on every machine and for ever.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache

from .fractions import Row

_ROUNDS = 200  # over all cells, to part those that are the same


def random_rows(levels: Mapping[str, int], cells: int, seed: int) -> tuple[Row, ...]:
    """Draw `cells` different cells of factors with these numbers of levels.

    A larger number extends a smaller. Each level is drawn independently, so that another level of one
    factor leaves those of the others.
    """
    return _random_rows(tuple(levels.items()), cells, seed)


def latin_hypercube_rows(levels: Mapping[str, int], cells: int, seed: int) -> tuple[Row, ...] | None:
    """Draw different cells in which all levels of a factor are equally frequent, up to one.

    Returns None if none are found, as when nearly the whole grid is asked for (McKay, Beckman and Conover
    1979).
    """
    return _latin_hypercube_rows(tuple(levels.items()), cells, seed)


@lru_cache(maxsize=16)
def _random_rows(levels: tuple[tuple[str, int], ...], cells: int, seed: int) -> tuple[Row, ...]:
    wanted = min(cells, math.prod(count for _, count in levels))
    found: dict[Row, None] = {}
    number = 0
    while len(found) < wanted:
        found.setdefault(tuple(_draw(seed, name, number) % count for name, count in levels))
        number += 1
    return tuple(found)


@lru_cache(maxsize=16)
def _latin_hypercube_rows(
    levels: tuple[tuple[str, int], ...], cells: int, seed: int
) -> tuple[Row, ...] | None:
    columns = [_column(name, count, cells, seed) for name, count in levels]
    for number in range(_ROUNDS):
        met: set[Row] = set()
        again: list[int] = []
        for at, row in enumerate(zip(*columns, strict=True)):
            if row in met:
                again.append(at)
            met.add(row)
        if not again:
            return tuple(zip(*columns, strict=True)) if columns else ((),)
        for at in again:  # a level changes places with that of another cell: each stays as frequent
            column = columns[_draw(seed, "column", number, at) % len(columns)]
            other = _draw(seed, "cell", number, at) % cells
            column[at], column[other] = column[other], column[at]
    return None


def _column(name: str, count: int, cells: int, seed: int) -> list[int]:
    """Each level as often as the others, but for one, in an order of its own."""
    even = [place * count // cells for place in range(cells)]
    order = sorted(range(cells), key=lambda place: _draw(seed, name, place))
    return [even[place] for place in order]


def _draw(seed: int, *what: object) -> int:
    """Return a number of 64 bits."""
    text = " ".join(map(str, (seed, *what)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
