"""[recipes]: fragments of recipes by name, for the recipe, for levels and for each other to use as holes.

They are written out before anything else is filled, so that a trial knows nothing of them.
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
from .template import HOLE_PATTERN

TABLE = "recipes"


def read_fragments(
    diagnostics: Diagnostics, others: Mapping[str, str], *, has_search: bool
) -> dict[str, str]:
    """The sound fragments of a study in the order of the file; what is wrong with the others is noted.

    `others` has what else fills holes: each name with what it is. A hole that nothing fills makes a fragment
    unsound too; it is told where all holes are checked.
    """
    table = diagnostics.document.data.get(TABLE, {})
    if not isinstance(table, dict):
        diagnostics.report_error((TABLE,), f"expected a table, got {format_value(table)}")
        return {}
    texts = {
        name: text
        for name, text in table.items()
        if _is_fragment(diagnostics, name, text, others, has_search)
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
    has_search: bool,
) -> bool:
    """Whether a name and a text can be a fragment by themselves; if not, that is noted."""
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
        if read_recipe(text).dimensions and not has_search:
            diagnostics.report_invalid(path, "a search dimension needs the table [search]")
    except RecipeError as error:
        for fault in error.faults:
            diagnostics.report_invalid(
                path, fault.message, within=(fault.start, max(fault.end, fault.start + 1))
            )
    return path not in diagnostics.invalid


def _check_cycles(diagnostics: Diagnostics, texts: Mapping[str, str]) -> None:
    """Note fragments that stand in themselves: once for each circle, at the hole where it begins."""
    told: set[str] = set()
    for name, text in texts.items():
        for hole in HOLE_PATTERN.finditer(text):
            way = _shortest_path(hole[1], name, texts)
            if not way:
                continue
            if not told & {name, *way}:
                through = f", by way of {', '.join(way[:-1])}" if way[:-1] else ""
                diagnostics.report_error(
                    (TABLE, name), f"'{name}' stands in itself{through}", within=hole.span()
                )
            told |= {name, *way}
            diagnostics.invalid.add((TABLE, name))


def _shortest_path(start: str, goal: str, texts: Mapping[str, str]) -> list[str]:
    """The fragments on a shortest way through holes from one to another, both ends with it; else nothing."""
    ways, seen = [[start]], {start}
    for way in ways:  # grows while it is walked
        if way[-1] == goal:
            return way
        steps = [hole for hole in HOLE_PATTERN.findall(texts.get(way[-1], "")) if hole not in seen]
        ways += [[*way, hole] for hole in dict.fromkeys(steps)]
        seen.update(steps)
    return []


def _fillable_fragments(texts: dict[str, str], others: Collection[str]) -> dict[str, str]:
    """The fragments all of whose holes can be filled, by these fragments or by the others.

    A fragment falls with the one that would fill its hole, until no more fall.
    """
    while True:
        left = {
            name: text
            for name, text in texts.items()
            if all(hole in texts or hole in others for hole in HOLE_PATTERN.findall(text))
        }
        if left == texts:
            return left
        texts = left
