"""[[table]] and [[curve]]: what a study prints and draws, held against its factors and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from .curve_spec import CurveSpec, curve_misfits
from .design import Design
from .fitting import Fault, misfits
from .report import Report
from .table_spec import TableSpec
from .wording import ProblemsError, checked, shown

Spec = TypeVar("Spec", TableSpec, CurveSpec)


def read_tables(report: Report, design: Design, paper: str | None) -> tuple[TableSpec, ...]:
    """Every table of a study in the order of the file."""
    return _read(report, "table", TableSpec, lambda spec: misfits(spec, design, paper))


def read_curves(report: Report, design: Design, paper: str | None) -> tuple[CurveSpec, ...]:
    """Every figure of a study in the order of the file."""
    if report.document.data.get("curve") and "search" in report.document.data:
        report.note(("curve",), "a figure shows the cells of a grid; a search has none")
        return ()
    return _read(report, "curve", CurveSpec, lambda spec: curve_misfits(spec, design, paper))


def _read(
    report: Report, name: str, model: type[Spec], wrong: Callable[[Spec], Iterable[Fault]]
) -> tuple[Spec, ...]:
    """Every table of an array of tables; what is wrong in one is noted, and what does not fit is kept."""
    tables = report.document.data.get(name, [])
    if not isinstance(tables, list):
        report.note((name,), f"expected [[{name}]], got {shown(tables)}")
        return ()
    specs: list[Spec] = []
    for index, table in enumerate(tables):
        path = (name, index)
        try:
            spec = checked(model, table)
        except ProblemsError as error:
            report.note_all(path, error)
            continue
        for key, message in wrong(spec):
            report.note((*path, *key), message)
        if spec.name in (other.name for other in specs):
            report.note((*path, "name"), f"the name '{spec.name}' is taken by another {name}")
        specs.append(spec)
    return tuple(specs)
