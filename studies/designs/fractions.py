"""Regular fractions of two-level designs with minimum aberration (Box, Hunter 1961; Fries, Hunter 1980).

A factor is a column: a number whose bits say of which basic factors it is the sum modulo 2. So the run in
which all factors are at their first level is in every fraction, and a word of the defining relation is a set
of columns that add up to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, compress

MAX_FACTORS = 15
"""Of more factors no fraction is searched for."""

Row = tuple[int, ...]
"""The number of each factor's level in a run."""


def fractional_rows(factors: int, resolution: int) -> tuple[Row, ...]:
    """Return the runs of the smallest regular fraction with at least this resolution, the first all zeros.

    The runs are those of a grid of the basic factors, which come first; the last of them changes fastest.
    """
    return rows_of(smallest_fraction(factors, resolution))


@lru_cache(maxsize=64)
def smallest_fraction(factors: int, resolution: int) -> tuple[int, ...]:
    """Return the columns of the smallest fraction of at least this resolution, of least aberration."""
    assert 0 <= factors <= MAX_FACTORS
    basic = factors.bit_length()  # as many runs as main effects and their mean need
    while (columns := minimum_aberration(factors, min(basic, factors), resolution)) is None:
        basic += 1
    return columns


@lru_cache(maxsize=64)
def minimum_aberration(factors: int, basic: int, resolution: int) -> tuple[int, ...] | None:
    """Return the columns of least aberration among fractions of 2 ** basic runs.

    Returns None if none has this resolution. Columns are added one by one to all fractions that differ
    (Chen, Sun and Wu
    1993). Fractions count as the same if their runs have equal numbers of high levels, in all and at each
    factor's high level.
    """
    levels = [[(column & run).bit_count() & 1 for run in range(1 << basic)] for column in range(1 << basic)]
    fractions = [tuple(1 << bit for bit in reversed(range(basic)))]
    for _ in range(factors - basic):
        found: dict[object, tuple[int, ...]] = {}
        for columns in fractions:
            taken = _sums(columns, resolution - 2)
            for column in range(1, 1 << basic):
                if column not in taken:
                    longer = (*columns, column)
                    found.setdefault(_invariant([levels[each] for each in longer]), longer)
        fractions = list(found.values())
    return min(fractions, key=word_lengths, default=None)


def rows_of(columns: Sequence[int]) -> tuple[Row, ...]:
    """Return the runs of a fraction."""
    basic = max(columns, default=0).bit_length()
    return tuple(tuple((column & run).bit_count() % 2 for column in columns) for run in range(1 << basic))


def word_lengths(columns: Sequence[int]) -> tuple[int, ...]:
    """Return how many words of the defining relation have one letter, two letters, and so on.

    They are counted from the runs: the weights of a code determine those of its dual (MacWilliams 1963).
    """
    counts = [0] * (len(columns) + 1)
    for high, runs in Counter(map(sum, rows_of(columns))).items():
        for length, term in enumerate(_expanded(high, len(columns) - high)):
            counts[length] += runs * term
    return tuple(count // counts[0] for count in counts[1:])


def defining_words(columns: Sequence[int], longest: int) -> Iterator[tuple[int, ...]]:
    """Yield the words of the defining relation up to a length, as numbers of factors."""
    for length in range(1, longest + 1):
        for word in combinations(range(len(columns)), length):
            if not _sum(columns[number] for number in word):
                yield word


def _sum(columns: Iterator[int]) -> int:
    total = 0
    for column in columns:
        total ^= column
    return total


def _sums(columns: Sequence[int], most: int) -> set[int]:
    """Return all sums of at most `most` columns."""
    return {_sum(iter(some)) for count in range(most + 1) for some in combinations(columns, count)}


def _invariant(levels: Sequence[Sequence[int]]) -> object:
    """Return an invariant of fractions that differ only in the names of their factors."""
    high = list(map(sum, zip(*levels, strict=True)))
    return tuple(sorted(high)), tuple(sorted(tuple(sorted(compress(high, each))) for each in levels))


@lru_cache(maxsize=1024)
def _expanded(minus: int, plus: int) -> tuple[int, ...]:
    """Return the coefficients of (1 - z) ** minus * (1 + z) ** plus."""
    coefficients = [1]
    for sign in [-1] * minus + [1] * plus:
        shifted = [0, *(sign * each for each in coefficients)]
        coefficients = [one + other for one, other in zip([*coefficients, 0], shifted, strict=True)]
    return tuple(coefficients)
