"""A table as CSV in long form, for a program to read: one line a cell, numbers with all their digits."""

from __future__ import annotations

import csv
import io

from ..table import Cell, Table

HEADER = ("row", "column", "mean", "deviation", "n", "published", "status", "note")


def to_csv(table: Table) -> str:
    """One line for each row and column; an empty field is a number that is not there."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    notes = {note.mark: note.text for note in table.footnotes}
    for row, cells in zip(table.rows, table.cells, strict=True):
        for column, cell in zip(table.columns, cells, strict=True):
            writer.writerow((row, column, *_fields(cell, notes)))
    return text.getvalue()


def _fields(cell: Cell, notes: dict[str, str]) -> tuple[str, ...]:
    return (
        "" if cell.mean is None else repr(cell.mean),
        "" if cell.deviation is None else repr(cell.deviation),
        str(cell.count),
        cell.published.text if cell.published else "",
        cell.status.value,
        "; ".join(notes[mark] for mark in cell.marks),
    )
