"""Plackett and Burman's screening designs (1946): main effects in the fewest runs.

They are Hadamard matrices. If the number of runs is a prime plus one, the generator is the prime's quadratic
residues (Paley 1933). This gives the published designs of 12, 20 and 24 runs. Designs of 28 and 36 runs are
Paley's second construction, and 40 runs are 20 doubled (Sylvester 1867).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from .fractional import Row, TwoLevels, minimum_aberration, rows_of

MAX_SCREENED = 47
"""The maximum number of factors of a screening design: none of these constructions has 52 runs."""

_LARGEST_FRACTION = 16  # runs; larger regular fractions take long to compare

_Signs = tuple[int, ...]


class PlackettBurman(TwoLevels):
    """A design with the fewest runs that can estimate all main effects."""

    title = "the fewest cells of two-level factors that show all main effects"
    source = "Plackett and Burman 1946"
    most_factors = MAX_SCREENED

    def runs(self) -> tuple[Row, ...]:
        return plackett_burman_rows(len(self.two_level))


DESIGN = PlackettBurman


def plackett_burman_rows(factors: int) -> tuple[Row, ...]:
    """Return the runs of the smallest screening design for this many factors.

    The first run has every factor at its first level. If the number of runs is a power of two, the design is
    the regular fraction of that size with minimum aberration.
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
    # pyDOE3 1.6 doubles small matrices from 24 runs on, which aliases main effects fully with interactions
    if _is_prime(order - 1):
        return _cyclic(order - 1)
    if _is_prime(order // 2 - 1) and order // 2 % 4 == 2:
        return _normalised(_symmetric(order // 2 - 1))
    half = _hadamard(order // 2)
    return [(*row, *row) for row in half] + [(*row, *(-sign for sign in row)) for row in half]


def _cyclic(prime: int) -> list[_Signs]:
    """Return the Hadamard matrix of a prime that is 3 modulo 4.

    Its rows are shifts of a row that is -1 at zero and at quadratic residues.
    """
    residues = _residues(prime) | {0}
    generator = [-1 if number in residues else 1 for number in range(prime)]
    shifts = [(1, *generator[-shift:], *generator[:-shift]) for shift in range(prime)]
    return [(1,) * (prime + 1), *shifts]


def _symmetric(prime: int) -> list[_Signs]:
    """Return the Hadamard matrix of a prime that is 1 modulo 4.

    It is built from the prime's conference matrix.
    """
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
    """Multiply columns, then rows, by -1 where needed, so that the first row and column are all 1."""
    turned = [tuple(sign * first for sign, first in zip(row, rows[0], strict=True)) for row in rows]
    return [tuple(sign * row[0] for sign in row) for row in turned]


def _residues(prime: int) -> set[int]:
    return {number * number % prime for number in range(1, prime)}


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, number))
