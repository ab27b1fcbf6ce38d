"""CSV with quoted fields (RFC 4180), and fields between tabs without quoting."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from .cells import Cells, RowsError, missing_column

_Row = tuple[int, list[str]]  # the line in which it begins


def read_csv(text: str, columns: Sequence[str]) -> Cells:
    """Return these columns of a CSV file, whose first line names them; raise RowsError."""
    limit = csv.field_size_limit(max(len(text), 1))
    try:
        return _with_header(_csv_rows(text), columns)
    finally:
        csv.field_size_limit(limit)


def read_tsv(text: str, columns: Sequence[str]) -> Cells:
    """Return these columns of tab-separated lines, of which the first names them; raise RowsError."""
    return _with_header(_lines_with_tabs(text), columns)


def read_two_columns(text: str) -> Cells:
    """Return the first two tab-separated fields of each line of a file without a header; raise RowsError."""
    rows = list(_lines_with_tabs(text))
    if faults := [
        f"line {line:,}: expected two columns with a tab between them, got {len(row)}"
        for line, row in rows
        if len(row) < 2
    ]:
        raise RowsError(faults)
    values = [[row[place] for _, row in rows] for place in (0, 1)]
    return Cells(unit="line", numbers=[line for line, _ in rows], columns=values)


def _csv_rows(text: str) -> Iterator[_Row]:
    """Yield the rows that are not empty, each with the line in which it begins."""
    reader, line = csv.reader(io.StringIO(text, newline=""), strict=True), 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise RowsError([f"line {line:,}: expected fields in quotes that end, got: {error}"]) from error


def _lines_with_tabs(text: str) -> Iterator[_Row]:
    for line, fields in enumerate(text.split("\n"), start=1):
        if stripped := fields.removesuffix("\r"):
            yield line, stripped.split("\t")


def _with_header(rows: Iterator[_Row], columns: Sequence[str]) -> Cells:
    """Return the columns that the first row names; every row must have as many fields."""
    _, header = next(rows, (1, []))
    faults = [f"line 1: {missing_column(name, header)}" for name in columns if name not in header]
    faults += [
        f"line 1: expected one column '{name}', got {header.count(name)}"
        for name in columns
        if header.count(name) > 1
    ]
    if faults:
        raise RowsError(faults)
    found = list(rows)
    if faults := [
        f"line {line:,}: expected {len(header)} columns, got {len(row)}"
        for line, row in found
        if len(row) != len(header)
    ]:
        raise RowsError(faults)
    places = [header.index(name) for name in columns]
    values = [[row[place] for _, row in found] for place in places]
    return Cells(unit="line", numbers=[line for line, _ in found], columns=values)
