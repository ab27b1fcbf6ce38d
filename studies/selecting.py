"""`select`: the levels that a table keeps of the factors that it does not show whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .design import Design, same
from .faults import nearest
from .positions import KeyPath
from .settings import Level
from .wording import shown


def chosen(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> dict[str, tuple[Level, ...]]:
    """Every factor with the levels that `select` leaves of it, in the order of the study."""
    return {
        factor: tuple(level for level in levels if factor not in select or _is_in(level, select[factor]))
        for factor, levels in factors.items()
    }


def selects(select: Mapping[str, Any], levels: Mapping[str, Level]) -> bool:
    """Whether a trial of these levels is kept."""
    return all(_is_in(levels[factor], wanted) for factor, wanted in select.items() if factor in levels)


def select_faults(select: Mapping[str, Any], design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Factors and levels that the study does not have, and a list that would leave none."""
    factors = design.factors
    for factor, wanted in select.items():
        if factor not in factors:
            yield ("select", factor), f"unknown factor '{factor}'{nearest(factor, factors)}"
        elif wanted == []:
            yield ("select", factor), "expected at least one level, got an empty list"
        elif factor not in design.changed:
            yield from _level_faults(factor, wanted, factors[factor])


def unknown_level(level: object, known: tuple[Level, ...]) -> str:
    """The message on a level that a factor does not have; nothing if it has it."""
    if _is_in(level, list(known)):
        return ""
    return f"no level {shown(level)}{nearest(str(level), map(str, known))}"


def _level_faults(factor: str, wanted: object, known: tuple[Level, ...]) -> Iterator[tuple[KeyPath, str]]:
    for index, level in enumerate(_listed(wanted)):
        if message := unknown_level(level, known):
            place = ("select", factor, index) if isinstance(wanted, list) else ("select", factor)
            yield place, message


def _is_in(level: Any, wanted: object) -> bool:  # noqa: ANN401 -- TOML holds anything
    return any(same(level) == same(each) for each in _listed(wanted))


def _listed(levels: object) -> list[Any]:
    return levels if isinstance(levels, list) else [levels]
