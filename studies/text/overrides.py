"""Overrides from the command line, `train.epochs=2`, set in a study before anything else looks at it."""

from __future__ import annotations

import tomllib
from typing import Any

from .errors import StudyFault, fault_at, path_prefix
from .toml_positions import TOO_DEEP, KeyPath, KeyValueSpan, find_too_deep, locate


def apply_override(
    data: dict[str, Any], places: dict[KeyPath, tuple[str, KeyValueSpan]], override: str
) -> list[StudyFault]:
    """Set one `key.of.a.table=value` in the data, in place; a value that is not TOML is taken as a word."""
    if (deep := find_too_deep(override)) is not None:
        return [fault_at(override, deep, TOO_DEEP, override=True)]
    left, sign, right = override.partition("=")
    try:
        keys = _keys(tomllib.loads(f"{left}=0"))
    except tomllib.TOMLDecodeError:
        keys = []
    if not sign or not keys or "\n" in override:
        message = f"expected KEY=VALUE, got {override!r}"
        return [fault_at(override, (0, len(override)), message, override=True)]
    value, spans = _value(left, right)
    table: Any = data
    for depth, key in enumerate(keys[:-1], 1):
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            message = f"{path_prefix(tuple(keys[:depth]))}expected a table, got {table!r}"
            return [fault_at(override, spans[tuple(keys[:depth])].key, message, override=True)]
    table[keys[-1]] = value
    path = tuple(keys)
    for old in [old for old in places if old[: len(path)] == path]:
        del places[old]
    for new, place in spans.items():
        if new[: len(path)] == path:
            places[new] = (override, place)
        else:
            places.setdefault(new, (override, place))
    return []


def _keys(nested: Any) -> list[str]:  # noqa: ANN401 -- what tomllib gives
    """Return the keys of nested tables of one key each, outside in; none for a comment."""
    keys = []
    while isinstance(nested, dict) and nested:
        (key, nested), *_ = nested.items()
        keys.append(key)
    return keys


def _value(left: str, right: str) -> tuple[Any, dict[KeyPath, KeyValueSpan]]:
    """Return the value of an override and the spans of its parts."""
    try:
        read_as_toml = tomllib.loads(f"value ={right}")["value"]
    except tomllib.TOMLDecodeError:
        places = locate(f"{left}=0")
        word = (len(left) + 1, len(left) + 1 + len(right))
        last = max(places, key=len)
        return right.strip(), {**places, last: KeyValueSpan(places[last].key, word)}
    return read_as_toml, locate(f"{left}={right}")
