"""A table as CSV in long form, with one line for each cell and numbers that are not rounded."""

from __future__ import annotations

from ..table import Table


def render(table: Table) -> str:
    """Return a header and a line for each cell, with the columns of `Table.frame`; "" for missing values."""
    return table.frame().write_csv()
