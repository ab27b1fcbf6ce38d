"""[factors] and their levels, conditions in [when], levels that are tables, and `ablate = "parts"`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ...diagnostics import nearest_hint
from ...grammar import RecipeError, parse
from ...grammar.difference import ablations
from ..text.document import Diagnostics
from ..text.strict_model import format_value
from ..text.toml_positions import KeyPath
from .settings import Level

SEED = "seed"
"""The factor that every study has; all cells use the same levels."""

ABSENT = "–"
"""The level of a factor in cells where it is absent."""

_FACTOR_NAME = re.compile(r"[A-Za-z]\w*")


def read_factors(
    diagnostics: Diagnostics, may_repeat: Callable[[str], bool] = lambda _: False
) -> dict[str, tuple[Level, ...]]:
    """Return every factor with its levels, in file order; `seed` is added if missing.

    Invalid levels are reported and kept, as are repeated ones, unless the factor's `may_repeat`; a factor
    without a list of levels has an empty tuple.
    """
    table = diagnostics.table("factors")
    factors = {
        name: _levels(diagnostics, name, levels, may_repeat=may_repeat(name))
        for name, levels in table.items()
        if is_name(diagnostics, ("factors", name))
    }
    return factors if SEED in table else {**factors, SEED: (0,)}


def is_name(diagnostics: Diagnostics, path: KeyPath) -> bool:
    """Return whether the key at a path is a valid hole name; report it if not."""
    fits = _FACTOR_NAME.fullmatch(str(path[-1])) is not None
    if not fits:
        message = f"expected a letter, then letters, digits and '_', got {path[-1]!r}"
        diagnostics.report(path, message, key=True)
    return fits


def _levels(
    diagnostics: Diagnostics,
    name: str,
    levels: Any,  # noqa: ANN401 -- TOML holds anything
    *,
    may_repeat: bool,
) -> tuple[Level, ...]:
    """Return the levels of a factor; report its faults.

    Two levels are equal if their types and values are: `1` and `1.0` differ.
    """
    path = ("factors", name)
    if not isinstance(levels, list) or not levels:
        example = f", as [{json.dumps(levels)}]" if isinstance(levels, str | int | float) else ""
        diagnostics.report(path, f"expected a list of levels{example}, got {format_value(levels)}")
        return ()
    seen: set[tuple[type, Level]] = set()
    for index, level in enumerate(levels):
        if message := level_fault(name, level):
            diagnostics.report_invalid((*path, index), message)
        elif (type(level), level) in seen and not may_repeat:
            diagnostics.report((*path, index), f"the level {format_value(level)} is listed twice")
        else:
            seen.add((type(level), level))
    return tuple(levels)


def level_fault(factor: str, level: object) -> str | None:
    """Return the fault of a single level, or None."""
    if factor == SEED and (isinstance(level, bool) or not isinstance(level, int) or not 0 <= level < 2**63):
        most = " and below 2^63" if isinstance(level, int) and level >= 2**63 else ""
        return f"expected a whole number of at least 0{most}, got {format_value(level)}"
    if not isinstance(level, str | int | float | bool):
        return f"expected a text, a number or true or false, got {format_value(level)}"
    if level == ABSENT:
        return f"expected a level other than {ABSENT}, which marks an absent factor"
    return None


CONDITIONS_TABLE = "when"

Conditions = Mapping[str, Mapping[str, tuple[Level, ...]]]
"""The condition of each factor: required levels of other factors, which come before it."""


def read_conditions(diagnostics: Diagnostics, names: Collection[str], fixed: Collection[str]) -> Conditions:
    """Return the conditions of factors; report and drop faulty ones.

    `names` are the factors without the seed; `fixed` are factors that are present in every cell.
    """
    conditions: dict[str, dict[str, tuple[Level, ...]]] = {}
    table = diagnostics.table(CONDITIONS_TABLE)
    if table and diagnostics.has_search:
        message = "a search has conditional choices in its recipe: conditions belong to a grid"
        diagnostics.report((CONDITIONS_TABLE,), message, key=True)
        return {}
    for name, condition in table.items():
        path: KeyPath = (CONDITIONS_TABLE, name)
        if name not in names:
            diagnostics.report(path, f"unknown factor '{name}'{nearest_hint(name, names)}", key=True)
        elif name in fixed:
            diagnostics.report(path, f"{name} crosses the design: it is in every cell", key=True)
        elif not isinstance(condition, Mapping) or not condition:
            expected = 'expected levels of other factors, such as { mixer = "conv" }'
            diagnostics.report(path, f"{expected}, got {format_value(condition)}")
        else:
            conditions[name] = {
                other: tuple(levels if isinstance(levels, list) else [levels])
                for other, levels in condition.items()
                if _is_other(diagnostics, (*path, other), names)
            }
    order = list(_ordered(conditions))
    for name in conditions.keys() - set(order):
        diagnostics.report((CONDITIONS_TABLE, name), f"{name} depends on itself", key=True)
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
    """Describe a condition in words: `mixer is conv(k={k}) or gru`."""
    return " and ".join(f"{other} is {' or '.join(map(str, levels))}" for other, levels in condition.items())


def _is_other(diagnostics: Diagnostics, path: KeyPath, names: Collection[str]) -> bool:
    """Return whether a path's last key is another factor that a condition can name; report it if not."""
    _, name, other = path
    if other == SEED:
        diagnostics.report(path, "every cell is there with every seed", key=True)
    elif other == name:
        diagnostics.report(path, f"{name} depends on itself", key=True)
    elif other not in names:
        diagnostics.report(path, f"unknown factor '{other}'{nearest_hint(str(other), names)}", key=True)
    else:
        return True
    return False


def _ordered(conditions: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the conditional factors, each after those that it depends on; none of a cycle."""
    done: set[str] = set()
    while ready := [
        name
        for name, condition in conditions.items()
        if name not in done and not (condition.keys() & conditions.keys()) - done
    ]:
        done.update(ready)
        yield from ready


TableLevels = Mapping[str, Mapping[Level, Mapping[str, Any]]]
"""The table behind a level, by factor and level."""

_TABLES = ("factors", "cells")
_NAME = "name"
_LABEL = "label"


def expand_table_levels(diagnostics: Diagnostics) -> TableLevels:
    """Replace each table among the levels of a document by its name, and return the tables.

    `{ name = "mqar", pairs = 4 }` becomes the level `mqar`, and with `label = "few"` the level `few`. A table
    without either, and two tables with one name, are reported.
    """
    data = diagnostics.data
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
    diagnostics.report(path, f"two levels are called {name}: give the table a label, for example {example}")


def _placed_levels(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, Any]]:
    factors, cells = (data.get(name) for name in _TABLES)
    for factor, levels in factors.items() if isinstance(factors, Mapping) else ():
        for index, level in enumerate(levels) if isinstance(levels, list) else ():
            yield ("factors", factor, index), factor, level
    for index, cell in enumerate(cells) if isinstance(cells, list) else ():
        for factor, level in cell.items() if isinstance(cell, Mapping) else ():
            yield ("cells", index, factor), factor, level


def _replaced(value: Any, path: KeyPath, names: Mapping[KeyPath, Level]) -> Any:  # noqa: ANN401 -- TOML
    if path in names:
        return names[path]
    if isinstance(value, Mapping):
        return {key: _replaced(inner, (*path, key), names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, (*path, index), names) for index, inner in enumerate(value)]
    return value


RECIPE = "recipe"
"""The factor that `ablate` creates from the model's recipe."""


def expand_ablation(diagnostics: Diagnostics) -> None:
    """Add the recipe factor first, with the whole recipe as its first level; report faults.

    An invalid recipe stays unchanged; the check of recipes reports it.
    """
    data = diagnostics.data
    model, factors = data.get("model"), data.get("factors", {})
    text = model.get(RECIPE) if isinstance(model, Mapping) else None
    if not isinstance(model, dict) or not isinstance(text, str) or not isinstance(factors, Mapping):
        return
    if RECIPE in factors:
        diagnostics.report(
            ("factors", RECIPE), "ablate creates a factor of this name: rename yours", key=True
        )
        return
    try:
        recipe = parse(text)
    except RecipeError:
        return
    without = ablations(recipe)
    if not without:
        message = f"expected a recipe with removable parts, got {format_value(text)}"
        diagnostics.report(("study", "ablate"), message)
        return
    data["model"] = {**model, RECIPE: f"{{{RECIPE}}}"}
    data["factors"] = {RECIPE: [text, *(each.text for each in without)], **factors}
