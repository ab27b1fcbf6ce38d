"""Random cells of a grid of any size.

The levels follow from SHA-256 hashes of the seed and the factors' names, so they are the same on every
machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pydantic import Field

from ..schema.design import Design
from ..schema.factors import level_key
from ..schema.settings import Level
from ..text.strict_model import PartSettings
from ..text.toml_positions import KeyPath

Row = tuple[int, ...]
"""The index of each factor's level in a cell."""

_MAX_DRAWN = 64  # the most draws, as a multiple of the requested cells


class SampleSettings(PartSettings):
    """The keys of `[study] design` for samples of a grid."""

    cells: int = Field(ge=1, le=100_000)
    """the number of cells drawn from the grid"""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """the seed of the draw"""


@dataclass(frozen=True, kw_only=True)
class Sample(Design):
    """Base class of designs that draw different cells of the grid with a seed."""

    settings: SampleSettings

    settings_class = SampleSettings

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """The name of each factor and its number of levels."""
        return tuple((name, len(levels)) for name, levels in self.inner.items())

    @property
    def grid_size(self) -> int:
        """The number of cells of the grid."""
        return math.prod(count for _, count in self.sizes)

    def cell_at(self, row: Row) -> dict[str, Level]:
        """Return the cell whose levels have these indices."""
        return {name: levels[number] for (name, levels), number in zip(self.inner.items(), row, strict=True)}

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield a fault if there are fewer cells than requested."""
        path, size = ("study", "design", "cells"), self.grid_size
        if self.settings.cells > size:
            yield path, f"expected at most {size:,}, all cells of the grid, got {self.settings.cells:,}"
        elif fault := self.drawing_fault():
            yield path, fault

    def drawing_fault(self) -> str:
        """Return an error message if too few cells can be drawn, else ""."""
        raise NotImplementedError

    def describe_draw(self) -> str:
        """Describe the sample: `24 of 1,000 combinations, drawn with seed 0`."""
        return (
            f"{len(self.rows()):,} of {self.grid_size:,} combinations, drawn with seed {self.settings.seed}"
        )


class Random(Sample):
    """A design of cells that are drawn independently."""

    title = "different cells of the grid, drawn at random"

    def make_rows(self) -> list[dict[str, Level]]:
        """Return the drawn cells, without repetition.

        Two draws are the same cell if they differ only in conditional factors that the cell lacks. So there
        may be fewer different cells than requested.
        """
        most = min(self.grid_size, _MAX_DRAWN * self.settings.cells)
        drawn, found = self.settings.cells, dict[object, dict[str, Level]]()
        while drawn:
            for row in random_rows(self.sizes, drawn, self.settings.seed):
                cell = self.with_absent(self.cell_at(row))
                found.setdefault(tuple(map(level_key, cell.values())), cell)
            if len(found) >= self.settings.cells or drawn >= most:
                break
            drawn = min(2 * drawn, most)
        return list(found.values())[: self.settings.cells]

    def drawing_fault(self) -> str:
        if (found := len(self.rows())) >= self.settings.cells:
            return ""
        reason = f"some factors are conditional, so only {found:,} different cells were found"
        return f"expected at most {found:,} cells, got {self.settings.cells:,}: {reason}"

    def explain_kind(self) -> str:
        return (
            f"{self.describe_draw()}; a higher number of cells only adds to these; the design finds the most "
            "important factors, not small effects or interactions"
        )


DESIGN = Random


@lru_cache(maxsize=16)
def random_rows(levels: tuple[tuple[str, int], ...], cells: int, seed: int) -> tuple[Row, ...]:
    """Draw `cells` different cells.

    `levels` has the name and the number of levels of each factor. A draw of more cells begins with the draw
    of fewer. Each level is drawn independently, so an additional level of a factor does not change the levels
    of the others.
    """
    wanted = min(cells, math.prod(count for _, count in levels))
    found: dict[Row, None] = {}
    number = 0
    while len(found) < wanted:
        found.setdefault(tuple(draw(seed, name, number) % count for name, count in levels))
        number += 1
    return tuple(found)


def draw(seed: int, *what: object) -> int:
    """Return a pseudo-random 64-bit number that depends only on the arguments."""
    text = " ".join(map(str, (seed, *what)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
