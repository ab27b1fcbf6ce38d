"""Reader of the claims of a study, of the cells to which settings were fitted, and of a paper's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from ...errors import FaultCollector, nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, NEEDS_PICK_BY, pick_faults
from ..resolve.trial import CellKey, Trial, cell_key
from ..schema.design import MAX_TRIALS, Design
from ..schema.factors import SEED, level_text, one_line
from ..schema.reported_metrics import missing_metric
from ..schema.source_sheet import TABLE as SOURCE
from ..text.document import Diagnostics
from ..text.toml_positions import KeyPath
from .comparisons import (
    Cell,
    Claim,
    ClaimSpec,
    FittedSetting,
    Quotient,
    SignedSum,
    Speedup,
    Statement,
    cell_label,
    replace_comparisons,
    split_extremes,
)
from .resolver import resolve_cells, resolve_claim, resolve_number
from .scope import Scope, claim_scope

TABLE = "claim"


def read_claims(diagnostics: Diagnostics, design: Design) -> tuple[Claim, ...]:
    """Return all valid claims of a study, in file order.

    Faulty claims are reported. Claims are not checked against faulty factors. A claim about levels that
    overrides have removed is not a fault: it is then resolved over the cells of the file as written.
    """
    tables = diagnostics.tables(TABLE)
    if tables and diagnostics.has_search:
        diagnostics.report(
            (TABLE,), "a claim needs the cells of a grid, but this study is a search: remove the claim"
        )
        return ()
    scopes = _scopes(diagnostics, design) if tables else []
    claims, names = list[Claim](), set[str]()
    for index, table in enumerate(tables):
        path = (TABLE, index)
        if (spec := diagnostics.validate(ClaimSpec, path, table)) is None:
            continue
        if spec.name in names:
            diagnostics.report((*path, "name"), f"the name '{spec.name}' is taken by another claim")
        names.add(spec.name)
        wrong = list(key_faults(spec, scopes[0].factors if scopes else None))
        for key, message in wrong:
            diagnostics.report((*path, key), message)
        faults, found = FaultCollector(spec.holds), list[Claim]()
        for scope in scopes if not wrong else ():
            faults = FaultCollector(spec.holds)  # only those of the last scope are reported
            if found := _resolve(spec, scope, faults):
                break
        for fault in faults if not found else ():
            within = (fault.start, max(fault.end, fault.start + 1))
            diagnostics.report((*path, "holds"), fault.message, within=within)
        claims += found
    return tuple(claims)


def read_fitted(
    diagnostics: Diagnostics, design: Design, details: Mapping[KeyPath, str]
) -> tuple[FittedSetting, ...]:
    """Return the settings that were fitted to cells of a study, from entries of [source] by their place.

    Report cells that are not in the study. As for claims, overrides may remove a cell.
    """
    if details and diagnostics.has_search:
        for path in details:
            diagnostics.report(
                (SOURCE, *path), "a search has no cells to which a setting is fitted: write 'ours: …'"
            )
        return ()
    scopes, found = _scopes(diagnostics, design) if details else [], list[FittedSetting]()
    for path, detail in details.items():
        faults, cells = FaultCollector(detail), None
        for scope in scopes:
            faults = FaultCollector(detail)  # only those of the last scope are reported
            if cells := resolve_cells(scope, faults, detail):
                found.append(FittedSetting(name=".".join(map(str, path)), cells=cells))
                break
        for fault in faults if cells is None else ():
            start = len("fitted: ")
            within = (start + fault.start, start + max(fault.end, fault.start + 1))
            diagnostics.report((SOURCE, *path), fault.message, within=within)
    return tuple(found)


def _scopes(diagnostics: Diagnostics, design: Design) -> list[Scope]:
    """Return the scopes in which the names in claims are looked up, in this order.

    The first scope is the study's. If overrides have changed the levels, the second scope is that of the
    unchanged file, so that a claim about removed levels is not a fault. There are none if factors or cells
    are faulty.
    """
    if any(path[0] in ("factors", "cells") for path in diagnostics.invalid):
        return []
    designs = [each for each in (design, design.as_written) if each is not None]
    sound = [each for each in designs if all(each.factors.values()) and each.count() <= MAX_TRIALS]
    return [claim_scope(each, METRICS_AND_COSTS) for each in sound]


def key_faults(spec: ClaimSpec, factors: Iterable[str] | None) -> Iterator[tuple[str, str]]:
    """Yield the faults of `over`, `pick_by` and `each`, with their keys. `factors` is None if unknown."""
    if spec.over and spec.pick_by is None:
        yield "over", NEEDS_PICK_BY
    for message in pick_faults(spec.pick_by, spec.over):
        yield "pick_by", message
    if factors is None:
        return
    for name in spec.over:
        if name == SEED:
            yield "over", "remove the seed: cells are compared seed by seed"
        elif name == spec.each:
            yield "over", f"expected another factor than that of each, got '{name}'"
        elif name not in factors:
            yield "over", f"unknown factor '{name}'{nearest_hint(name, factors)}"
    if spec.each is not None and spec.each not in factors:
        yield "each", f"unknown factor '{spec.each}'{nearest_hint(spec.each, factors)}"


def _resolve(spec: ClaimSpec, scope: Scope, faults: FaultCollector) -> list[Claim]:
    """Resolve a `[[claim]]` table to claims about the cells of a scope. There are none after a fault.

    With `each`, there is one claim for each level of that factor, over the cells with this level. A level
    without cells, such as one left out by sampling, is skipped.
    """
    named, factor = [(spec.name, scope)], spec.each
    if factor is not None:
        named = [
            (f"at {factor}={one_line(level_text(level))}: {spec.name}", within)
            for level in scope.factors[factor]
            if (within := scope.at_level(factor, level)).cells
        ]
    claims: list[Claim] = []
    for name, within in named:
        if (statement := resolve_claim(within, faults, spec)) is None:
            return []
        statement = replace_comparisons(statement, split_extremes)
        claims.append(_claim(spec.model_copy(update={"name": name}), statement, scope))
    return claims


def _claim(spec: ClaimSpec, statement: Statement, scope: Scope) -> Claim:
    return Claim(
        spec=spec,
        statement=statement,
        varied_factors={name: levels for name, levels in scope.factors.items() if len(levels) > 1},
        dependent_factors=scope.dependent_factors,
    )


def read_number(spec: ClaimSpec, scope: Scope, faults: FaultCollector) -> Claim | None:
    """Convert an expression to a claim whose test estimates the value of the expression.

    The expression, `spec.holds`, is one side of a claim's comparison: `loss[mixer=sa] - loss[mixer=ssd]`, or
    a speedup. One that compares nothing, such as `loss[mixer=sa]`, uses the seeds of the last look. Report
    faults and return None if it is invalid.
    """
    if (found := resolve_number(scope, faults, spec)) is None:
        return None
    alone = not isinstance(found.left, (SignedSum, Quotient, Speedup))
    return replace(_claim(spec, found, scope), uses_last_look=alone)


def check_claimed_metrics(diagnostics: Diagnostics, claims: Sequence[Claim], trials: Sequence[Trial]) -> None:
    """Report claims about a metric that a cell can never have, and name the key that would add it."""
    first = dict[tuple[str, str], Cell]()
    places = {table.get("holds"): at for at, table in reversed([*enumerate(diagnostics.tables(TABLE))])}
    for claim, cell, fault in missing_metrics(claims, trials):
        first.setdefault((claim.spec.holds, fault), cell)
    for (text, fault), cell in first.items():
        diagnostics.report((TABLE, places[text], "holds"), f"{cell_label(cell)}: {fault}")


def missing_metrics(claims: Sequence[Claim], trials: Sequence[Trial]) -> Iterator[tuple[Claim, Cell, str]]:
    """Yield the claims about a metric that a cell can never have, with this cell.

    Each item is the claim, the cell, and the reason why the metric cannot exist.
    """
    cells = {each.cell: each.settings for each in trials}

    @cache
    def fault_of(metric: str, cell: CellKey) -> str:
        return missing_metric(metric, [cells[cell]]) if cell in cells else ""  # overrides may have removed it

    for claim in claims:
        for quantity in claim.quantities:
            if fault := fault_of(quantity.metric, cell_key(quantity.cell)):
                yield claim, quantity.cell, fault
