"""A study that is still being checked: its parts, and the report on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..grammar.nodes import Dimension
from .factors import SEED
from .positions import KeyPath
from .report import Report
from .search import ends
from .settings import Level
from .template import Template

Levels = tuple[tuple[KeyPath, Level], ...]
"""Levels, each with its path in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the checks of holes and levels look at."""

    report: Report
    template: Template
    factors: Mapping[str, tuple[Level, ...]]
    space: Mapping[str, Dimension]
    searched: bool

    def declared(self) -> set[str]:
        """Every name that can fill a hole, be its levels right or wrong."""
        data = self.report.document.data
        search = data.get("search")
        tables = (data.get("factors"), search.get("space") if isinstance(search, Mapping) else None)
        return {name for table in tables if isinstance(table, Mapping) for name in table} - {SEED}

    def axes(self) -> dict[str, Levels]:
        """What fills holes, by name: the levels of a factor, the values that stand for a dimension's all."""
        factors = {
            name: tuple((("factors", name, index), level) for index, level in enumerate(levels))
            for name, levels in self.factors.items()
            if name != SEED
        }
        space = {
            name: tuple((("search", "space", name), level) for level in ends(found))
            for name, found in self.space.items()
        }
        return {**factors, **space}
