"""Plackett and Burman's screening designs (1946): all main effects of two-level factors in few runs."""

from __future__ import annotations

import numpy as np

from .fractional import Row, TwoLevels, fractional_rows

MAX_SCREENED = 47
"""The maximum number of factors of a screening design."""


class PlackettBurman(TwoLevels):
    """A design with few runs that can estimate all main effects."""

    title = "few cells of two-level factors that show all main effects"
    source = "Plackett and Burman 1946"
    most_factors = MAX_SCREENED

    def runs(self) -> tuple[Row, ...]:
        return plackett_burman_rows(len(self.two_level))


DESIGN = PlackettBurman


def plackett_burman_rows(factors: int) -> tuple[Row, ...]:
    """Return the runs of a screening design for this many factors.

    The first run has every factor at its first level. The number of runs is a multiple of 4 above the number
    of factors: 12, 20 or a power of two, or one of these doubled.
    """
    from pyDOE3 import pbdesign  # noqa: PLC0415 -- it takes long to import

    assert 0 <= factors <= MAX_SCREENED
    runs = 4 * (factors // 4 + 1)
    if factors < 3 or runs in (8, 16):
        # pyDOE3's four factors in 8 runs, and 12 in 16, have more aberration
        return fractional_rows(factors, 3)
    columns = (
        factors if runs not in (28, 36, 44) else runs
    )  # sizes for which pyDOE3 takes the next larger one
    signs = np.flipud(pbdesign(columns))[:, :factors]
    return tuple(tuple(int(sign < 0) for sign in row) for row in signs)
