"""Whether a place in a table or a figure would mix levels without saying so."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .design import MOST_TRIALS, Design, same
from .factors import SEED
from .labels import level_text
from .selecting import selects
from .settings import Level


def mixed(
    places: Collection[str],
    select: Mapping[str, Any],
    levels: Mapping[str, tuple[Level, ...]],
    design: Design,
) -> str:
    """What varies at one place beside the seeds: factors with levels as a message has them, or nothing.

    `places` are the factors that say where a trial stands, `levels` what is selected of every factor.
    """
    loose = [name for name in levels if name not in (*places, SEED)]
    found = {name: levels[name] for name in loose if len(levels[name]) > 1}
    if found and (design.kind != "grid" or design.listed):
        found = _mixed_somewhere(places, select, list(found), design)
    texts = (f"{name} ({', '.join(map(level_text, each))})" for name, each in found.items())
    return " and ".join(texts)


def _mixed_somewhere(
    places: Collection[str], select: Mapping[str, Any], loose: list[str], design: Design
) -> dict[str, tuple[Level, ...]]:
    """Those of the factors that vary at one place where not all levels meet, and how they vary there."""
    met: dict[tuple[str, ...], dict[str, dict[str, Level]]] = {}
    if design.count() > MOST_TRIALS:
        return {}  # it is refused for that
    for cell in design.cells():
        if selects(select, cell):
            place = tuple(same(cell[name]) for name in places)
            for name in loose:
                met.setdefault(place, {}).setdefault(name, {})[level_text(cell[name])] = cell[name]
    worst = max(met.values(), key=lambda names: sum(map(len, names.values())), default={})
    return {name: tuple(each.values()) for name, each in worst.items() if len(each) > 1}
