"""[[claim]]: every claim of a study file read, written out over the study's cells, and its faults told."""

from __future__ import annotations

from collections.abc import Mapping

from ...grammar.faults import Faults
from ..design import Design
from ..grid import MOST_TRIALS
from ..measures import MEASURES
from ..metrics import Metric
from ..report import Report
from ..wording import ProblemsError, checked, shown
from .claim import Claim, ClaimSpec
from .context import Context
from .grounding import ground
from .parser import read
from .scope import Scope, scope
from .statements import Absent, Comparison, Constant

TABLE = "claim"

_NOTHING_LEFT = Comparison(Absent("what it speaks of"), "==", Constant(0.0))  # after an override


def read_claims(
    report: Report, design: Design, metrics: Mapping[str, Metric] = MEASURES
) -> tuple[Claim, ...]:
    """Every claim of a study in the order of the file; what is wrong with one is noted, and it is left out.

    `metrics` are those that a claim may name. Nothing is held against factors that have faults of their own.
    Levels that a claim names and that an override has taken away are no faults: the claim stays, and is
    undecided.
    """
    tables = report.document.data.get(TABLE, [])
    if not isinstance(tables, list):
        report.note((TABLE,), f"expected [[claim]], got {shown(tables)}")
        return ()
    if tables and "search" in report.document.data:
        report.note((TABLE,), "a claim compares the cells of a grid; a search has none")
        return ()
    known = _scope(report, design, metrics) if tables else None
    claims: list[Claim] = []
    names: set[str] = set()
    for index, table in enumerate(tables):
        path = (TABLE, index)
        try:
            spec = checked(ClaimSpec, table)
        except ProblemsError as error:
            report.note_all(path, error)
            continue
        if spec.name in names:
            report.note((*path, "name"), f"the name '{spec.name}' is taken by another claim")
        names.add(spec.name)
        claim = _read(report, (*path, "holds"), spec, known)
        if claim is not None:
            claims.append(claim)
    return tuple(claims)


def _read(report: Report, path: tuple[str | int, ...], spec: ClaimSpec, known: Scope | None) -> Claim | None:
    """One claim; its faults are noted where they stand."""
    faults = Faults(spec.holds)
    said = read(spec.holds, faults)
    statement = ground(Context(scope=known, faults=faults), said) if known else None
    for fault in faults:
        report.note(path, fault.message, within=(fault.start, max(fault.end, fault.start + 1)))
    if known is None or faults:
        return None
    varied = {factor: levels for factor, levels in known.factors.items() if len(levels) > 1}
    return Claim(spec=spec, statement=statement or _NOTHING_LEFT, varied=varied, following=known.following())


def _scope(report: Report, design: Design, metrics: Mapping[str, Metric]) -> Scope | None:
    """What claims are held against; None where the factors or the cells are not what they should be."""
    spoiled = any(path[0] in ("factors", "cells") for path in report.spoiled)
    if spoiled or not all(design.factors.values()) or design.count() > MOST_TRIALS:
        return None
    return scope(design, metrics)
