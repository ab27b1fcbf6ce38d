"""A table as CSV in long form, with one line per cell.

Numbers are not rounded.
"""

from __future__ import annotations

import csv
import io

from ..table import CellStatus, Table, iter_records

_SPREADS = {"sd": "deviation", "se": "standard_error", "ci": "half_width"}
"""The column of a spread; half_width is half of the interval from low to high."""


def render(table: Table) -> str:
    """Return a header and one line per cell.

    A missing value is an empty field.

    Columns for groups, metrics, intervals, differences, picked levels and units are left out if the table has
    none.
    """
    records = list(iter_records(table))
    several = len({key.metric for key in table.keys if key and key.level}) > 1
    fields = {
        "group": ("group", bool(table.groups)),
        "row": ("row", True),
        "column": ("column", True),
        "metric": ("metric", several or any(cell.metric for cells in table.cells for cell in cells)),
        "mean": ("value", True),
        _SPREADS[table.spread]: ("spread", True),
        "low": ("low", table.spread == "ci"),
        "high": ("high", table.spread == "ci"),
        "n": ("n", True),
        "difference": ("difference", any(record["difference"] is not None for record in records)),
        "picked": ("picked", any(record["picked"] for record in records)),
        "published": ("published_text", True),
        "unit": ("unit", any(record["status"] == CellStatus.PUBLISHED for record in records)),
        "status": ("status", True),
        "note": ("note", True),
    }
    names = {column: name for column, (name, needed) in fields.items() if needed and records}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([record[name] for name in names.values()] for record in records)
    return text.getvalue()
