"""Numbers published in a paper, shown in the table of a study.

Rows and columns of the study are matched with those of the paper. Those that only the paper has are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import with_sign
from ...studies.catalog.published import PublishedNumber, PublishedTable, match_published_keys
from .table import Cell, CellStatus, ColumnKey, Table

if TYPE_CHECKING:
    from ...studies.presentation.table_keys import PublishedSpec
    from .cells import TableColumn, TableRow


PAPER_ONLY_HEADING = "published only"
"""The heading of rows and columns that only the paper has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMatch:
    """The match between two tables: the paper's names of `rows` and `columns` by the study's names."""

    paper: PublishedTable
    rows: Mapping[str, str]
    columns: Mapping[tuple[str, str], str]  # by metric and level

    def published_at(self, row: str, column: TableColumn) -> PublishedNumber | None:
        """Return the paper's number for a cell of the study's table, if any."""
        keys = self.rows.get(row), self.columns.get((column.metric.name, column.level))
        return self.paper.cells.get((keys[0], keys[1])) if keys[0] and keys[1] else None


def match_published(
    paper: PublishedTable, spec: PublishedSpec, rows: Sequence[TableRow], columns: Sequence[TableColumn]
) -> PublishedMatch:
    """Match the rows and columns of a study's table with those of a paper's table.

    Names given in the study file decide. Other names match if they are equal, or if they name the same
    blocks. The name of a column with a metric and a level is `METRIC:LEVEL` or, for the first metric, just
    the level. A name given for a metric applies to all of its levels.
    """
    levels = [row.level for row in rows]
    unnamed = [level for level in levels if level not in spec.rows]
    row_names = {
        **match_published_keys(unnamed, paper.rows),
        **{level: spec.rows[level] for level in levels if level in spec.rows},
    }
    matched = match_published_keys([column.name for column in columns], paper.columns)
    column_names: dict[tuple[str, str], str] = {}
    for column in columns:
        metric, level = column.metric.name, column.level
        own_name = f"{metric}:{level}" if level else metric
        given = spec.columns.get(own_name) or spec.columns.get(level)
        if given is None and level and metric in spec.columns:
            given = f"{spec.columns[metric]}:{level}"
        by_level = matched.get(column.name) if not level or metric == columns[0].metric.name else None
        name = given or (own_name if own_name in paper.columns else by_level)
        if name in paper.columns:
            column_names[metric, level] = name
    return PublishedMatch(paper=paper, rows=row_names, columns=column_names)


def difference_from_baseline(number: PublishedNumber, baseline: PublishedNumber | None) -> str:
    """Return the difference of two printed numbers; "" if one is not a number. It keeps their decimals.

    Parameters, printed in millions, have no difference.
    """
    if baseline is None or number is baseline or not (number.text and baseline.text):
        return ""
    if number.unit == "parameters":
        return ""
    # decimal arithmetic keeps the printed digits, as in 0.30 − 0.10 = 0.20
    return with_sign(str(Decimal(number.text) - Decimal(baseline.text)))


def add_paper_only(
    table: Table, match: PublishedMatch, rows: Sequence[TableRow], columns: Sequence[TableColumn]
) -> Table:
    """Add the paper's additional rows and columns to a table.

    They follow the study's own rows and columns, under a heading. These rows and columns keep the paper's
    names and order; their cells are UNPLANNED.
    """
    cells = match.paper.cells
    paper_rows = tuple(row for row in match.paper.rows if row not in match.rows.values())
    new_columns = tuple(column for column in match.paper.columns if column not in match.columns.values())
    column_keys = [match.columns.get((column.metric.name, column.level), "") for column in columns]
    row_keys = [match.rows.get(row.level, "") for row in rows]
    widened = [
        (*row, *(_paper_only_cell(cells.get((key, column))) for column in new_columns))
        for key, row in zip(row_keys, table.cells, strict=True)
    ]
    new_rows = [
        tuple(_paper_only_cell(cells.get((row, key))) for key in (*column_keys, *new_columns))
        for row in paper_rows
    ]
    first, *others = table.column_headings or (("",) * len(columns),)
    headings = [(*first, *(PAPER_ONLY_HEADING,) * len(new_columns))]
    headings += [(*line, *("",) * len(new_columns)) for line in others]
    return replace(
        table,
        rows=(*table.rows, *paper_rows),
        columns=(*table.columns, *new_columns),
        cells=(*widened, *new_rows),
        groups=(*(table.groups or ("",) * len(rows)), *(PAPER_ONLY_HEADING,) * len(new_rows))
        if new_rows
        else table.groups,
        column_headings=tuple(headings) if new_columns else table.column_headings,
        keys=(*table.keys, *(ColumnKey(metric="", level=key) for key in new_columns)),
    )


def _paper_only_cell(number: PublishedNumber | None) -> Cell:
    return Cell(
        status=CellStatus.UNPLANNED,
        published=number,
        published_text=number.text_with_deviation if number else "",
    )
