"""[factors]: the axes of a study's grid and their levels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath
from .settings import Level

SEED = "seed"
"""The factor that every study has; its levels are paired across the cells."""

ABSENT = "–"
"""The level of a factor in cells in which it is not there."""

_NAME = re.compile(r"[A-Za-z]\w*")


def read_factors(
    diagnostics: Diagnostics, may_repeat: Callable[[str], bool] = lambda _: False
) -> dict[str, tuple[Level, ...]]:
    """Every factor with its levels, in the order of the file; `seed` is added if it is not there.

    Invalid levels are noted and kept, as are those that occur again, unless the factor's `may_repeat`; a
    factor without a list of levels has an empty tuple.
    """
    table = diagnostics.table("factors")
    factors = {
        name: _levels(diagnostics, name, levels, may_repeat=may_repeat(name))
        for name, levels in table.items()
        if is_name(diagnostics, ("factors", name))
    }
    return factors if SEED in table else {**factors, SEED: (0,)}


def is_name(diagnostics: Diagnostics, path: KeyPath) -> bool:
    """Return whether the key at a path can be the name of a hole; report it if not."""
    fits = _NAME.fullmatch(str(path[-1])) is not None
    if not fits:
        message = f"expected a letter, then letters, digits and '_', got {path[-1]!r}"
        diagnostics.report_error(path, message, key=True)
    return fits


def _levels(
    diagnostics: Diagnostics,
    name: str,
    levels: Any,  # noqa: ANN401 -- TOML holds anything
    *,
    may_repeat: bool,
) -> tuple[Level, ...]:
    """Return the levels of a factor; report faults of it and of its levels.

    Two levels are the same if both their types and their values are: `1` and `1.0` differ.
    """
    path = ("factors", name)
    if not isinstance(levels, list) or not levels:
        diagnostics.report_error(path, f"expected a list of levels, got {format_value(levels)}")
        return ()
    seen: set[tuple[type, Level]] = set()
    for index, level in enumerate(levels):
        if message := level_fault(name, level):
            diagnostics.report_invalid((*path, index), message)
        elif (type(level), level) in seen and not may_repeat:
            diagnostics.report_error((*path, index), f"the level {format_value(level)} is listed twice")
        else:
            seen.add((type(level), level))
    return tuple(levels)


def level_fault(factor: str, level: object) -> str | None:
    """Return what is wrong with a level on its own, or None."""
    if factor == SEED and (isinstance(level, bool) or not isinstance(level, int) or not 0 <= level < 2**63):
        most = " and below 2^63" if isinstance(level, int) and level >= 2**63 else ""
        return f"expected a whole number of at least 0{most}, got {format_value(level)}"
    if not isinstance(level, str | int | float | bool):
        return f"expected a text, a number or true or false, got {format_value(level)}"
    if level == ABSENT:
        return f"expected a level other than {ABSENT}, which says that a factor is not there"
    return None
