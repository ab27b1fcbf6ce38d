"""A table with more of its paper in it: rows and columns that only the paper has, its numbers in columns."""

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
    made: Table, theirs: PublishedMatch, rows: Sequence[TableRow], columns: Sequence[TableColumn]
) -> Table:
    """The table with the rows and the columns that only the paper has, below and behind ours.

    They keep the paper's names and order, and have a heading that says whose they are. What the study has no
    trial for is UNPLANNED there too.
    """
    cells, more = theirs.paper.cells, theirs.paper_only_columns
    ours = [theirs.columns.get((column.metric.name, column.level), "") for column in columns]
    keys = [theirs.rows.get(row.level, "") for row in rows]
    wide = [
        (*row, *(_paper_only_cell(cells.get((key, column))) for column in more))
        for key, row in zip(keys, made.cells, strict=True)
    ]
    below = [
        tuple(_paper_only_cell(cells.get((row, key))) for key in (*ours, *more))
        for row in theirs.paper_only_rows
    ]
    return replace(
        made,
        rows=(*made.rows, *theirs.paper_only_rows),
        columns=(*made.columns, *more),
        cells=(*wide, *below),
        groups=(*(made.groups or ("",) * len(rows)), *(PAPER_ONLY_HEADING,) * len(below))
        if below
        else made.groups,
        column_headings=_extend_headings(made.column_headings or (("",) * len(columns),), len(more))
        if more
        else made.column_headings,
        keys=(*made.keys, *(ColumnKey(metric="", level=key) for key in more)),
    )


def add_published_columns(made: Table) -> Table:
    """The table with a column of the paper's numbers behind each of ours that has some, under one heading.

    The column's own name becomes that heading. The new columns have no key: in long form, a cell of ours has
    the paper's number already.
    """
    has = [any(row[number].published_text for row in made.cells) for number in range(len(made.columns))]
    wide = [number for number, its in enumerate(has) for _ in range(1 + its)]
    theirs = [place > 0 and wide[place - 1] == number for place, number in enumerate(wide)]
    heads = tuple(
        "published" if their else "ours" if has[number] else made.columns[number]
        for number, their in zip(wide, theirs, strict=True)
    )
    return replace(
        made,
        columns=heads,
        keys=tuple(None if their else made.keys[number] for number, their in zip(wide, theirs, strict=True)),
        column_headings=(
            *(tuple(line[number] for number in wide) for line in made.column_headings),
            tuple(made.columns[number] if has[number] else "" for number in wide),
        ),
        cells=tuple(
            tuple(
                Cell(status=CellStatus.PUBLISHED, text=row[number].published_text)
                if their
                else replace(row[number], published_text="")
                for number, their in zip(wide, theirs, strict=True)
            )
            for row in made.cells
        ),
    )


def _extend_headings(bands: tuple[tuple[str, ...], ...], more: int) -> tuple[tuple[str, ...], ...]:
    """The headings of columns with that of so many columns behind them."""
    first, *others = bands
    return ((*first, *(PAPER_ONLY_HEADING,) * more), *((*line, *("",) * more) for line in others))


def _paper_only_cell(number: PublishedNumber | None) -> Cell:
    """A cell that the study has nothing for."""
    return Cell(
        status=CellStatus.UNPLANNED,
        published=number,
        published_text=number.text_with_deviation if number else "",
    )
