"""[[table]] and [[curve]]: what a study prints and draws, checked against its factors and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..schema.design import Design
from ..text.diagnostics import Diagnostics
from .curve import CurveSpec, curve_faults
from .table import TableSpec
from .table_checks import KeyFault, table_faults

SpecT = TypeVar("SpecT", TableSpec, CurveSpec)


def read_tables(diagnostics: Diagnostics, design: Design, paper: str | None) -> tuple[TableSpec, ...]:
    """Every table of a study in the order of the file."""
    return _read(diagnostics, "table", TableSpec, lambda spec: table_faults(spec, design, paper))


def read_curves(diagnostics: Diagnostics, design: Design, paper: str | None) -> tuple[CurveSpec, ...]:
    """Every figure of a study in the order of the file."""
    if diagnostics.document.data.get("curve") and diagnostics.has_search:
        diagnostics.report_error(("curve",), "a figure shows the cells of a grid; a search has none")
        return ()
    return _read(diagnostics, "curve", CurveSpec, lambda spec: curve_faults(spec, design, paper))


def _read(
    diagnostics: Diagnostics, name: str, model: type[SpecT], faults_of: Callable[[SpecT], Iterable[KeyFault]]
) -> tuple[SpecT, ...]:
    """Every valid table of an array of tables, whether it fits the study or not; all faults are noted."""
    specs: list[SpecT] = []
    for index, table in enumerate(diagnostics.tables(name)):
        path = (name, index)
        spec = diagnostics.validate(model, path, table)
        if spec is None:
            continue
        for key, message in faults_of(spec):
            diagnostics.report_error((*path, *key), message)
        if spec.name in (other.name for other in specs):
            diagnostics.report_error((*path, "name"), f"the name '{spec.name}' is taken by another {name}")
        specs.append(spec)
    return tuple(specs)
