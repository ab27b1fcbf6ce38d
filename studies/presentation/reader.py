"""[[table]] and [[curve]]: what a study prints and draws, checked against its factors and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, get_args

from ...diagnostics import nearest, nearest_hint
from ..catalog.metrics import TUNED_METRICS, metric_family
from ..schema.design import Design
from ..text.diagnostics import Diagnostics
from ..text.strict_model import StrictModel
from .curve import CellCurve, CurveSpec, curve_faults
from .effect_figures import EffectsCurveSpec, InteractionSpec, effect_figure_faults
from .effects import EffectsSpec, effects_faults
from .named_levels import with_levels
from .scaling import ScalingSpec, ScalingTableSpec, scaling_faults, table_of_laws_faults
from .scores import AggregateSpec, ProfileSpec, aggregate_faults, profile_faults
from .search import SEARCH_SPECS, FrontSpec, IncumbentSpec, PointsSpec, SearchCurveSpec, search_faults
from .table import TableSpec
from .table_checks import KeyFault, table_faults

AnyTableSpec = TableSpec | EffectsSpec | AggregateSpec | ScalingTableSpec | PointsSpec
"""What `[[table]]` says, of any kind."""

AnyCurveSpec = CurveSpec | EffectsCurveSpec | InteractionSpec | ProfileSpec | ScalingSpec | SearchCurveSpec
"""What `[[curve]]` says, of any kind."""

SpecT = TypeVar("SpecT", bound=AnyTableSpec | AnyCurveSpec)

_TABLES: Mapping[str, type[AnyTableSpec]] = {
    "cells": TableSpec,
    "effects": EffectsSpec,
    "aggregate": AggregateSpec,
    "scaling": ScalingTableSpec,
    "points": PointsSpec,
}

_CURVES: Mapping[str, type[AnyCurveSpec]] = {
    **dict.fromkeys(get_args(CellCurve), CurveSpec),
    "effects": EffectsCurveSpec,
    "interaction": InteractionSpec,
    "profile": ProfileSpec,
    "scaling": ScalingSpec,
    "incumbent": IncumbentSpec,
    "front": FrontSpec,
}


_DRAWN_BY_OPTUNA = {
    "importance": "plot_param_importances",
    "hypervolume": "plot_hypervolume_history",
    "slices": "plot_slice",
    "parallel": "plot_parallel_coordinate",
    "contour": "plot_contour",
    "rank": "plot_rank",
}
"""Kinds that earlier versions had, with the functions of `optuna.visualization` that draw the same."""


def read_tables(diagnostics: Diagnostics, design: Design, paper: str | None) -> tuple[AnyTableSpec, ...]:
    """Every table of a study in the order of the file."""
    _check_kinds(diagnostics, "table", _TABLES, "cells")
    return _read(
        diagnostics,
        "table",
        _TABLES,
        "cells",
        design=design,
        faults_of=lambda spec: any_table_faults(spec, design, paper),
    )


def any_table_faults(spec: AnyTableSpec, design: Design, paper: str | None) -> list[KeyFault]:
    """Everything in a table's specification that does not fit a study of this design."""
    if isinstance(spec, EffectsSpec):
        return effects_faults(spec, design)
    if isinstance(spec, AggregateSpec):
        return aggregate_faults(spec, design)
    if isinstance(spec, ScalingTableSpec):
        return table_of_laws_faults(spec, design)
    if isinstance(spec, SEARCH_SPECS):
        return list(search_faults(spec))
    return table_faults(spec, design, paper)


def read_curves(diagnostics: Diagnostics, design: Design, paper: str | None) -> tuple[AnyCurveSpec, ...]:
    """Every figure of a study in the order of the file."""
    _check_kinds(diagnostics, "curve", _CURVES, None)
    return _read(
        diagnostics,
        "curve",
        _CURVES,
        None,
        design=design,
        faults_of=lambda spec: any_curve_faults(spec, design, paper),
    )


def any_curve_faults(spec: AnyCurveSpec, design: Design, paper: str | None) -> list[KeyFault]:
    """Everything in a figure's specification that does not fit a study of this design."""
    if isinstance(spec, CurveSpec):
        return curve_faults(spec, design, paper)
    if isinstance(spec, ProfileSpec):
        return profile_faults(spec, design)
    if isinstance(spec, ScalingSpec):
        return scaling_faults(spec, design)
    if isinstance(spec, SEARCH_SPECS):
        return list(search_faults(spec))
    return effect_figure_faults(spec, design)


def check_tuned_metrics(
    diagnostics: Diagnostics, tables: Sequence[AnyTableSpec], curves: Sequence[AnyCurveSpec]
) -> None:
    """Note metrics of a tuning in tables and figures of a study without [decode]."""
    shown = [
        *((("table", index, "value"), name) for index, spec in enumerate(tables) for name in spec.value),
        *(
            (("curve", index, "value"), name)
            for index, spec in enumerate(curves)
            for name in ([spec.value] if isinstance(spec.value, str) else spec.value)
        ),
    ]
    for path, name in shown:
        if metric_family(name) in TUNED_METRICS and "decode" not in diagnostics.document.data:
            diagnostics.report_error(path, f"{name} comes from tuning: say in [decode] what to try")


def _check_kinds(
    diagnostics: Diagnostics, name: str, kinds: Mapping[str, type[StrictModel]], default: str | None
) -> None:
    """Note kinds that show the cells of a grid in a search, and those that show its points in a grid."""
    for index, table in enumerate(diagnostics.tables(name)):
        kind = _kind(table, default)
        if not isinstance(kind, str) or kind not in kinds:
            continue
        if (kinds[kind] in SEARCH_SPECS) != diagnostics.has_search:
            own = ", ".join(each for each in kinds if (kinds[each] in SEARCH_SPECS) == diagnostics.has_search)
            has = ("the cells of a grid; a search has none", "the points of a search; a grid has none")
            message = f"'{kind}' is about {has[not diagnostics.has_search]}: expected {own}"
            diagnostics.report_error((name, index, *(("kind",) if "kind" in table else ())), message)


def _read(
    diagnostics: Diagnostics,
    name: str,
    kinds: Mapping[str, type[SpecT]],
    default: str | None,
    *,
    design: Design,
    faults_of: Callable[[SpecT], Iterable[KeyFault]],
) -> tuple[SpecT, ...]:
    """Every valid table of an array of tables, whether it fits the study or not; all faults are noted.

    The key `kind` says which model a table has; with an unknown one it is checked as the kind that is meant.
    """
    specs: list[SpecT] = []
    for index, table in enumerate(diagnostics.tables(name)):
        path, kind = (name, index), _kind(table, default)
        if isinstance(kind, str) and kind not in kinds:
            if kind in _DRAWN_BY_OPTUNA:
                diagnostics.report_error((*path, "kind"), _drawn_by_optuna(kind))
                continue
            diagnostics.report_error((*path, "kind"), f"unknown kind '{kind}'{nearest_hint(kind, kinds)}")
            if meant := nearest(kind, kinds):
                diagnostics.validate(kinds[meant], path, {**table, "kind": meant})
            continue
        model = kinds[kind] if isinstance(kind, str) else next(iter(kinds.values()))
        spec = diagnostics.validate(model, path, table)
        if spec is None:
            continue
        spec = with_levels(spec, design)
        for key, message in faults_of(spec):
            diagnostics.report_error((*path, *key), message)
        if spec.name in (other.name for other in specs):
            diagnostics.report_error((*path, "name"), f"the name '{spec.name}' is taken by another {name}")
        specs.append(spec)
    return tuple(specs)


def _drawn_by_optuna(kind: str) -> str:
    """Return the message on a kind that Optuna draws, with the command and the function to use."""
    return (
        f"'{kind}' is no kind any more: export the search (activemem study export NAME --to optuna) "
        f"and draw it by optuna.visualization.{_DRAWN_BY_OPTUNA[kind]}"
    )


def _kind(table: object, default: str | None) -> object:
    return table.get("kind", default) if isinstance(table, dict) else default
