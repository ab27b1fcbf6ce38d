"""A table in long form, for programs: one entry a cell, numbers with all their digits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .table import Cell, ColumnKey, Table

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class TidyRow:
    """One cell with where it stands, and the texts of its footnotes."""

    row: str
    group: str
    key: ColumnKey
    cell: Cell
    note: str

    @property
    def metric(self) -> str:
        """What the cell shows."""
        return self.cell.metric or self.key.metric

    @property
    def column(self) -> str:
        """The level of its column, or the metric where metrics alone are columns."""
        return self.key.level or self.key.metric


def iter_rows(table: Table) -> Iterator[TidyRow]:
    """Every cell in reading order; those that repeat a paper's number in a column of its own are left out."""
    notes = {note.mark: note.text for note in table.footnotes}
    groups = table.groups or ("",) * len(table.rows)
    for row, group, cells in zip(table.rows, groups, table.cells, strict=True):
        for key, cell in zip(table.keys, cells, strict=True):
            if key is not None:
                note = "; ".join(notes[mark] for mark in cell.marks)
                yield TidyRow(row=row, group=group, key=key, cell=cell, note=note)


def tidy_frame(table: Table) -> pl.DataFrame:
    """One row a cell, with the same columns for every table.

    `value` is the `center` of `n` values, `spread` what `spread_is` says, half its width for an interval from
    `low` to `high`. `picked` is null unless the cell is the best of several levels. `published` has the
    paper's number in `unit`, and `note` the footnotes.
    """
    import polars as pl  # noqa: PLC0415 -- a table can be looked at without it

    schema = {
        **dict.fromkeys(("table", "group", "row", "column", "metric", "status", "center"), pl.String),
        "value": pl.Float64,
        "spread_is": pl.String,
        **dict.fromkeys(("spread", "low", "high"), pl.Float64),
        "n": pl.Int64,
        "difference": pl.Float64,
        "best": pl.Boolean,
        "picked": pl.String,
        "published": pl.Float64,
        "unit": pl.String,
        "note": pl.String,
    }
    return pl.DataFrame([_record(table, entry) for entry in iter_rows(table)], schema=schema, orient="row")


def _record(table: Table, entry: TidyRow) -> Mapping[str, object]:
    """A cell's row; what it does not have is null."""
    cell, estimate, published = entry.cell, entry.cell.estimate, entry.cell.published
    return {
        "table": table.name,
        "group": entry.group or None,
        "row": entry.row,
        "column": entry.column,
        "metric": entry.metric,
        "status": cell.status.value,
        "center": table.center,
        "value": estimate.value if estimate else None,
        "spread_is": table.spread,
        "spread": estimate.spread if estimate else None,
        "low": estimate.low if estimate else None,
        "high": estimate.high if estimate else None,
        "n": cell.count,
        "difference": cell.difference,
        "best": cell.best,
        "picked": cell.picked or None,
        "published": published.value if published else None,
        "unit": published.unit if published else None,
        "note": entry.note or None,
    }
