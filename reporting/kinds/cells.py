"""`cells`: a table with a factor as rows, and another factor or metrics as columns."""

from __future__ import annotations

import polars as pl

from ...studies.presentation.kinds import TableKind
from ...studies.presentation.table_keys import CellsTable
from ...studies.study import Study
from ..tables.cells import TableCells
from ..tables.table import Table, TableExtras


def table(spec: CellsTable, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
    """Return the table of cells."""
    return TableCells(study=study, spec=spec, outcomes=outcomes, extras=extras).table()


def find_cells(
    spec: TableKind, study: Study, outcomes: pl.DataFrame, extras: TableExtras
) -> TableCells | None:
    """Return the values and tests behind a table of a study's cells; None for other tables."""
    if not isinstance(spec, CellsTable) or spec.studies:
        return None
    return TableCells(study=study, spec=spec, outcomes=outcomes, extras=extras)
