"""`select`: the levels of a factor that a table or a figure includes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ...diagnostics import nearest_hint
from ..schema.design import MAX_TRIALS, Design, has_level, level_key
from ..schema.factors import ABSENT, SEED
from ..schema.level_names import NamedLevels, level_name, level_text
from ..schema.settings import Level
from ..text.toml_positions import KeyPath


def selected_levels(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> dict[str, tuple[Level, ...]]:
    """Return every factor with its levels selected by `select`, in the order of the study."""
    return {
        factor: tuple(level for level in levels if _keeps(select, factor, level))
        for factor, levels in factors.items()
    }


def is_selected(select: Mapping[str, Any], levels: Mapping[str, Level]) -> bool:
    """Return whether a trial with these levels is selected; a missing factor never excludes it."""
    return all(_keeps(select, factor, level) for factor, level in levels.items())


def select_faults(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield unknown factors and levels, and empty lists of levels."""
    for factor, kept in select.items():
        if factor not in factors:
            yield ("select", factor), f"unknown factor '{factor}'{nearest_hint(factor, factors)}"
        elif kept == []:
            yield ("select", factor), "expected at least one level, got an empty list"
        else:
            for index, level in enumerate(_as_list(kept)):
                if message := level_name_fault(level, factors[factor], factor):
                    yield (
                        (("select", factor, index) if isinstance(kept, list) else ("select", factor)),
                        message,
                    )


def level_name_fault(name: object, known: tuple[Level, ...], factor: str) -> str:
    """Return the fault of a level's name; "" if exactly one level of the factor matches."""
    try:
        NamedLevels(known, f"of {factor}").find(name)
    except ValueError as error:
        return str(error)
    return ""


def _keeps(select: Mapping[str, Any], factor: str, level: Level) -> bool:
    return factor not in select or level == ABSENT or has_level(_as_list(select[factor]), level)


def _as_list(levels: object) -> list[Any]:
    return levels if isinstance(levels, list) else [levels]


def fixed_levels(
    trials: Collection[Mapping[str, Level]], shown: Collection[str], design: Design
) -> dict[str, Level]:
    """Return the levels shared by all selected trials, for factors with several levels.

    `shown` are the factors that are visible anyway.
    """
    found: dict[str, Level] = {}
    for name, known in design.known_levels.items():
        levels = {level_key(levels[name]): levels[name] for levels in trials if name in levels}
        if name not in shown and len(known) > 1 and len(levels) == 1 and level_key(ABSENT) not in levels:
            found[name] = next(iter(levels.values()))
    return found


def describe_levels(levels: Mapping[str, Level]) -> str:
    """Describe levels in a sentence: `norm = pre, dropout = 0.1`."""
    return ", ".join(f"{name} = {level_name(level)}" for name, level in levels.items())


def describe_mixed_levels(shown: Collection[str], select: Mapping[str, Any], design: Design) -> str:
    """Describe the factors, with their levels, that a single cell of a table or figure would mix; "" if none.

    `shown` are the factors that determine a trial's place; seeds are always mixed.
    """
    levels = selected_levels(select, design.factors)
    mixed = {name: levels[name] for name in levels if name not in (*shown, SEED) and len(levels[name]) > 1}
    if mixed and (design.kind != "grid" or design.listed_cells or design.conditions):
        mixed = _mixed_in_one_place(shown, select, list(mixed), design)
    return " and ".join(f"{name} ({', '.join(map(level_text, mixed[name]))})" for name in mixed)


def _mixed_in_one_place(
    shown: Collection[str], select: Mapping[str, Any], others: list[str], design: Design
) -> dict[str, tuple[Level, ...]]:
    levels_at: dict[tuple[str, ...], dict[str, dict[str, Level]]] = {}
    if design.count() > MAX_TRIALS:
        return {}  # a fault of its own
    for cell in design.cells():
        if is_selected(select, cell):
            place = tuple(level_key(cell[name]) for name in shown)
            for name in others:
                levels_at.setdefault(place, {}).setdefault(name, {})[level_text(cell[name])] = cell[name]
    worst = max(levels_at.values(), key=lambda factors: sum(map(len, factors.values())), default={})
    return {name: tuple(levels.values()) for name, levels in worst.items() if len(levels) > 1}


def absent_factors(names: Iterable[str], select: Mapping[str, Any], design: Design) -> list[str]:
    """Return the factors among `names` that some selected cell lacks because of their conditions."""
    conditional = [name for name in names if name in design.conditions]
    if not conditional or design.count() > MAX_TRIALS:
        return []  # too many cells are a fault of their own
    lacking = [cell for cell in design.cells() if is_selected(select, cell)]
    return [name for name in conditional if any(cell[name] == ABSENT for cell in lacking)]
