"""A study that is still being checked: its parts, and the report on them.

A name fills holes if it is a factor, a dimension of the search, the size that is solved, or a fragment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..grammar.nodes import Dimension
from .design import Design
from .factors import SEED
from .listing import BASELINE
from .positions import KeyPath
from .report import Report
from .search import ends
from .settings import Level
from .template import Template

Levels = tuple[tuple[KeyPath, Level], ...]
"""Levels, each with its path in the file."""


def fillers(data: Mapping[str, Any]) -> dict[str, str]:
    """The names that fill holes with levels and values, right or wrong, and `seed`: each with what it is."""
    search, study, cells = data.get("search"), data.get("study"), data.get("cells")
    tables = [
        (study.get("baseline") if isinstance(study, Mapping) and "match" in study else None, "a size"),
        (search.get("space") if isinstance(search, Mapping) else None, "a dimension"),
        *((cell, "a factor") for cell in (cells if isinstance(cells, list) else ())),
        (data.get("factors"), "a factor"),
    ]
    named = {name: what for table, what in tables if isinstance(table, Mapping) for name in table}
    return {**named, SEED: "a factor"}


def named_fragments(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The names in [recipes], right or wrong."""
    table = data.get("recipes")
    return tuple(table) if isinstance(table, Mapping) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the checks of holes and levels look at.

    `space` has the dimensions of [search.space]; `searched` is whether there is a search, right or wrong.
    """

    report: Report
    template: Template
    design: Design
    space: Mapping[str, Dimension]
    searched: bool

    def declared(self) -> set[str]:
        """Every name that can fill a hole, be what it stands for right or wrong."""
        return {*fillers(self.report.document.data), *named_fragments(self.report.document.data)} - {SEED}

    def axes(self) -> dict[str, Levels]:
        """What fills holes, by name: a factor's levels, a dimension's values that stand for all, a size.

        Each comes with where it stands: levels in [factors] first, then those that only [[cells]] have.
        """
        listed = list(dict.fromkeys(one for cell in self.listed() for one in cell.items()))
        factors = {
            name: (*self.combined(name), *(one for other, one in listed if other == name))
            for name in self.design.factors
            if name != SEED
        }
        space = {
            name: tuple((("search", "space", name), level) for level in ends(found))
            for name, found in self.space.items()
        }
        size = self.design.size
        sizes = {size[0]: (((*BASELINE, size[0]), size[1]),)} if size else {}
        return {**factors, **space, **sizes}

    def combined(self, factor: str) -> Levels:
        """The levels of a factor in [factors]."""
        levels = self.design.combined.get(factor, ())
        return tuple((("factors", factor, index), level) for index, level in enumerate(levels))

    def listed(self) -> list[dict[str, tuple[KeyPath, Level]]]:
        """The cells of [[cells]], by factor: each level with where it stands, which may be in the baseline.

        Cells that lack a factor or have one that is none are not among them.
        """
        own = {index: self.report.document.data["cells"][index] for index in self.design.listed}
        return [
            {
                name: (("cells", index, name) if name in own[index] else (*BASELINE, name), level)
                for name, level in cell.items()
            }
            for index, cell in self.design.listed.items()
        ]
