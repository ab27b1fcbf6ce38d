"""Check of the metrics that a study names: whether the trials shown can have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .claims.comparisons import Claim, cell_label, iter_comparisons, iter_quantities
from .claims.scope import CellKey, cell_key
from .presentation.selection import is_selected
from .resolve.resolve import InvalidSettingsError, resolve_settings
from .resolve.template import Template
from .resolve.trial import Trial
from .schema.design import Design
from .schema.epoch_metrics import missing_metric, spending_fault
from .schema.factors import SEED
from .schema.settings import TrialSettings
from .text.document import Diagnostics
from .text.strict_model import InvalidTableError
from .text.toml_positions import KeyPath

if TYPE_CHECKING:
    from .presentation.kinds import CurveKind, TableKind
    from .study import Study


class Shown(NamedTuple):
    """What a study shows of its results, as far as it has no faults of its own."""

    tables: Sequence[TableKind]
    curves: Sequence[CurveKind]
    claims: Sequence[Claim]


MAX_TRIED = 200
"""The most cells of a study with other faults whose settings are made to check its metrics."""


def check_metrics(diagnostics: Diagnostics, study: Study) -> None:
    """Report each metric that its trials can never have, with the key that would add it.

    A table or a figure needs one selected trial that can have it, a claim each cell that it names, a path
    each of its cells.
    """
    trials = study.boundary_trials() if study.search else [*study.cells, *study.over_budget]
    _check(diagnostics, study.design, Shown(study.tables, study.curves, study.claims), trials)


def check_metrics_beside_faults(
    diagnostics: Diagnostics, template: Template, design: Design, shown: Shown
) -> None:
    """Do the same for a grid with other faults, if these leave no doubt which metrics its trials have."""
    if diagnostics.invalid or design.count() > MAX_TRIED * len(design.factors[SEED]):
        return
    size = {design.matched_size.name: design.matched_size.size} if design.matched_size else {}
    trials: list[Trial] = []
    for levels in design.cells():
        if levels[SEED] != design.factors[SEED][0]:
            continue
        try:
            settings = resolve_settings(template, {**levels, **size})
        except InvalidSettingsError as error:
            settings = error.known
        except InvalidTableError:
            return
        if settings is None:
            return
        trials.append(Trial(study="", levels=levels, settings=settings))
    _check(diagnostics, design, shown, trials)


def _check(diagnostics: Diagnostics, design: Design, shown: Shown, trials: Sequence[Trial]) -> None:
    for kind, specs in (("table", shown.tables), ("curve", shown.curves)):
        for index, spec in enumerate(specs):
            select = getattr(spec, "select", {})
            for key, name in spec.named_metrics():
                selected = (each.settings for each in trials if is_selected(select, each.levels))
                if fault := missing_metric(name, selected):
                    diagnostics.report((kind, index, *key), fault)
            axis = getattr(spec, "x", "") if spec.kind == "line" else ""
            selected = (each.settings for each in trials if is_selected(select, each.levels))
            if fault := spending_fault(axis, selected):
                diagnostics.report((kind, index, "x"), fault)
    if design.metric:
        for each in trials:
            if fault := missing_metric(design.metric, [each.settings]):
                diagnostics.report(("study", "metric"), fault)
                break
    _check_claims(diagnostics, shown.claims, trials)


def _check_claims(diagnostics: Diagnostics, claims: Sequence[Claim], trials: Sequence[Trial]) -> None:
    if not claims:
        return
    cells: dict[CellKey, TrialSettings] = {
        cell_key((name, level) for name, level in each.levels.items() if name != SEED): each.settings
        for each in trials
    }
    texts = [table.get("holds") for table in diagnostics.tables("claim")]
    met = set[tuple[str, str]]()
    for claim in claims:
        for comparison in iter_comparisons(claim.statement):
            for quantity in iter_quantities(comparison):
                settings = cells.get(cell_key(quantity.cell))  # None for a cell that overrides removed
                fault = missing_metric(quantity.metric, [settings]) if settings else ""
                if fault and (claim.spec.holds, fault) not in met:
                    met.add((claim.spec.holds, fault))
                    path: KeyPath = ("claim", texts.index(claim.spec.holds), "holds")
                    diagnostics.report(path, f"{cell_label(quantity.cell)}: {fault}")
