"""A table in long form, for programs: one record a cell, numbers with all their digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .table import Table

if TYPE_CHECKING:
    import polars as pl


def iter_records(table: Table) -> Iterator[dict[str, object]]:
    """Yield every cell in reading order, None for what it does not have.

    Columns of a paper's numbers, which its cells have already, are left out. `metric` is what the cell shows,
    `column` the level of its column, or the metric where metrics alone are columns.
    """
    notes = {note.mark: note.text for note in table.footnotes}
    groups = table.groups or ("",) * len(table.rows)
    for row, group, cells in zip(table.rows, groups, table.cells, strict=True):
        for key, cell in zip(table.keys, cells, strict=True):
            if key is None:
                continue
            estimate, published = cell.estimate, cell.published
            yield {
                "table": table.name,
                "group": group or None,
                "row": row,
                "column": key.level or key.metric,
                "metric": cell.metric or key.metric,
                "status": cell.status.value,
                "center": table.center,
                "value": estimate.value if estimate else None,
                "spread_is": table.spread,
                "spread": estimate.spread if estimate else None,
                "low": estimate.low if estimate else None,
                "high": estimate.high if estimate else None,
                "n": cell.count,
                "difference": cell.difference,
                "difference_half_width": cell.difference_half_width,
                "is_significant": None if cell.difference_half_width is None else cell.is_significant,
                "is_within": cell.is_within,
                "p": cell.p,
                "best": cell.best,
                "picked": cell.picked or None,
                "published": published.value if published else None,
                "published_text": published.text if published else None,
                "unit": published.unit if published else None,
                "note": "; ".join(notes[mark] for mark in cell.marks) or None,
            }


def tidy_frame(table: Table) -> pl.DataFrame:
    """Return one row a cell, with the same columns for every table.

    `value` is the `center` of `n` values. `spread` has the kind `spread_is`; for an interval from `low` to
    `high` it is half of its width. `p` is the corrected p of the difference, and `is_within` says whether the
    difference is shown to be too small to matter. `picked` is null unless the cell is the best of several
    levels.
    `published` has the paper's number in `unit`, and `note` the footnotes.
    """
    import polars as pl  # noqa: PLC0415 -- a table can be looked at without it

    schema = {
        **dict.fromkeys(("row", "column"), pl.String),
        **dict.fromkeys(("value", "spread"), pl.Float64),  # among the first four, which Polars always prints
        "n": pl.Int64,
        **dict.fromkeys(("low", "high"), pl.Float64),
        **dict.fromkeys(("table", "group", "metric", "status", "center", "spread_is"), pl.String),
        "difference": pl.Float64,
        "difference_half_width": pl.Float64,
        "is_significant": pl.Boolean,
        "is_within": pl.Boolean,
        "p": pl.Float64,
        "best": pl.Boolean,
        "picked": pl.String,
        "published": pl.Float64,
        "unit": pl.String,
        "note": pl.String,
    }
    records = [{name: record[name] for name in schema} for record in iter_records(table)]
    return pl.DataFrame(records, schema=schema, orient="row")
