"""[[table]]: the tables that a study prints, held against its factors and the metrics."""

from __future__ import annotations

from .design import Design
from .fitting import misfits
from .report import Report
from .table_spec import TableSpec
from .wording import ProblemsError, checked, shown


def read_tables(report: Report, design: Design, paper: str | None) -> tuple[TableSpec, ...]:
    """Every table of a study in the order of the file."""
    tables = report.document.data.get("table", [])
    if not isinstance(tables, list):
        report.note(("table",), f"expected [[table]], got {shown(tables)}")
        return ()
    specs: list[TableSpec] = []
    for index, table in enumerate(tables):
        path = ("table", index)
        try:
            spec = checked(TableSpec, table)
        except ProblemsError as error:
            report.note_all(path, error)
            continue
        for key, message in misfits(spec, design, paper):
            report.note((*path, *key), message)
        if spec.name in (other.name for other in specs):
            report.note((*path, "name"), f"the name '{spec.name}' is taken by another table")
        specs.append(spec)
    return tuple(specs)
