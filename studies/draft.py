"""A study that is still being checked: its parts, and the report on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..grammar.nodes import Dimension
from .factors import SEED
from .positions import KeyPath
from .report import Report
from .search import ends
from .settings import Level
from .template import Template

Levels = tuple[tuple[KeyPath, Level], ...]
"""Levels, each with its path in the file."""


def fillers(data: Mapping[str, Any]) -> dict[str, str]:
    """The names that fill holes with levels and values, right or wrong, and `seed`: each with what it is."""
    factors, search = data.get("factors"), data.get("search")
    space = search.get("space") if isinstance(search, Mapping) else None
    return {
        **(dict.fromkeys(space, "a dimension") if isinstance(space, Mapping) else {}),
        **(dict.fromkeys(factors, "a factor") if isinstance(factors, Mapping) else {}),
        SEED: "a factor",
    }


def named_fragments(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The names in [recipes], right or wrong."""
    table = data.get("recipes")
    return tuple(table) if isinstance(table, Mapping) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the checks of holes and levels look at."""

    report: Report
    template: Template
    factors: Mapping[str, tuple[Level, ...]]
    space: Mapping[str, Dimension]
    searched: bool

    def declared(self) -> set[str]:
        """Every name that can fill a hole, be what it stands for right or wrong."""
        return {*fillers(self.report.document.data), *named_fragments(self.report.document.data)} - {SEED}

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
