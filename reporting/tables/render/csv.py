"""A table as CSV in long form, for a program to read: one line a cell, numbers with all their digits."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from ..table import CellStatus, Table
from ..tidy import TidyRow, iter_rows

SPREAD_COLUMNS = {"sd": "deviation", "se": "standard_error", "ci": "half_width"}
"""The column of a spread; half_width is half of the interval between low and high."""


def to_csv(table: Table) -> str:
    """One line for each row and column; an empty field is a number that is not there.

    Columns for groups, metrics, intervals, differences, levels that were picked, and units are there where
    the table has such things.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    lines = [dict(_fields(table, entry)) for entry in iter_rows(table)]
    first = lines[0] if lines else {}
    kept = [name for name in first if name not in _empty_columns(table)]
    writer.writerow(kept)
    writer.writerows([line[name] for name in kept] for line in lines)
    return text.getvalue()


def _empty_columns(table: Table) -> set[str]:
    """The columns that say nothing in this table."""
    found = list(iter_rows(table))
    several = len({entry.key.metric for entry in found if entry.key.level}) > 1
    others = any(entry.cell.metric for entry in found)
    needed = {
        "group": bool(table.groups),
        "metric": several or others,
        "low": table.spread == "ci",
        "high": table.spread == "ci",
        "difference": any(entry.cell.difference is not None for entry in found),
        "picked": any(entry.cell.picked for entry in found),
        "unit": any(entry.cell.status is CellStatus.PUBLISHED for entry in found),
    }
    return {name for name, there in needed.items() if not there}


def _fields(table: Table, entry: TidyRow) -> Iterator[tuple[str, str]]:
    """Every field of a cell by its column's name."""
    cell, estimate, published = entry.cell, entry.cell.estimate, entry.cell.published
    yield "group", entry.group
    yield "row", entry.row
    yield "column", entry.column
    yield "metric", entry.metric
    yield table.center, _number(estimate.value if estimate else None)
    yield SPREAD_COLUMNS[table.spread], _number(estimate.spread if estimate else None)
    yield "low", _number(estimate.low if estimate else None)
    yield "high", _number(estimate.high if estimate else None)
    yield "n", str(cell.count)
    yield "difference", _number(cell.difference)
    yield "picked", cell.picked
    yield "published", published.text if published else ""
    yield "unit", published.unit if published else ""
    yield "status", cell.status.value
    yield "note", entry.note


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)
