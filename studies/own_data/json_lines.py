"""JSON Lines: an object in each line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .cells import Cells, RowsError


def read_json_lines(text: str, columns: Sequence[str]) -> Cells:
    """The values of these keys in the lines that are not blank; RowsError."""
    numbers, values, faults = list[int](), list[list[Any]](), list[str]()
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
            faults.append(f"line {number:,}: expected an object, got {line.strip()[:40]}")
            continue
        faults += [
            f"line {number:,}: expected a key '{name}', got none" for name in columns if name not in found
        ]
        numbers.append(number)
        values.append([found.get(name) for name in columns])
    if faults:
        raise RowsError(faults)
    return Cells(
        unit="line",
        numbers=numbers,
        columns=[[row[place] for row in values] for place in range(len(columns))],
    )
