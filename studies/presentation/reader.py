"""[[table]] and [[curve]]: what a study prints and draws, checked against its factors and the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ...diagnostics import nearest, nearest_hint
from ..catalog.metrics import TUNED_METRICS, metric_family
from ..schema.design import Design
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath
from .kinds import CurveKind, ResultKeys, Role, TableKind, find_kind, kinds_of

_DEFAULTS: dict[Role, str] = {"table": "cells"}
"""The kind of a result whose table does not name one."""

_DRAWN_BY_OPTUNA = {
    "importance": "plot_param_importances",
    "hypervolume": "plot_hypervolume_history",
    "slices": "plot_slice",
    "parallel": "plot_parallel_coordinate",
    "contour": "plot_contour",
    "rank": "plot_rank",
}
"""Kinds that earlier versions had, with the functions of `optuna.visualization` that draw the same."""


def read_tables(diagnostics: Diagnostics, design: Design, paper: str | None) -> tuple[TableKind, ...]:
    """Return every valid table of a study in the order of the file; note all faults."""
    return cast("tuple[TableKind, ...]", tuple(_read(diagnostics, "table", design, paper)))


def read_curves(diagnostics: Diagnostics, design: Design, paper: str | None) -> tuple[CurveKind, ...]:
    """Return every valid figure of a study in the order of the file; note all faults."""
    return cast("tuple[CurveKind, ...]", tuple(_read(diagnostics, "curve", design, paper)))


def check_tuned_metrics(
    diagnostics: Diagnostics, tables: Sequence[TableKind], curves: Sequence[CurveKind]
) -> None:
    """Note metrics of a tuning in tables and figures of a study without [decode]."""
    for role, specs in (("table", tables), ("curve", curves)):
        for index, spec in enumerate(specs):
            for path, name in spec.named_metrics():
                is_tuned = path[0] == "value" and metric_family(name) in TUNED_METRICS
                if is_tuned and "decode" not in diagnostics.document.data:
                    message = f"{name} comes from tuning: say in [decode] what to try"
                    diagnostics.report_error((role, index, "value"), message)


def _read(diagnostics: Diagnostics, role: Role, design: Design, paper: str | None) -> list[ResultKeys]:
    specs: list[ResultKeys] = []
    for index, table in enumerate(diagnostics.tables(role)):
        path: KeyPath = (role, index)
        if not isinstance(table, dict):
            diagnostics.report_error(path, f"expected a table, got {format_value(table)}")
            continue
        kind = table.get("kind", _DEFAULTS.get(role))
        model = find_kind(role, kind) if isinstance(kind, str) else None
        if model is None:
            model, kind = _report_unknown_kind(diagnostics, role, path, kind)
            if model is not None:
                diagnostics.validate(model, path, {**table, "kind": kind})
            continue
        if model.of_search != diagnostics.has_search:
            _report_wrong_kind(diagnostics, role, path, kind, in_file="kind" in table)
        spec = diagnostics.validate(model, path, _own_keys(diagnostics, role, path, table, model))
        if spec is None:
            continue
        spec = spec.with_levels(design)
        for key, message in spec.faults(design, paper):
            diagnostics.report_error((*path, *key), message)
        if spec.name in (other.name for other in specs):
            diagnostics.report_error((*path, "name"), f"the name '{spec.name}' is taken by another {role}")
        specs.append(spec)
    return specs


def _report_unknown_kind(
    diagnostics: Diagnostics, role: Role, path: KeyPath, kind: object
) -> tuple[type[ResultKeys] | None, str | None]:
    """Note a kind that is missing or unknown; return the kind that is meant, whose keys are checked."""
    own = [name for name, each in kinds_of(role).items() if each.of_search == diagnostics.has_search]
    if kind is None:
        diagnostics.report_error(path, f"missing key 'kind'; known: {', '.join(own)}")
        return None, None
    if not isinstance(kind, str):
        expected = ", ".join(map(repr, own))
        diagnostics.report_error((*path, "kind"), f"expected one of {expected}, got {format_value(kind)}")
        return None, None
    if kind in _DRAWN_BY_OPTUNA:
        message = (
            f"'{kind}' is no kind any more: export the search (activemem study export NAME --to optuna) "
            f"and draw it by optuna.visualization.{_DRAWN_BY_OPTUNA[kind]}"
        )
        diagnostics.report_error((*path, "kind"), message)
        return None, None
    diagnostics.report_error((*path, "kind"), f"unknown kind '{kind}'{nearest_hint(kind, own)}")
    meant = nearest(kind, own)
    return (find_kind(role, meant), meant) if meant else (None, None)


def _report_wrong_kind(
    diagnostics: Diagnostics, role: Role, path: KeyPath, kind: str, *, in_file: bool
) -> None:
    """Note a kind for the cells of a grid in a search, or for the points of a search in a grid."""
    own = [name for name, each in kinds_of(role).items() if each.of_search == diagnostics.has_search]
    has = ("the cells of a grid; a search has none", "the points of a search; a grid has none")
    message = f"'{kind}' is about {has[not diagnostics.has_search]}: expected {', '.join(own)}"
    diagnostics.report_error((*path, "kind") if in_file else path, message)


def _own_keys(
    diagnostics: Diagnostics, role: Role, path: KeyPath, table: dict[str, object], model: type[ResultKeys]
) -> dict[str, object]:
    """Return the keys of a table without those that only other kinds have, which are noted."""
    foreign = {key: list[str]() for key in table if key not in model.model_fields}
    for key, others in foreign.items():
        others += [
            name
            for name, other in kinds_of(role).items()
            if key in other.model_fields and other.of_search == model.of_search
        ]
        if others:
            kind, verb = table.get("kind", _DEFAULTS.get(role)), "has" if len(others) == 1 else "have"
            *first, last = others
            named = f"{', '.join(first)} and {last}" if first else last
            message = f"kind '{kind}' has no {key}; {named} {verb}"
            diagnostics.report_error((*path, key), message)
    return {key: value for key, value in table.items() if not foreign.get(key)}
