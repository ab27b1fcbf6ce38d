"""The metrics of a study's claims, and the settings in which the paper differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...studies.catalog.metrics import find_metric
from ...studies.claims.comparisons import iter_comparisons, iter_quantities
from ...studies.presentation.metric_words import describe_metrics
from ..provenance import overrides_sentence, stale_sentence

if TYPE_CHECKING:
    import polars as pl

    from ...studies.study import Study


def measured_sentences(study: Study) -> tuple[str, ...]:
    """Return a sentence on each metric that depends on settings, such as `loss: loss, nats a token`."""
    compared = {
        quantity: None
        for claim in study.claims
        for comparison in iter_comparisons(claim.statement)
        for quantity in iter_quantities(comparison)
    }
    cells = [dict(quantity.cell) for quantity in compared]
    settings = [
        trial.settings
        for trial in study.cells
        if any(all(trial.levels.get(name) == level for name, level in cell.items()) for cell in cells)
    ]
    metrics = [find_metric(name) for name in dict.fromkeys(quantity.metric for quantity in compared)]
    return describe_metrics(metrics, settings)


def settings_sentences(study: Study, outcomes: pl.DataFrame) -> tuple[str, ...]:
    """Return what sets the results apart: overrides, stale trials, and settings that are not the paper's."""
    told = (
        overrides_sentence(study.overrides),
        stale_sentence(study, outcomes),
        study.source_sheet.summary(study.name) if study.paper else "",
    )
    return tuple(sentence for sentence in told if sentence)
