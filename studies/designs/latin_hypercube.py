"""Latin hypercubes: samples of a grid in which the counts of a factor's levels differ by at most one."""

from __future__ import annotations

from functools import lru_cache

from ..schema.settings import Level
from .random import Row, Sample, draw


class LatinHypercube(Sample):
    """A design of cells in which each factor's levels occur almost equally often."""

    title = "cells drawn so that each factor's levels occur almost equally often"
    has_conditions = False

    def make_rows(self) -> list[dict[str, Level]]:
        """Return the cells of the hypercube; return an empty list if no hypercube is found."""
        drawn = latin_hypercube_rows(self.sizes, self.settings.cells, self.settings.seed) or ()
        return [self.cell_at(row) for row in drawn]

    def drawing_fault(self) -> str:
        if self.rows():
            return ""
        message = (
            f"found no hypercube of {self.settings.cells:,} different cells in a grid of {self.grid_size:,}"
        )
        return f"{message}: request fewer, or the design random"

    def explain_kind(self) -> str:
        return (
            f"{self.describe_draw()}, with balanced levels; it finds the most important factors, not small "
            "effects or interactions"
        )


DESIGN = LatinHypercube


_ROUNDS = 200  # the most attempts to make all cells different


@lru_cache(maxsize=16)
def latin_hypercube_rows(
    levels: tuple[tuple[str, int], ...], cells: int, seed: int
) -> tuple[Row, ...] | None:
    """Draw distinct cells such that the counts of each factor's levels differ by at most one.

    Return None if no such cells are found, for example if nearly the whole grid is requested. Source: McKay,
    Beckman and Conover (1979).
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
        for at in again:  # two cells swap a level, so each level stays as frequent
            column = columns[draw(seed, "column", number, at) % len(columns)]
            other = draw(seed, "cell", number, at) % cells
            column[at], column[other] = column[other], column[at]
    return None


def _column(name: str, count: int, cells: int, seed: int) -> list[int]:
    """Return a factor's level in each cell, in random order; the counts of levels differ by at most one."""
    even = [place * count // cells for place in range(cells)]
    order = sorted(range(cells), key=lambda place: draw(seed, name, place))
    return [even[place] for place in order]
