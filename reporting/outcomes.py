"""The store's latest attempts, with every value that the tables, figures and claims of studies show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import polars as pl

from ..storage import Store
from ..studies.catalog.metrics import METRICS_AND_COSTS, PROBED_METRIC, TUNED_METRIC, metric_family
from ..studies.claims.comparisons import iter_comparisons, iter_quantities
from ..studies.planning.status import study_outcomes
from ..studies.planning.trial_values import ValueStatus, ignorant_losses, may_diverge, tell_divergence
from ..studies.study import Study


def load_outcomes(store: Store, *studies: Study) -> pl.DataFrame:
    """Return the latest attempts; the probes that these studies name follow a trial's final metrics.

    With probes come the metrics that tell which models were probed and tuned. The column DIVERGED tells which
    of the studies' trainings diverged, those with added seeds among them.
    """
    judged = [study.with_later_seeds() if study.max_seeds else study for study in studies]
    return mark_divergence(
        store.trials(named_metrics(*studies)), partial(store.metric_course, "loss"), *judged
    )


def mark_divergence(
    outcomes: pl.DataFrame, find_losses: Callable[[pl.DataFrame], pl.DataFrame], *studies: Study
) -> pl.DataFrame:
    """Return the latest attempts with the column DIVERGED, which tells of the studies' trainings.

    `find_losses` gives the course of the losses of some of them: the columns trial, epoch and value.
    """
    own = {trial for study in studies for trial in study_outcomes(study, outcomes)["trial"]}
    doubtful = outcomes.filter(may_diverge(), pl.col("trial").is_in(own))
    return tell_divergence(outcomes, find_losses(doubtful), ignorant_losses(doubtful))


def named_metrics(*studies: Study) -> set[str]:
    """Return the metrics that these studies name, with those that describe probes if one is a probe."""
    named = {name for study in studies for name in _iter_metric_names(study)}
    known = (METRICS_AND_COSTS.get(metric_family(name)) for name in named)
    probed = any(metric is not None and metric.is_probe for metric in known)
    return named | {PROBED_METRIC, TUNED_METRIC} if probed else named


def _iter_metric_names(study: Study) -> Iterator[str]:
    for spec in (*study.tables, *study.curves):
        yield from (name for _, name in spec.named_metrics())
    for claim in study.claims:
        for comparison in iter_comparisons(claim.statement):
            yield from (quantity.metric for quantity in iter_quantities(comparison))


def omitted_trials(gaps: Counter[str], trials: int, probe: str) -> Iterator[str]:
    """Yield how many trials have no value, by status, and why; `probe` is the command that measures more."""
    kinds = {
        ValueStatus.INFINITE: "infinite",
        ValueStatus.FAILED: "failed",
        ValueStatus.DIVERGED: "diverged",
        ValueStatus.PRUNED: "stopped early",
        ValueStatus.INCOMPLETE: "incomplete, as their metrics are lost",
        ValueStatus.NO_VALUE: "without a finite value",
        ValueStatus.PENDING: f"not probed yet ({probe})",
        ValueStatus.MISSING: "not run",
    }
    omitted = [f"{gaps[status]} {what}" for status, what in kinds.items() if gaps[status]]
    if omitted:
        yield f"Left out of {trials} trials: {', '.join(omitted)}."
