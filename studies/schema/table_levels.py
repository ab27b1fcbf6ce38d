"""Levels that are tables: a task, an optimizer or a schedule with keys of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ..text.diagnostics import Diagnostics
from ..text.toml_positions import KeyPath
from .settings import Level

TableLevels = Mapping[str, Mapping[Level, Mapping[str, Any]]]
"""By factor and by level the table that the level stands for."""

_TABLES = ("factors", "cells")
_NAME = "name"
_LABEL = "label"


def expand_table_levels(diagnostics: Diagnostics) -> TableLevels:
    """Replace each table among the levels of a document by its name, and return the tables.

    `{ name = "mqar", pairs = 4 }` becomes the level `mqar`, and with `label = "few"` the level `few`. A table
    without either, and two tables of one name, are reported.
    """
    data = cast("dict[str, Any]", diagnostics.document.data)
    found: dict[str, dict[Level, Mapping[str, Any]]] = {}
    replaced: dict[KeyPath, Level] = {}
    for path, factor, level in _placed_levels(data):
        if not isinstance(level, Mapping):
            continue
        name = level.get(_LABEL, level.get(_NAME))
        if not isinstance(name, str) or "{" in name:
            example = '{ label = "slow", grow_at = 0.99 }'
            diagnostics.report_invalid(path, f"expected a name or a label in a table, as in {example}")
            continue
        table = {key: value for key, value in level.items() if key != _LABEL}
        replaced[path] = name
        if found.setdefault(factor, {}).setdefault(name, table) != table:
            _report_shared_name(diagnostics, path, name)
    for path, factor, level in _placed_levels(data):
        if isinstance(level, str) and level in found.get(factor, {}) and path[0] == "factors":
            _report_shared_name(diagnostics, path, level)
    for name in _TABLES if replaced else ():
        if name in data:
            data[name] = _replaced(data[name], (name,), replaced)
    return found


def _report_shared_name(diagnostics: Diagnostics, path: KeyPath, name: str) -> None:
    example = f'{{ label = "{name}-2", name = "{name}", … }}'
    diagnostics.report_error(path, f"two levels are called {name}: give a table a label, as in {example}")


def _placed_levels(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, Any]]:
    """Every level in [factors] and [[cells]] with its path and its factor."""
    factors, cells = (data.get(name) for name in _TABLES)
    for factor, levels in factors.items() if isinstance(factors, Mapping) else ():
        for index, level in enumerate(levels) if isinstance(levels, list) else ():
            yield ("factors", factor, index), factor, level
    for index, cell in enumerate(cells) if isinstance(cells, list) else ():
        for factor, level in cell.items() if isinstance(cell, Mapping) else ():
            yield ("cells", index, factor), factor, level


def _replaced(value: Any, path: KeyPath, names: Mapping[KeyPath, Level]) -> Any:  # noqa: ANN401 -- TOML
    """Return a value with names in place of the tables at these paths."""
    if path in names:
        return names[path]
    if isinstance(value, Mapping):
        return {key: _replaced(inner, (*path, key), names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, (*path, index), names) for index, inner in enumerate(value)]
    return value
