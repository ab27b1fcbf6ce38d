"""Which trained models wait for a probe before a metric of theirs is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from ..studies.catalog.metrics import METRICS_AND_COSTS, PROBED_METRIC, find_metric, metric_family
from ..studies.claims.comparisons import iter_comparisons, iter_quantities
from ..studies.planning.probe_targets import encoder_arguments
from ..studies.resolve.trial import Trial
from ..studies.study import Study


def unprobed_trials(trials: Iterable[Trial], outcomes: pl.DataFrame, metric: str) -> frozenset[str]:
    """The ids of the trials that are done, could be probed for a metric, and never were.

    `outcomes` are the store's latest attempts with what `wanted` names; none for what trials report.
    """
    if not find_metric(metric).is_probe:
        return frozenset()
    done = outcomes.filter(pl.col("status") == "done").select("trial", "metrics")
    names = done.explode("metrics").unnest("metrics")
    probed = set(names.filter(pl.col("name") == PROBED_METRIC)["trial"])
    waiting = set(done["trial"]) - probed
    return frozenset(
        trial.id for trial in trials if trial.id in waiting and encoder_arguments(trial.settings) is not None
    )


def displayed_metrics(studies: Iterable[Study]) -> frozenset[str]:
    """The metrics that tables, figures and claims name, a family by its own name.

    With those of probes comes the one that tells which models were probed.
    """
    named = frozenset(name for study in studies for name in _iter_metric_names(study))
    probes = any(
        metric_family(name) in METRICS_AND_COSTS and METRICS_AND_COSTS[metric_family(name)].is_probe
        for name in named
    )
    return named | {PROBED_METRIC} if probes else named


def _iter_metric_names(study: Study) -> Iterator[str]:
    for spec in study.tables:
        yield from spec.value
        yield from [spec.otherwise] if spec.otherwise else []
    for spec in study.curves:
        yield from (spec.value, spec.x)
    for claim in study.claims:
        for comparison in iter_comparisons(claim.statement):
            for side in (comparison.left, comparison.right):
                yield from (quantity.metric for quantity in iter_quantities(side))
