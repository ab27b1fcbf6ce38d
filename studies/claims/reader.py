"""[[claim]]: reads every claim of a study file and resolves it over the study's cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...diagnostics import FaultCollector
from ..catalog.metrics import METRICS_AND_COSTS, Metric
from ..resolve.grid import MAX_TRIALS
from ..schema.design import Design
from ..text.diagnostics import Diagnostics
from ..text.toml_positions import KeyPath
from .context import ClaimContext
from .parser import parse_claim
from .resolver import resolve_claim
from .scope import Scope, claim_scope
from .spec import Claim, ClaimSpec

TABLE = "claim"


def read_claims(
    diagnostics: Diagnostics, design: Design, metrics: Mapping[str, Metric] = METRICS_AND_COSTS
) -> tuple[Claim, ...]:
    """Every claim of a study in the order of the file; one with faults is left out, and they are noted.

    `metrics` are those that a claim may name. Claims are not checked against factors with faults. One that
    names what overrides have removed is no fault: it is then resolved over the cells of the file as written.
    """
    tables = diagnostics.tables(TABLE)
    if tables and diagnostics.has_search:
        diagnostics.report_error((TABLE,), "a claim compares the cells of a grid; a search has none")
        return ()
    scopes = _scopes(diagnostics, design, metrics) if tables else [None]
    claims: list[Claim] = []
    names: set[str] = set()
    for index, table in enumerate(tables):
        path = (TABLE, index)
        spec = diagnostics.validate(ClaimSpec, path, table)
        if spec is None:
            continue
        if spec.name in names:
            diagnostics.report_error((*path, "name"), f"the name '{spec.name}' is taken by another claim")
        names.add(spec.name)
        claim = _read(diagnostics, (*path, "holds"), spec, scopes)
        if claim is not None:
            claims.append(claim)
    return tuple(claims)


def _read(
    diagnostics: Diagnostics, path: KeyPath, spec: ClaimSpec, scopes: Sequence[Scope | None]
) -> Claim | None:
    """One claim in the first scope that has all that it names; if none has, its faults in the last one."""
    for scope in scopes:
        faults = FaultCollector(spec.holds)
        said = parse_claim(spec.holds, faults)
        statement = resolve_claim(ClaimContext(scope=scope, faults=faults), said) if scope else None
        if scope and statement:
            return Claim(
                spec=spec,
                statement=statement,
                varied_factors={name: levels for name, levels in scope.factors.items() if len(levels) > 1},
                dependent_factors=scope.dependent_factors(),
            )
        if scope is scopes[-1]:
            for fault in faults:
                within = (fault.start, max(fault.end, fault.start + 1))
                diagnostics.report_error(path, fault.message, within=within)
    return None


def _scopes(
    diagnostics: Diagnostics, design: Design, metrics: Mapping[str, Metric]
) -> Sequence[Scope | None]:
    """Of the study, then of the file as written; None alone where the factors or the cells have faults."""
    if any(path[0] in ("factors", "cells") for path in diagnostics.invalid):
        return [None]
    designs = [each for each in (design, design.as_written) if each is not None]
    sound = [each for each in designs if all(each.factors.values()) and each.count() <= MAX_TRIALS]
    return [claim_scope(each, metrics) for each in sound] or [None]
