"""A study that is still being checked: its parts, and its faults.

Holes are filled by factors, dimensions of a search, the size that is solved, and fragments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...grammar.nodes import Dimension
from ..schema.design import Design, level_key
from ..schema.design_reader import BASELINE_PATH
from ..schema.factors import ABSENT, SEED
from ..schema.search import representative_values
from ..schema.settings import Level
from ..text.diagnostics import Diagnostics
from ..text.toml_positions import KeyPath
from .template import Template

PlacedLevels = tuple[tuple[KeyPath, Level], ...]
"""Levels, each with its path in the file."""


def filler_kinds(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the kind of each name that fills holes with levels or values, valid or not, and of `seed`."""
    search, study, cells = data.get("search"), data.get("study"), data.get("cells")
    tables = [
        (study.get("baseline") if isinstance(study, Mapping) and "match" in study else None, "a size"),
        (search.get("space") if isinstance(search, Mapping) else None, "a dimension"),
        *((cell, "a factor") for cell in (cells if isinstance(cells, list) else ())),
        (data.get("factors"), "a factor"),
    ]
    kinds = {name: kind for table, kind in tables if isinstance(table, Mapping) for name in table}
    return {**kinds, SEED: "a factor"}


def named_fragments(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in [recipes], valid or not."""
    table = data.get("recipes")
    return tuple(table) if isinstance(table, Mapping) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of a study that its holes and levels are checked in; `space` is [search.space]."""

    diagnostics: Diagnostics
    template: Template
    design: Design
    space: Mapping[str, Dimension]

    def declared_names(self) -> set[str]:
        """Every name that can fill a hole, whether its values are valid or not."""
        return {
            *filler_kinds(self.diagnostics.document.data),
            *named_fragments(self.diagnostics.document.data),
        } - {SEED}

    def axes(self) -> dict[str, PlacedLevels]:
        """Return the values that fill holes, by name.

        They are a factor's levels, a dimension's representatives, or a size. Each has its path. A factor
        has the levels in [factors] first, then those that only [[cells]] have.
        """
        listed = list(dict.fromkeys(item for cell in self.listed_cells() for item in cell.items()))
        listed = [item for item in listed if item[1][1] != ABSENT]
        factors = {
            name: (*self.combined_levels(name), *(placed for factor, placed in listed if factor == name))
            for name in self.design.factors
            if name != SEED
        }
        space = {
            name: tuple((("search", "space", name), level) for level in representative_values(dimension))
            for name, dimension in self.space.items()
        }
        size = self.design.matched_size
        sizes = {size[0]: (((*BASELINE_PATH, size[0]), size[1]),)} if size else {}
        return {**factors, **space, **sizes}

    def combined_levels(self, factor: str) -> PlacedLevels:
        """Return the levels of a factor in [factors]."""
        levels = self.design.combined_factors.get(factor, ())
        return tuple((("factors", factor, index), level) for index, level in enumerate(levels))

    def combined_cells(self) -> Iterator[dict[str, tuple[KeyPath, Level]]]:
        """Yield the cells that the design makes, by factor: each level with its path."""
        paths = {
            name: {level_key(level): path for path, level in reversed(self.combined_levels(name))}
            for name in self.design.crossed
        }
        for cell in self.design.combined_cells():
            yield {
                name: (paths[name].get(level_key(level), (*BASELINE_PATH, name)), level)
                for name, level in cell.items()
            }

    def listed_cells(self) -> list[dict[str, tuple[KeyPath, Level]]]:
        """Return the cells of [[cells]], by factor: each level with its path, which may be in the baseline.

        Cells that lack a factor or have an unknown one are left out.
        """
        tables = self.diagnostics.document.data.get("cells", [])
        return [
            {
                name: (("cells", index, name) if name in tables[index] else (*BASELINE_PATH, name), level)
                for name, level in cell.items()
            }
            for index, cell in self.design.listed_cells.items()
        ]
