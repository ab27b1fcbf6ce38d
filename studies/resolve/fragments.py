"""[recipes]: named fragments that fill holes of the recipe, of levels and of other fragments.

They are expanded before any other hole is filled, so that a trial does not depend on their names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...grammar import RecipeError
from ..schema.factors import is_name
from ..schema.settings import read_recipe
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath
from .draft import filler_kinds
from .template import HOLE_PATTERN

TABLE = "recipes"


def read_fragments(diagnostics: Diagnostics) -> dict[str, str]:
    """Return the valid fragments of a study in the order of the file; report the faults of the others.

    An unfilled hole makes a fragment invalid too; it is reported where all holes are checked.
    """
    others = filler_kinds(diagnostics.document.data)
    texts = {
        name: text
        for name, text in diagnostics.table(TABLE).items()
        if _is_fragment(diagnostics, name, text, others)
    }
    _check_cycles(diagnostics, texts)
    return _fillable_fragments(
        {name: text for name, text in texts.items() if (TABLE, name) not in diagnostics.invalid}, others
    )


def _is_fragment(
    diagnostics: Diagnostics,
    name: str,
    text: Any,  # noqa: ANN401 -- TOML holds anything
    others: Mapping[str, str],
) -> bool:
    """Return whether a name and a text are a valid fragment on their own; report it if not."""
    path: KeyPath = (TABLE, name)
    if not is_name(diagnostics, path):
        diagnostics.invalid.add(path)
    if name in others:
        diagnostics.report_error(path, f"'{name}' is {others[name]} already", key=True)
        diagnostics.invalid.add(path)
    if not isinstance(text, str):
        diagnostics.report_invalid(path, f"expected a recipe, got {format_value(text)}")
        return False
    try:
        if read_recipe(text).dimensions and not diagnostics.has_search:
            diagnostics.report_invalid(path, "a search dimension needs the table [search]")
    except RecipeError as error:
        diagnostics.report_faults(path, error.faults)
    return path not in diagnostics.invalid


def _check_cycles(diagnostics: Diagnostics, texts: Mapping[str, str]) -> None:
    """Note fragments that contain themselves: once for each cycle, at the hole where it begins."""
    reported: set[str] = set()
    for name, text in texts.items():
        for hole in HOLE_PATTERN.finditer(text):
            cycle = _shortest_path(hole[1], name, texts)
            if not cycle:
                continue
            if not reported.intersection(cycle):  # it ends with the name
                through = f" through {', '.join(cycle[:-1])}" if cycle[:-1] else ""
                diagnostics.report_error(
                    (TABLE, name), f"'{name}' contains itself{through}", within=hole.span()
                )
            reported.update(cycle)
            diagnostics.invalid.add((TABLE, name))


def _shortest_path(start: str, goal: str, texts: Mapping[str, str]) -> list[str]:
    """Return the fragments on a shortest path of holes between two, with both ends; empty if none."""
    paths, seen = [[start]], {start}
    for path in paths:  # grows while it is walked
        if path[-1] == goal:
            return path
        steps = [hole for hole in HOLE_PATTERN.findall(texts.get(path[-1], "")) if hole not in seen]
        paths += [[*path, hole] for hole in dict.fromkeys(steps)]
        seen.update(steps)
    return []


def _fillable_fragments(texts: dict[str, str], others: Collection[str]) -> dict[str, str]:
    """Return the fragments whose holes can all be filled by these fragments or by the others."""
    while True:
        fillable = {
            name: text
            for name, text in texts.items()
            if all(hole in texts or hole in others for hole in HOLE_PATTERN.findall(text))
        }
        if fillable == texts:
            return fillable
        texts = fillable
