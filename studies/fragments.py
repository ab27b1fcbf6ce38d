"""[recipes]: fragments of recipes by name, for the recipe, for levels and for each other to use as holes.

They are written out before anything else is filled, so that a trial knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..grammar import RecipeError
from .factors import is_name
from .positions import KeyPath
from .report import Report
from .settings import read_recipe
from .template import HOLE
from .wording import shown

TABLE = "recipes"


def read_fragments(report: Report, others: Mapping[str, str], *, searched: bool) -> dict[str, str]:
    """The sound fragments of a study in the order of the file; what is wrong with the others is noted.

    `others` has what else fills holes: each name with what it is. A hole that nothing fills makes a fragment
    unsound too; it is told where all holes are checked.
    """
    table = report.document.data.get(TABLE, {})
    if not isinstance(table, dict):
        report.note((TABLE,), f"expected a table, got {shown(table)}")
        return {}
    texts = {name: text for name, text in table.items() if _is_fragment(report, name, text, others, searched)}
    _check_circles(report, texts)
    return _whole({name: text for name, text in texts.items() if (TABLE, name) not in report.spoiled}, others)


def _is_fragment(report: Report, name: str, text: Any, others: Mapping[str, str], searched: bool) -> bool:  # noqa: ANN401 -- TOML holds anything
    """Whether a name and a text can be a fragment by themselves; if not, that is noted."""
    path: KeyPath = (TABLE, name)
    if not is_name(report, path):
        report.spoiled.add(path)
    if name in others:
        report.note(path, f"'{name}' is {others[name]} already", key=True)
        report.spoiled.add(path)
    if not isinstance(text, str):
        report.spoil(path, f"expected a recipe, got {shown(text)}")
        return False
    try:
        if read_recipe(text).dimensions and not searched:
            report.spoil(path, "a search dimension needs the table [search]")
    except RecipeError as error:
        for fault in error.faults:
            report.spoil(path, fault.message, within=(fault.start, max(fault.end, fault.start + 1)))
    return path not in report.spoiled


def _check_circles(report: Report, texts: Mapping[str, str]) -> None:
    """Note fragments that stand in themselves: once for each circle, at the hole where it begins."""
    told: set[str] = set()
    for name, text in texts.items():
        for hole in HOLE.finditer(text):
            way = _way(hole[1], name, texts)
            if not way:
                continue
            if not told & {name, *way}:
                through = f", by way of {', '.join(way[:-1])}" if way[:-1] else ""
                report.note((TABLE, name), f"'{name}' stands in itself{through}", within=hole.span())
            told |= {name, *way}
            report.spoiled.add((TABLE, name))


def _way(start: str, goal: str, texts: Mapping[str, str]) -> list[str]:
    """The fragments on a shortest way through holes from one to another, both ends with it; else nothing."""
    ways, seen = [[start]], {start}
    for way in ways:  # grows while it is walked
        if way[-1] == goal:
            return way
        steps = [hole for hole in HOLE.findall(texts.get(way[-1], "")) if hole not in seen]
        ways += [[*way, hole] for hole in dict.fromkeys(steps)]
        seen.update(steps)
    return []


def _whole(texts: dict[str, str], others: Collection[str]) -> dict[str, str]:
    """The fragments all of whose holes can be filled, by these fragments or by the others.

    A fragment falls with the one that would fill its hole, until no more fall.
    """
    while True:
        left = {
            name: text
            for name, text in texts.items()
            if all(hole in texts or hole in others for hole in HOLE.findall(text))
        }
        if left == texts:
            return left
        texts = left
