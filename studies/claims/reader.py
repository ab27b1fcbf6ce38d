"""[[claim]]: reads every claim of a study file and resolves it over the study's cells."""

from __future__ import annotations

from collections.abc import Mapping

from ...diagnostics import FaultCollector
from ..catalog.metrics import METRICS_AND_COSTS, Metric
from ..resolve.grid import MAX_TRIALS
from ..schema.design import Design
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import InvalidTableError, format_value, validate
from .comparisons import Comparison, Constant, MissingQuantity
from .context import ClaimContext
from .parser import parse_claim
from .resolver import resolve_claim
from .scope import Scope, claim_scope
from .spec import Claim, ClaimSpec

TABLE = "claim"

_UNDECIDABLE = Comparison(MissingQuantity("what it speaks of"), "==", Constant(0.0))  # after an override


def read_claims(
    diagnostics: Diagnostics, design: Design, metrics: Mapping[str, Metric] = METRICS_AND_COSTS
) -> tuple[Claim, ...]:
    """Every claim of a study in the order of the file; one with faults is left out, and they are noted.

    `metrics` are those that a claim may name. Claims are not checked against factors with faults. If an
    override has removed a level that a claim names, that is no fault: the claim stays, and is undecided.
    """
    tables = diagnostics.document.data.get(TABLE, [])
    if not isinstance(tables, list):
        diagnostics.report_error((TABLE,), f"expected [[claim]], got {format_value(tables)}")
        return ()
    if tables and "search" in diagnostics.document.data:
        diagnostics.report_error((TABLE,), "a claim compares the cells of a grid; a search has none")
        return ()
    known = _scope(diagnostics, design, metrics) if tables else None
    claims: list[Claim] = []
    names: set[str] = set()
    for index, table in enumerate(tables):
        path = (TABLE, index)
        try:
            spec = validate(ClaimSpec, table)
        except InvalidTableError as error:
            diagnostics.report_problems(path, error)
            continue
        if spec.name in names:
            diagnostics.report_error((*path, "name"), f"the name '{spec.name}' is taken by another claim")
        names.add(spec.name)
        claim = _read(diagnostics, (*path, "holds"), spec, known)
        if claim is not None:
            claims.append(claim)
    return tuple(claims)


def _read(
    diagnostics: Diagnostics, path: tuple[str | int, ...], spec: ClaimSpec, known: Scope | None
) -> Claim | None:
    """One claim; its faults are noted at their places."""
    faults = FaultCollector(spec.holds)
    said = parse_claim(spec.holds, faults)
    statement = resolve_claim(ClaimContext(scope=known, faults=faults), said) if known else None
    for fault in faults:
        diagnostics.report_error(path, fault.message, within=(fault.start, max(fault.end, fault.start + 1)))
    if known is None or faults:
        return None
    varied = {factor: levels for factor, levels in known.factors.items() if len(levels) > 1}
    return Claim(
        spec=spec,
        statement=statement or _UNDECIDABLE,
        varied_factors=varied,
        dependent_factors=known.dependent_factors(),
    )


def _scope(diagnostics: Diagnostics, design: Design, metrics: Mapping[str, Metric]) -> Scope | None:
    """The scope that claims are checked against; None if the factors or the cells have faults."""
    spoiled = any(path[0] in ("factors", "cells") for path in diagnostics.invalid)
    if spoiled or not all(design.factors.values()) or design.count() > MAX_TRIALS:
        return None
    return claim_scope(design, metrics)
