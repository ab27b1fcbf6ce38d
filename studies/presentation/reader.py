"""The kinds of tables and figures by name, and the reader of those that a study file has.

The keys of the package's own kinds are classes of this folder. Plug-ins register further kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import nearest, nearest_hint
from ...plugins import Registry, check_part
from ..catalog.metrics import TUNED_METRICS, metric_family
from ..catalog.published import PublishedNumbers
from ..resolve.trial import Trial
from ..schema.design import Design
from ..schema.factors import SEED
from ..schema.reported_metrics import course_fault, missing_metric, spending_fault
from ..text.document import Diagnostics
from ..text.strict_model import InvalidTableError, class_faults, format_value, validate
from ..text.toml_positions import KeyPath
from ..text.units import listed
from .figure_keys import BarFigure, BoxFigure, HeatFigure, LineFigure, ParetoFigure
from .kinds import CurveKind, KeyFault, ResultKeys, Role, TableKind, is_selected
from .law_keys import ScalingFigure, ScalingTable
from .point_keys import PointsFigure, PointsTable
from .table_keys import CellsTable, SpeedupTable

KINDS: Mapping[Role, Registry[type[Any]]] = {
    "table": Registry(
        "kind of tables",
        {"cells": CellsTable, "points": PointsTable, "scaling": ScalingTable, "speedup": SpeedupTable},
    ),
    "curve": Registry(
        "kind of figures",
        {
            "bar": BarFigure,
            "box": BoxFigure,
            "heat": HeatFigure,
            "line": LineFigure,
            "pareto": ParetoFigure,
            "points": PointsFigure,
            "scaling": ScalingFigure,
        },
    ),
}
"""The classes of all kinds of tables and of figures, by name."""

KindT = TypeVar("KindT", bound=ResultKeys)


def register_kind(name: str) -> Callable[[type[KindT]], type[KindT]]:
    """Return a decorator that registers a kind of tables or figures under a name.

    The class is a subclass of PluginTable or PluginFigure. Raise PluginError for a taken name, and for keys
    without a meaning.
    """

    def register(cls: type[KindT]) -> type[KindT]:
        role: Role = "table" if isinstance(cls, type) and issubclass(cls, TableKind) else "curve"
        check_part(class_faults(cls, TableKind if role == "table" else CurveKind, needs_defaults=False))
        KINDS[role].register(name, cls)
        return cls

    return register


_DEFAULTS: dict[Role, str] = {"table": "cells"}
"""The default kind of a table without `kind`."""


def read_results(
    diagnostics: Diagnostics, role: Role, design: Design, published: PublishedNumbers
) -> tuple[Any, ...]:
    """Return the valid tables or figures of a study, in file order. Faults of others are reported.

    They are of the class TableKind or CurveKind, as `role` says.
    """
    specs: list[ResultKeys] = []
    names = set[str]()
    for index, table in enumerate(diagnostics.tables(role)):
        path: KeyPath = (role, index)
        if not isinstance(table, dict):
            diagnostics.report(path, f"expected a table, got {format_value(table)}")
            continue
        if isinstance(name := table.get("name"), str):
            if name in names:
                diagnostics.report((*path, "name"), f"the name '{name}' is taken by another {role}")
            names.add(name)
        kind = table.get("kind", _DEFAULTS.get(role))
        model = KINDS[role].get(kind) if isinstance(kind, str) else None
        if model is None or model.of_search != diagnostics.has_search:
            _report_wrong_kind(diagnostics, role, path, table, model)
            continue
        keys = _own_keys(diagnostics, role, path, table, model)
        spec = diagnostics.validate(model, path, keys)
        if spec is None:
            for key, message in _faults_beside_value(model, keys, design, published):
                diagnostics.report((*path, *key), message)
            continue
        spec = spec.with_levels(design)
        for key, message in spec.faults(design, published):
            diagnostics.report((*path, *key), message)
        for key, name in spec.named_metrics() if "decode" not in diagnostics.data else ():
            if key[0] == "value" and metric_family(name) in TUNED_METRICS:
                message = f"{name} comes from tuning the decoder: set the values to try in [decode]"
                diagnostics.report((*path, "value"), message)
        specs.append(spec)
    return tuple(specs)


_FACTOR_KEYS = ("rows", "columns", "series", "select")


def _faults_beside_value(
    model: type[ResultKeys], keys: Mapping[str, object], design: Design, published: PublishedNumbers
) -> Iterator[KeyFault]:
    """Yield the faults of the keys that name factors in a table or figure with only `value` invalid."""
    try:
        spec = validate(model, {**keys, "value": "loss"}).with_levels(design)
    except InvalidTableError:
        return
    yield from (fault for fault in spec.faults(design, published) if fault[0] and fault[0][0] in _FACTOR_KEYS)


def _report_wrong_kind(
    diagnostics: Diagnostics,
    role: Role,
    path: KeyPath,
    table: Mapping[str, object],
    model: type[ResultKeys] | None,
) -> None:
    """Report a wrong `kind`. The other keys are checked by the kind of the nearest name, if it is unknown."""
    own = [name for name, each in KINDS[role].items() if each.of_search == diagnostics.has_search]
    kind = table.get("kind", _DEFAULTS.get(role))
    place = (*path, "kind") if "kind" in table else path
    if model is not None:
        has = ("the cells of a grid, and a search has none", "the points of a search, and a grid has none")
        message = f"'{kind}' shows {has[model.of_search]}: expected {', '.join(own)}"
    elif kind is None:
        message = f"missing key 'kind'; known: {', '.join(own)}"
    elif not isinstance(kind, str):
        message = f"expected one of {', '.join(map(repr, own))}, got {format_value(kind)}"
    else:
        message = f"unknown kind '{kind}'{nearest_hint(kind, own)}"
        if (near := nearest(kind, own)) and (meant := KINDS[role].get(near)):
            diagnostics.validate(meant, path, {**table, "kind": near})
    diagnostics.report(place, message)


def _own_keys(
    diagnostics: Diagnostics, role: Role, path: KeyPath, table: dict[str, object], model: type[ResultKeys]
) -> dict[str, object]:
    foreign = {key: list[str]() for key in table if key not in model.model_fields}
    for key, others in foreign.items():
        others += [
            name
            for name, other in KINDS[role].items()
            if key in other.model_fields and other.of_search == model.of_search
        ]
        if others:
            kind = table.get("kind", _DEFAULTS.get(role))
            named = f"kind{'s' * (len(others) > 1)} {listed(others)}"
            message = f"kind '{kind}' has no key {key}; it is a key of {named}"
            diagnostics.report((*path, key), message)
    return {key: value for key, value in table.items() if not foreign.get(key)}


def check_shown_metrics(
    diagnostics: Diagnostics, role: Role, specs: Sequence[TableKind | CurveKind], trials: Sequence[Trial]
) -> None:
    """Report each metric of a table or figure that none of its trials can have.

    The message names the key that would add the metric. `trials` has one of each cell, with any seed.
    """
    for index, spec in enumerate(specs):
        if getattr(spec, "studies", ()):
            continue  # its metrics are those of other studies
        select = {factor: kept for factor, kept in spec.select.items() if factor != SEED}
        selected = [each.common for each in trials if is_selected(select, each.levels)]
        axis = getattr(spec, "x", "") if spec.kind == "line" else ""
        for key, name in spec.named_metrics():
            if fault := missing_metric(name, selected) or course_fault(name, axis, selected):
                diagnostics.report((role, index, *key), fault)
        if fault := spending_fault(axis, selected):
            diagnostics.report((role, index, "x"), fault)
