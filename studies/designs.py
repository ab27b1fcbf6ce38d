"""Experimental designs: rows of level indices, computed from the numbers of levels alone.

Regular fractions of two-level designs have minimum aberration (Box, Hunter 1961; Fries, Hunter 1980). A
factor is a column: a bit mask of the basic factors of which it is the sum modulo 2. Every fraction therefore
contains the run in which all factors are at their first level. A word of the defining relation is a set of
columns whose sum is zero.

Plackett and Burman's designs (1946) are Hadamard matrices. If the number of runs is a prime plus one, the
generator is the prime's quadratic residues (Paley 1933). This gives the published designs of 12, 20 and 24
runs. Designs of 28 and 36 runs are Paley's second construction, and 40 runs are 20 doubled (Sylvester 1867).

Samples of a grid of any size follow from the seed and the names of the factors, by SHA-256, on every machine.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations, compress, product
from operator import xor

MAX_FACTORS = 15
"""The maximum number of factors for which fractions are searched."""

Row = tuple[int, ...]
"""The index of each factor's level in a run."""


def fractional_rows(factors: int, resolution: int) -> tuple[Row, ...]:
    """Return the runs of the smallest regular fraction with at least this resolution; the first is all zeros.

    The basic factors come first and form a full grid; the last of them changes fastest.
    """
    return rows_of(smallest_fraction(factors, resolution))


@lru_cache(maxsize=64)
def smallest_fraction(factors: int, resolution: int) -> tuple[int, ...]:
    """Return the columns of the smallest fraction with at least this resolution and minimum aberration."""
    assert 0 <= factors <= MAX_FACTORS
    basic = factors.bit_length()  # as many runs as main effects and their mean need
    while (columns := minimum_aberration(factors, min(basic, factors), resolution)) is None:
        basic += 1
    return columns


@lru_cache(maxsize=64)
def minimum_aberration(factors: int, basic: int, resolution: int) -> tuple[int, ...] | None:
    """Return the columns with minimum aberration among fractions of 2 ** basic runs.

    None if none has this resolution.

    Columns are added one by one to all fractions that differ (Chen, Sun and Wu 1993). Fractions count as
    equal if their runs have equal numbers of high levels, overall and at each factor's high level.
    """
    levels = [[(column & run).bit_count() & 1 for run in range(1 << basic)] for column in range(1 << basic)]
    fractions = [tuple(1 << bit for bit in reversed(range(basic)))]
    for _ in range(factors - basic):
        found: dict[object, tuple[int, ...]] = {}
        for columns in fractions:
            few = (combinations(columns, count) for count in range(resolution - 1))
            taken = {reduce(xor, some, 0) for each in few for some in each}
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

    The function counts them from the runs: the weights of a code determine the weights of its dual
    (MacWilliams 1963).
    """
    counts = [0] * (len(columns) + 1)
    for high, runs in Counter(map(sum, rows_of(columns))).items():
        for length, term in enumerate(_expanded(high, len(columns) - high)):
            counts[length] += runs * term
    return tuple(count // counts[0] for count in counts[1:])


def _invariant(levels: Sequence[Sequence[int]]) -> object:
    """Return an invariant of fractions that differ only in the names of their factors."""
    high = list(map(sum, zip(*levels, strict=True)))
    return tuple(sorted(high)), tuple(sorted(tuple(sorted(compress(high, each))) for each in levels))


@lru_cache(maxsize=1024)
def _expanded(minus: int, plus: int) -> tuple[int, ...]:
    coefficients = [1]
    for sign in [-1] * minus + [1] * plus:
        shifted = [0, *(sign * each for each in coefficients)]
        coefficients = [one + other for one, other in zip([*coefficients, 0], shifted, strict=True)]
    return tuple(coefficients)


MAX_SCREENED = 47
"""The maximum number of factors of a screening design: none of these constructions has 52 runs."""

_LARGEST_FRACTION = 16  # of the powers of two, from which on fractions take long to compare

_Signs = tuple[int, ...]


def plackett_burman_rows(factors: int) -> tuple[Row, ...]:
    """Return the runs of the smallest design, the first all zeros.

    If their number is a power of two, it is the regular fraction of that size with minimum aberration.
    """
    assert 0 <= factors <= MAX_SCREENED
    runs = 4 * (factors // 4 + 1)
    if factors < 3:
        return tuple(product((0, 1), repeat=factors))
    if runs & (runs - 1) == 0 and runs <= _LARGEST_FRACTION:
        columns = minimum_aberration(factors, runs.bit_length() - 1, 3)
        assert columns is not None, "a saturated fraction has room for every factor"
        return rows_of(columns)
    return tuple(tuple(int(sign < 0) for sign in row[1 : factors + 1]) for row in _hadamard(runs))


def _hadamard(order: int) -> list[_Signs]:
    if _is_prime(order - 1):
        return _cyclic(order - 1)
    if _is_prime(order // 2 - 1) and order // 2 % 4 == 2:
        return _normalised(_symmetric(order // 2 - 1))
    half = _hadamard(order // 2)
    return [(*row, *row) for row in half] + [(*row, *(-sign for sign in row)) for row in half]


def _cyclic(prime: int) -> list[_Signs]:
    """Return the matrix for a prime that is 3 modulo 4.

    Its rows are shifts of a row that is -1 at zero and at quadratic residues.
    """
    residues = _residues(prime) | {0}
    generator = [-1 if number in residues else 1 for number in range(prime)]
    shifts = [(1, *generator[-shift:], *generator[:-shift]) for shift in range(prime)]
    return [(1,) * (prime + 1), *shifts]


def _symmetric(prime: int) -> list[_Signs]:
    """Return the matrix for a prime that is 1 modulo 4, from its conference matrix with blocks of four."""
    residues = _residues(prime)
    signs = [
        [
            0 if one == other else 1 if -1 in (one, other) or (one - other) % prime in residues else -1
            for other in range(-1, prime)
        ]
        for one in range(-1, prime)
    ]
    rows: list[_Signs] = []
    for row in signs:
        rows.append(tuple(each for sign in row for each in ((sign, sign) if sign else (1, -1))))
        rows.append(tuple(each for sign in row for each in ((sign, -sign) if sign else (-1, -1))))
    return rows


def _normalised(rows: Sequence[_Signs]) -> list[_Signs]:
    """Flip the signs of columns, then rows, that begin with -1."""
    turned = [tuple(sign * first for sign, first in zip(row, rows[0], strict=True)) for row in rows]
    return [tuple(sign * row[0] for sign in row) for row in turned]


def _residues(prime: int) -> set[int]:
    return {number * number % prime for number in range(1, prime)}


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, number))


Effect = tuple[int, ...]
"""The indices of an effect's factors: one for a main effect, two for an interaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """The aliases of main effects and two-factor interactions, up to their signs.

    `groups` has groups of two or more effects with equal contrasts. `partial` counts correlations between a
    main effect and an interaction by size, without the sizes 0 and 1.
    """

    groups: tuple[tuple[Effect, ...], ...]
    partial: tuple[tuple[Fraction, int], ...]

    @property
    def mains(self) -> tuple[tuple[Effect, ...], ...]:
        """The groups with a main effect."""
        return tuple(group for group in self.groups if len(group[0]) == 1)

    @property
    def interactions(self) -> tuple[tuple[Effect, ...], ...]:
        """The groups with only interactions."""
        return tuple(group for group in self.groups if len(group[0]) > 1)


def find_aliases(rows: Sequence[Row]) -> Aliases:
    """Find the aliases in runs of factors with two levels, 0 and 1."""
    factors = range(len(rows[0]))
    contrasts = [int("".join(str(row[factor]) for row in rows), 2) for factor in factors]  # a bit a run
    whole, groups = (1 << len(rows)) - 1, dict[int, list[Effect]]()
    for effect in [*((each,) for each in factors), *combinations(factors, 2)]:
        contrast = reduce(xor, (contrasts[factor] for factor in effect))
        groups.setdefault(min(contrast, contrast ^ whole), []).append(effect)
    sizes: dict[Fraction, int] = {}
    for main in factors:
        for pair in combinations(factors, 2):
            differing = (contrasts[main] ^ contrasts[pair[0]] ^ contrasts[pair[1]]).bit_count()
            size = abs(1 - 2 * Fraction(differing, len(rows)))
            if main not in pair and 0 < size < 1:
                sizes[size] = sizes.get(size, 0) + 1
    return Aliases(
        groups=tuple(tuple(group) for group in groups.values() if len(group) > 1),
        partial=tuple(sorted(sizes.items(), reverse=True)),
    )


_ROUNDS = 200  # over all cells, to part those that are the same


@lru_cache(maxsize=16)
def random_rows(levels: tuple[tuple[str, int], ...], cells: int, seed: int) -> tuple[Row, ...]:
    """Draw `cells` distinct cells of factors, each with its name and its number of levels.

    A larger number extends a smaller one. Each level is drawn independently, so an additional level of a
    factor does not change the levels of the others.
    """
    wanted = min(cells, math.prod(count for _, count in levels))
    found: dict[Row, None] = {}
    number = 0
    while len(found) < wanted:
        found.setdefault(tuple(_draw(seed, name, number) % count for name, count in levels))
        number += 1
    return tuple(found)


@lru_cache(maxsize=16)
def latin_hypercube_rows(
    levels: tuple[tuple[str, int], ...], cells: int, seed: int
) -> tuple[Row, ...] | None:
    """Draw distinct cells in which a factor's levels are equally frequent, up to one.

    Return None if none are found, for example if nearly the whole grid is requested (McKay, Beckman and
    Conover 1979).
    """
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
    """Return a column in random order, with levels equally frequent up to one."""
    even = [place * count // cells for place in range(cells)]
    order = sorted(range(cells), key=lambda place: _draw(seed, name, place))
    return [even[place] for place in order]


def _draw(seed: int, *what: object) -> int:
    """Return a pseudo-random 64-bit number for a seed and a purpose."""
    text = " ".join(map(str, (seed, *what)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
