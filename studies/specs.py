"""[[table]]: the tables that a study prints, held against its factors and the metrics."""

from __future__ import annotations

from collections.abc import Mapping

from .factors import SEED
from .faults import nearest
from .metrics import METRICS
from .positions import KeyPath
from .report import Report
from .settings import TableSpec
from .wording import ProblemsError, checked, shown


def read_tables(report: Report) -> tuple[TableSpec, ...]:
    """Every table of a study in the order of the file."""
    tables = report.document.data.get("table", [])
    if not isinstance(tables, list):
        report.note(("table",), f"expected [[table]], got {shown(tables)}")
        return ()
    declared = report.document.data.get("factors")
    factors = {SEED, *(declared if isinstance(declared, Mapping) else ())}
    specs: list[TableSpec] = []
    for index, table in enumerate(tables):
        path = ("table", index)
        try:
            spec = checked(TableSpec, table)
        except ProblemsError as error:
            report.note_all(path, error)
            continue
        _check(report, path, spec, factors)
        if spec.name in (other.name for other in specs):
            report.note((*path, "name"), f"the name '{spec.name}' is taken by another table")
        specs.append(spec)
    return tuple(specs)


def _check(report: Report, path: KeyPath, spec: TableSpec, factors: set[str]) -> None:
    for key, factor in (("rows", spec.rows), ("columns", spec.columns)):
        if factor not in factors:
            report.note((*path, key), f"unknown factor '{factor}'{nearest(factor, factors)}")
    if spec.rows == spec.columns:
        report.note((*path, "columns"), f"expected another factor than the rows, got '{spec.columns}'")
    if spec.value not in METRICS:
        report.note((*path, "value"), f"unknown metric '{spec.value}'{nearest(spec.value, METRICS)}")
