"""JSON Lines: an object in each line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...diagnostics import hint
from ..text.units import plural
from .cells import Cells, RowsError, quoted


def read_json_lines(text: str, columns: Sequence[str]) -> Cells:
    """Return the values of these keys in the lines that are not blank; raise RowsError."""
    numbers, values, faults = list[int](), list[list[Any]](), list[str]()
    lacking = dict[str, str]()
    counts = Counter[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except json.JSONDecodeError as error:
            faults.append(f"line {number:,}, column {error.colno:,}: expected JSON, got: {error.msg}")
            continue
        except (ValueError, RecursionError) as error:
            faults.append(f"line {number:,}: expected JSON, got: {error}")
            continue
        if not isinstance(found, dict):
            faults.append(f"line {number:,}: expected an object, got {quoted(line.strip())}")
            continue
        cells = []
        for name in columns:
            try:
                cells.append(_find(found, name))
            except KeyError:
                lacking.setdefault(name, f"line {number:,}: {_missing_key(name, found)}")
                counts[name] += 1
        numbers.append(number)
        values.append(cells)
    for name, fault in lacking.items():
        more = counts[name] - 1
        faults.append(f"{fault} ({plural(more, 'more line')} like this)" if more else fault)
    if faults:
        raise RowsError(faults)
    return Cells(
        unit="line",
        numbers=numbers,
        columns=[[row[place] for row in values] for place in range(len(columns))],
    )


def _find(found: dict[str, Any], name: str) -> Any:  # noqa: ANN401 -- whatever stands in a file
    """Return the value of a key, or of one in nested objects: `translation.en`; KeyError if there is none."""
    if name in found or "." not in name:
        return found[name]
    root, _, rest = name.partition(".")
    inner = found[root]
    if not isinstance(inner, dict):
        raise KeyError(name)
    return _find(inner, rest)


def _missing_key(name: str, found: dict[str, Any]) -> str:
    """Say that an object lacks a key, with the nearest that it has."""
    nested = [f"{key}.{inner}" for key, value in found.items() if isinstance(value, dict) for inner in value]
    return f"expected a key '{name}', got none{hint(name, [*found, *nested][:100])}"
