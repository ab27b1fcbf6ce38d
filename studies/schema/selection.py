"""`select`: the levels that a table keeps of the factors that it does not show whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...diagnostics import nearest_hint
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath
from .design import MAX_TRIALS, Design, has_level, level_key
from .factors import SEED
from .level_names import level_text
from .settings import Level


def selected_levels(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> dict[str, tuple[Level, ...]]:
    """Every factor with the levels that `select` leaves of it, in the order of the study."""
    return {
        factor: tuple(level for level in levels if _keeps(select, factor, level))
        for factor, levels in factors.items()
    }


def is_selected(select: Mapping[str, Any], levels: Mapping[str, Level]) -> bool:
    """Whether a trial of these levels is kept."""
    return all(_keeps(select, factor, level) for factor, level in levels.items())


def select_faults(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> Iterator[tuple[KeyPath, str]]:
    """Factors and levels that are none of these, and a list that would leave none."""
    for factor, wanted in select.items():
        if factor not in factors:
            yield ("select", factor), f"unknown factor '{factor}'{nearest_hint(factor, factors)}"
        elif wanted == []:
            yield ("select", factor), "expected at least one level, got an empty list"
        else:
            yield from _level_faults(factor, wanted, factors[factor])


def unknown_level_message(level: Level, known: tuple[Level, ...]) -> str:
    """The message on a level that a factor does not have; nothing if it has it."""
    if has_level(known, level):
        return ""
    return f"no level {format_value(level)}{nearest_hint(str(level), map(str, known))}"


def _level_faults(factor: str, wanted: object, known: tuple[Level, ...]) -> Iterator[tuple[KeyPath, str]]:
    for index, level in enumerate(_listed(wanted)):
        if message := unknown_level_message(level, known):
            place = ("select", factor, index) if isinstance(wanted, list) else ("select", factor)
            yield place, message


def _keeps(select: Mapping[str, Any], factor: str, level: Level) -> bool:
    return factor not in select or has_level(_listed(select[factor]), level)


def _listed(levels: object) -> list[Any]:
    return levels if isinstance(levels, list) else [levels]


def describe_mixed_levels(places: Collection[str], select: Mapping[str, Any], design: Design) -> str:
    """What varies at one place beside the seeds: factors with levels as a message has them, or nothing.

    `places` are the factors that say where a trial stands.
    """
    levels = selected_levels(select, design.factors)
    loose = [name for name in levels if name not in (*places, SEED)]
    found = {name: levels[name] for name in loose if len(levels[name]) > 1}
    if found and (design.kind != "grid" or design.listed_cells):
        found = _mixed_in_one_place(places, select, list(found), design)
    texts = (f"{name} ({', '.join(map(level_text, each))})" for name, each in found.items())
    return " and ".join(texts)


def _mixed_in_one_place(
    places: Collection[str], select: Mapping[str, Any], loose: list[str], design: Design
) -> dict[str, tuple[Level, ...]]:
    """Those of the factors that vary at one place where not all levels meet, and how they vary there."""
    met: dict[tuple[str, ...], dict[str, dict[str, Level]]] = {}
    if design.count() > MAX_TRIALS:
        return {}  # it is refused for that
    for cell in design.cells():
        if is_selected(select, cell):
            place = tuple(level_key(cell[name]) for name in places)
            for name in loose:
                met.setdefault(place, {}).setdefault(name, {})[level_text(cell[name])] = cell[name]
    worst = max(met.values(), key=lambda names: sum(map(len, names.values())), default={})
    return {name: tuple(each.values()) for name, each in worst.items() if len(each) > 1}
