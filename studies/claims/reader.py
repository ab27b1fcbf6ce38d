"""Reader of [[claim]]: it reads every claim of a study file and resolves it over the study's cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...diagnostics import FaultCollector, nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, Metric
from ..resolve.grid import MAX_TRIALS
from ..schema.design import Design
from ..schema.level_names import level_text, one_line
from ..text.document import Diagnostics
from ..text.toml_positions import KeyPath
from .comparisons import Claim, ClaimSpec
from .parser import parse_claim
from .resolver import resolve_claim
from .scope import Scope, claim_scope
from .syntax_tree import SyntaxNode

TABLE = "claim"


def read_claims(
    diagnostics: Diagnostics, design: Design, metrics: Mapping[str, Metric] = METRICS_AND_COSTS
) -> tuple[Claim, ...]:
    """Return every claim of a study in file order; a faulty one is reported and left out.

    `metrics` are those that a claim may use. Claims are not checked against faulty factors. A claim about
    levels that overrides have removed is not a fault: it is then resolved over the cells of the file as
    written.
    """
    tables = diagnostics.tables(TABLE)
    if tables and diagnostics.has_search:
        diagnostics.report((TABLE,), "a claim compares the cells of a grid; a search has none")
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
            diagnostics.report((*path, "name"), f"the name '{spec.name}' is taken by another claim")
        names.add(spec.name)
        claims += _read(diagnostics, path, spec, scopes)
    return tuple(claims)


def _read(
    diagnostics: Diagnostics, path: KeyPath, spec: ClaimSpec, scopes: Sequence[Scope | None]
) -> list[Claim]:
    """Return the claims in the first scope that knows all names.

    If there is none, report the faults in the last scope.
    """
    for scope in scopes:
        faults = FaultCollector(spec.holds)
        said = parse_claim(spec.holds, faults)
        if scope is not None and spec.each is not None and spec.each not in scope.factors:
            hint = nearest_hint(spec.each, scope.factors)
            diagnostics.report((*path, "each"), f"unknown factor '{spec.each}'{hint}")
            return []
        claims = _resolve(spec, said, scope, faults) if scope else None
        if claims:
            return claims
        if scope is scopes[-1]:
            for fault in faults:
                within = (fault.start, max(fault.end, fault.start + 1))
                diagnostics.report((*path, "holds"), fault.message, within=within)
    return []


def _resolve(spec: ClaimSpec, said: SyntaxNode, scope: Scope, faults: FaultCollector) -> list[Claim] | None:
    """Return a claim in a scope, or one for each level of its factor; report faults and return None."""
    claims: list[Claim] = []
    for made, within in _at_each_level(spec, scope):
        statement = resolve_claim(within, faults, said, spec.each)
        if statement is None:
            return None
        claim = Claim(
            spec=made,
            statement=statement,
            varied_factors={name: levels for name, levels in scope.factors.items() if len(levels) > 1},
            dependent_factors=scope.dependent_factors(),
        )
        claims.append(claim)
    return claims


def _at_each_level(spec: ClaimSpec, scope: Scope) -> Iterator[tuple[ClaimSpec, Scope]]:
    """Yield a claim with its cells: all of them, or one claim for each level of its factor.

    A level without cells, such as one left out by sampling, is skipped.
    """
    factor = spec.each
    if factor is None:
        yield spec, scope
        return
    for level in scope.factors[factor]:
        within = scope.at_level(factor, level)
        if within.cells:
            name = f"at {factor}={one_line(level_text(level))}: {spec.name}"
            yield spec.model_copy(update={"name": name}), within


def _scopes(
    diagnostics: Diagnostics, design: Design, metrics: Mapping[str, Metric]
) -> Sequence[Scope | None]:
    """Return the scope of the study, then the scope of the file as written.

    Only None if factors or cells are faulty.
    """
    if any(path[0] in ("factors", "cells") for path in diagnostics.invalid):
        return [None]
    designs = [each for each in (design, design.as_written) if each is not None]
    sound = [each for each in designs if all(each.factors.values()) and each.count() <= MAX_TRIALS]
    return [claim_scope(each, metrics) for each in sound] or [None]
