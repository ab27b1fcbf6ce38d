"""[when]: factors that are there only in cells with certain levels of others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...diagnostics import nearest_hint
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath
from .factors import ABSENT, SEED
from .settings import Level

TABLE = "when"

Conditions = Mapping[str, Mapping[str, tuple[Level, ...]]]
"""By factor the levels of others with which it is there; a factor stands behind those that it depends on."""


def read_conditions(diagnostics: Diagnostics, names: Collection[str], fixed: Collection[str]) -> Conditions:
    """Return the conditions of factors; report and drop faulty ones.

    `names` are the factors without the seed, `fixed` those of them that are in every cell.
    """
    conditions: dict[str, dict[str, tuple[Level, ...]]] = {}
    table = diagnostics.table(TABLE)
    if table and diagnostics.has_search:
        message = "a search asks for a conditional choice only where it is taken: conditions belong to a grid"
        diagnostics.report_error((TABLE,), message, key=True)
        return {}
    for name, condition in table.items():
        path: KeyPath = (TABLE, name)
        if name not in names:
            diagnostics.report_error(path, f"unknown factor '{name}'{nearest_hint(name, names)}", key=True)
        elif name in fixed:
            diagnostics.report_error(path, f"{name} crosses the design: it is in every cell", key=True)
        elif not isinstance(condition, Mapping) or not condition:
            expected = 'expected levels of other factors, as in { mixer = "conv" }'
            diagnostics.report_error(path, f"{expected}, got {format_value(condition)}")
        else:
            conditions[name] = {
                other: tuple(levels if isinstance(levels, list) else [levels])
                for other, levels in condition.items()
                if _is_other(diagnostics, (*path, other), names)
            }
    order = list(_ordered(conditions))
    for name in conditions.keys() - set(order):
        diagnostics.report_error((TABLE, name), f"{name} depends on itself", key=True)
    return {name: conditions[name] for name in order}


def settled(conditions: Conditions, levels: Mapping[str, Level]) -> dict[str, Level]:
    """Return the levels of a cell, with ABSENT for each factor whose condition fails."""
    found = dict(levels)
    for name, condition in conditions.items():
        present = (other not in found or is_level(found[other], of) for other, of in condition.items())
        if name in found and not all(present):
            found[name] = ABSENT
    return found


def is_level(level: Level, levels: Collection[Level]) -> bool:
    """Return whether a level is one of these, of the same type."""
    return any(type(level) is type(each) and level == each for each in levels)


def describe_condition(condition: Mapping[str, tuple[Level, ...]]) -> str:
    """Return a condition in words: `mixer is conv(k={k}) or gru`."""
    return " and ".join(f"{other} is {' or '.join(map(str, levels))}" for other, levels in condition.items())


def _is_other(diagnostics: Diagnostics, path: KeyPath, names: Collection[str]) -> bool:
    """Return whether the last key of a path is another factor that a condition can name; report it if not."""
    _, name, other = path
    if other == SEED:
        diagnostics.report_error(path, "every cell is there with every seed", key=True)
    elif other == name:
        diagnostics.report_error(path, f"{name} depends on itself", key=True)
    elif other not in names:
        diagnostics.report_error(path, f"unknown factor '{other}'{nearest_hint(str(other), names)}", key=True)
    else:
        return True
    return False


def _ordered(conditions: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the conditional factors, each after those that it depends on; none of a circle."""
    done: set[str] = set()
    while ready := [
        name
        for name, condition in conditions.items()
        if name not in done and not (condition.keys() & conditions.keys()) - done
    ]:
        done.update(ready)
        yield from ready
