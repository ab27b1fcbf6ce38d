"""The metrics that a study names, and whether the trials that it shows can have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .claims.comparisons import cell_label, iter_comparisons, iter_quantities
from .claims.scope import CellKey, cell_key
from .presentation.selection import is_selected
from .schema.epoch_metrics import missing_metric
from .schema.factors import SEED
from .schema.settings import TrialSettings
from .text.document import Diagnostics
from .text.toml_positions import KeyPath

if TYPE_CHECKING:
    from .resolve.trial import Trial
    from .study import Study


def check_metrics(diagnostics: Diagnostics, study: Study) -> None:
    """Report each metric that the trials of its place can never have, with the key that would bring it.

    A table or a figure needs one selected trial that can have it, a claim each cell that it names, a path
    each of its cells.
    """
    trials = study.boundary_trials() if study.search else [*study.cells, *study.over_budget]
    for kind, specs in (("table", study.tables), ("curve", study.curves)):
        for index, spec in enumerate(specs):
            select = getattr(spec, "select", {})
            for key, name in spec.named_metrics():
                shown = (each.settings for each in trials if is_selected(select, each.levels))
                if fault := missing_metric(name, shown):
                    diagnostics.report((kind, index, *key), fault)
    if study.design.metric:
        for each in trials:
            if fault := missing_metric(study.design.metric, [each.settings]):
                diagnostics.report(("study", "metric"), fault)
                break
    _check_claims(diagnostics, study, trials)


def _check_claims(diagnostics: Diagnostics, study: Study, trials: list[Trial]) -> None:
    if not study.claims:
        return
    cells: dict[CellKey, TrialSettings] = {
        cell_key((name, level) for name, level in each.levels.items() if name != SEED): each.settings
        for each in trials
    }
    texts = [table.get("holds") for table in diagnostics.tables("claim")]
    met = set[tuple[str, str]]()
    for claim in study.claims:
        for comparison in iter_comparisons(claim.statement):
            for quantity in iter_quantities(comparison):
                settings = cells.get(cell_key(quantity.cell))  # None for a cell that overrides removed
                fault = missing_metric(quantity.metric, [settings]) if settings else ""
                if fault and (claim.spec.holds, fault) not in met:
                    met.add((claim.spec.holds, fault))
                    path: KeyPath = ("claim", texts.index(claim.spec.holds), "holds")
                    diagnostics.report(path, f"{cell_label(quantity.cell)}: {fault}")
