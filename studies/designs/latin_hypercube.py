"""Latin hypercubes: samples of a grid in which the levels of a factor occur almost equally often."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

import numpy as np

from ..schema.settings import Level
from .random import Row, Sample


class LatinHypercube(Sample):
    """A design of cells in which each factor's levels occur almost equally often."""

    title = "cells drawn so that each factor's levels occur almost equally often"
    source = "McKay, Beckman and Conover 1979"
    has_conditions = False

    def make_rows(self) -> list[dict[str, Level]]:
        """Return the cells of the hypercube, or an empty list if no hypercube is found."""
        counts = tuple(count for _, count in self.sizes)
        drawn = latin_hypercube_rows(counts, self.settings.cells, self.settings.seed) or ()
        return [self.cell_at(row) for row in drawn]

    def drawing_fault(self) -> str:
        if self.rows():
            return ""
        message = (
            f"found no hypercube of {self.settings.cells:,} different cells in a grid of {self.grid_size:,}"
        )
        return f"{message}: request fewer, all cells, or the design random"

    def explain_kind(self) -> str:
        if self.settings.cells == self.grid_size:
            return f"all {self.grid_size:,} combinations, as in the design grid"
        return (
            f"{self.describe_draw()}, with balanced levels; it finds the most important factors, not small "
            "effects or interactions"
        )


DESIGN = LatinHypercube


_ROUNDS = 200  # the most attempts to make all cells different


@lru_cache(maxsize=16)
def latin_hypercube_rows(counts: tuple[int, ...], cells: int, seed: int) -> tuple[Row, ...] | None:
    """Draw different cells in which the levels of a factor occur almost equally often.

    `counts` has the number of levels of each factor. For the whole grid, return its cells in order. Return
    None if no such cells are found, for example if nearly the whole grid is requested.
    """
    from scipy.stats import qmc  # noqa: PLC0415 -- it takes long to import

    if cells == math.prod(counts):  # all cells of the grid, in which each level is equally frequent
        return tuple(product(*map(range, counts)))
    rng = np.random.default_rng(seed)
    # the middles of the strata: with random points in them, the frequencies could differ by two
    points = qmc.LatinHypercube(len(counts), scramble=False, rng=rng).random(cells)
    rows = np.floor(points * counts).astype(int)
    for _ in range(_ROUNDS):
        _, first = np.unique(rows, axis=0, return_index=True)
        if len(first) == cells:
            return tuple(map(tuple, rows.tolist()))
        for at in np.setdiff1d(np.arange(cells), first):  # two cells swap a level, so each stays as frequent
            other, column = rng.integers(cells), rng.integers(len(counts))
            rows[[at, other], column] = rows[[other, at], column]
    return None
