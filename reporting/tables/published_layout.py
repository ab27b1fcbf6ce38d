"""Adds a paper's numbers to a table: rows and columns that only the paper has, or its numbers in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...studies.catalog.published import PublishedNumber
from .axes import TableColumn, TableRow
from .published_match import PublishedMatch
from .table import Cell, CellStatus, ColumnKey, Table

PAPER_ONLY_HEADING = "published only"
"""The heading of the rows and the columns that only the paper has."""


def add_paper_only(
    table: Table, match: PublishedMatch, rows: Sequence[TableRow], columns: Sequence[TableColumn]
) -> Table:
    """The table with the rows and columns that only the paper has, after ours and under their own heading.

    They keep the paper's names and order; their cells are UNPLANNED.
    """
    cells, new_columns = match.paper.cells, match.paper_only_columns
    column_keys = [match.columns.get((column.metric.name, column.level), "") for column in columns]
    row_keys = [match.rows.get(row.level, "") for row in rows]
    widened = [
        (*row, *(_paper_only_cell(cells.get((key, column))) for column in new_columns))
        for key, row in zip(row_keys, table.cells, strict=True)
    ]
    new_rows = [
        tuple(_paper_only_cell(cells.get((row, key))) for key in (*column_keys, *new_columns))
        for row in match.paper_only_rows
    ]
    return replace(
        table,
        rows=(*table.rows, *match.paper_only_rows),
        columns=(*table.columns, *new_columns),
        cells=(*widened, *new_rows),
        groups=(*(table.groups or ("",) * len(rows)), *(PAPER_ONLY_HEADING,) * len(new_rows))
        if new_rows
        else table.groups,
        column_headings=_extend_headings(table.column_headings or (("",) * len(columns),), len(new_columns))
        if new_columns
        else table.column_headings,
        keys=(*table.keys, *(ColumnKey(metric="", level=key) for key in new_columns)),
    )


def add_published_columns(table: Table) -> Table:
    """The table with a column of the paper's numbers after each of ours that has some, under one heading.

    The column's own name becomes that heading. The new columns have no key: in long form, a cell of ours has
    the paper's number already.
    """
    has = [any(row[number].published_text for row in table.cells) for number in range(len(table.columns))]
    layout = [(number, new) for number, doubled in enumerate(has) for new in ((False, True)[: 1 + doubled])]
    return replace(
        table,
        columns=tuple(
            "published" if new else "ours" if has[number] else table.columns[number] for number, new in layout
        ),
        keys=tuple(None if new else table.keys[number] for number, new in layout),
        column_headings=(
            *(tuple(line[number] for number, _ in layout) for line in table.column_headings),
            tuple(table.columns[number] if has[number] else "" for number, _ in layout),
        ),
        cells=tuple(
            tuple(
                Cell(status=CellStatus.PUBLISHED, text=row[number].published_text)
                if new
                else replace(row[number], published_text="")
                for number, new in layout
            )
            for row in table.cells
        ),
    )


def _extend_headings(lines: tuple[tuple[str, ...], ...], count: int) -> tuple[tuple[str, ...], ...]:
    """The lines of headings with that of `count` new columns at the end."""
    first, *others = lines
    return ((*first, *(PAPER_ONLY_HEADING,) * count), *((*line, *("",) * count) for line in others))


def _paper_only_cell(number: PublishedNumber | None) -> Cell:
    """A cell without trials of the study."""
    return Cell(
        status=CellStatus.UNPLANNED,
        published=number,
        published_text=number.text_with_deviation if number else "",
    )
