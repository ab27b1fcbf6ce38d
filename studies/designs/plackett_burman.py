"""Plackett and Burman's screening designs (1946): main effects in the fewest runs.

Those of 12, 20 and 24 runs are the published ones. Their numbers of runs are a prime plus one, and their
generators are the quadratic residues of the primes (Paley 1933).
"""

from __future__ import annotations

from itertools import product

from .fractional import Row, TwoLevels, fractional_rows

MAX_SCREENED = 23
"""The maximum number of factors of a screening design."""


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
    if runs & (runs - 1) == 0:
        return fractional_rows(factors, "III")
    # pyDOE3 1.6 doubles small matrices from 24 runs on, which aliases main effects fully with interactions
    prime = runs - 1
    residues = {number * number % prime for number in range(prime)}
    generator = [int(number in residues) for number in range(prime)]
    shifts = [generator[-shift:] + generator[:-shift] for shift in range(prime)]
    return ((0,) * factors, *(tuple(shift[:factors]) for shift in shifts))
