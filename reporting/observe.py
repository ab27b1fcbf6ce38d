"""The values of a study's trials, which tables, figures, laws and claims group.

Figures of a metric over time or over its index read the stored history instead, for the same trials. The
points of a search are read by `studies/searches/points.py`. The rules are:

- All seeds of the file count, and those of later seeds that have been trained (`max_seeds`). Other seeds do
  not count.
- A training that diverged is worse than any value. One that failed, for example for lack of memory, says
  nothing of its model, so no claim is decided by it. Tables show the mean over the others in brackets; it is
  neither compared nor bold.
- Levels are picked, or averaged over, once all of them have run. Later seeds do not change the choice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import polars as pl

from ..studies.catalog.metrics import ANALYTIC_COSTS, MODEL_COSTS, find_metric
from ..studies.planning.final_values import ValueStatus, cost_per_epoch, smallest_step, trial_values
from ..studies.planning.reused_trials import find_stale_trials
from ..studies.resolve.costs import counted_cost
from ..studies.resolve.trial import Trial
from ..studies.schema.factors import SEED
from ..studies.schema.settings import Level
from ..studies.study import Study
from .statistics.estimates import mean

KeyT = TypeVar("KeyT", bound=Hashable)

BROKEN = (ValueStatus.DIVERGED, ValueStatus.FAILED)
"""The statuses of trainings without a result. A mean that lacks one of them is neither compared nor bold."""

UNTRAINED = (ValueStatus.MISSING, ValueStatus.BEGUN, ValueStatus.PENDING, ValueStatus.INCOMPLETE)
"""The statuses of trials that may still get a value."""

_STALE = "not run, but stored for another version of the code (study run --keep-stale reuses it)"
"""Why a trial has no value whose plug-in was edited after it ended."""


def counted_trials(study: Study, outcomes: pl.DataFrame) -> tuple[Trial, ...]:
    """Return the trial of every cell and seed that counts: those of the file, and trained later seeds."""
    grown = study.with_later_seeds()
    if grown is study:
        return study.cells
    ended = set(outcomes["trial"])
    return (*study.cells, *(trial for trial in grown.cells[len(study.cells) :] if trial.id in ended))


def counted_levels(study: Study, trials: Collection[Trial]) -> Mapping[str, tuple[Level, ...]]:
    """Return the levels of every factor, with the later seeds among these trials."""
    if not study.later_seeds:
        return study.factors
    later = sorted({trial.seed for trial in trials}.difference(study.seeds).intersection(study.later_seeds))
    return {**study.factors, SEED: (*study.factors[SEED], *later)}


def observe(
    study: Study,
    trials: Sequence[Trial],
    outcomes: pl.DataFrame,
    metric: str,
    *,
    metrics: pl.DataFrame | None = None,
    begun: Collection[str] = (),
    digits: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """Return the value of a metric for each of these trials, in their order.

    The columns are `trial`, `seed`, `value`, `status` (a ValueStatus), `why` (why there is no value) and
    `step` (the smallest difference of two values, 0 for a computed cost). `outcomes` are the store's latest
    attempts; for a metric with an index, the last value in the history `metrics` comes first. `begun` are
    trials with a checkpoint, and `digits` are the decimals in which a table shows metrics. A cost that
    follows from the settings is counted where nothing was trained. The value of a censored trial is its cost
    up to its last evaluation.
    """
    ids = [trial.id for trial in trials]
    if study.runs is not None:
        return study.runs.observe(study, ids, metric)
    found = trial_values(study.name, ids, outcomes, metric, metrics=metrics, begun=begun)
    found = found.with_columns(seed=pl.Series([trial.seed for trial in trials], dtype=pl.Int64))
    if metric in ANALYTIC_COSTS:
        return _with_counted(found, trials, metric).with_columns(step=pl.lit(0.0))
    missing = found["status"] == ValueStatus.MISSING
    if missing.any() and any(trial.common.code for trial in trials):
        stale = pl.col("trial").is_in(list(find_stale_trials(study, outcomes)))
        found = found.with_columns(why=pl.when(missing & stale).then(pl.lit(_STALE)).otherwise("why"))
    known, per_epoch = find_metric(metric, digits or {}), cost_per_epoch(metric, outcomes)
    largest = max(map(abs, filter(math.isfinite, found["value"].drop_nulls())), default=0.0)
    if not per_epoch and not known.steps_with_curriculum:
        return found.with_columns(step=pl.lit(smallest_step(known, None, largest=largest)))
    same = {id(trial.common): trial.common for trial in trials}  # the same for the seeds of a cell
    steps = {key: smallest_step(known, settings, largest=largest) for key, settings in same.items()}
    each = [per_epoch.get(trial.id, steps[id(trial.common)]) for trial in trials]
    return found.with_columns(step=pl.Series(each, dtype=pl.Float64))


def _with_counted(found: pl.DataFrame, trials: Sequence[Trial], cost: str) -> pl.DataFrame:
    """Give untrained and failed trials the value of a cost that can be counted from their settings."""
    uncounted = (ValueStatus.MISSING, ValueStatus.BEGUN)
    uncounted = (*uncounted, ValueStatus.FAILED) if cost in MODEL_COSTS else uncounted
    counted = pl.Series(
        [
            counted_cost(cost, trial.settings) if status in uncounted else None
            for trial, status in zip(trials, found["status"], strict=True)
        ],
        dtype=pl.Float64,
    )
    has_count = counted.is_not_null()
    return found.with_columns(
        value=pl.coalesce(counted, "value"),
        status=pl.when(has_count).then(pl.lit(ValueStatus.DONE)).otherwise("status"),
        why=pl.when(has_count).then(pl.lit("")).otherwise("why"),
    )


def broken_words(statuses: Iterable[str], trials: int) -> str:
    """Return a text such as `2 of 4 diverged`, or `2 of 4 diverged, 1 failed`; "" if none did."""
    counts = Counter(statuses)
    parts = [f"{counts[each]} {each.text}" for each in BROKEN if counts[each]]
    return ", ".join(parts).replace(" ", f" of {trials} ", 1)


def best_levels(
    metric: str, levels: Mapping[KeyT, Iterable[tuple[str, float | None]]], *, is_judged: bool
) -> list[KeyT] | None:
    """Return the levels with the best mean, in their order: several if they tie.

    Each level has the status and the value of its trials. Return None while a trial may still get a value.
    Among judged runs of other programs, a failed one may be anything, so that no level is the best. A level
    with a trial that ended without a value is worse than those without. If all levels are so, those with the
    most values are compared, and all tie if there is no value.
    """
    waits = (*UNTRAINED, ValueStatus.FAILED) if is_judged else UNTRAINED
    sign, values = 1 if find_metric(metric).higher_is_better else -1, dict[KeyT, list[float]]()
    lacking = dict[KeyT, int]()
    for key, trials in levels.items():
        found = list(trials)
        if any(status in waits for status, _ in found):
            return None
        values[key] = [value for status, value in found if status == ValueStatus.DONE and value is not None]
        lacking[key] = len(found) - len(values[key])
    least = min(lacking.values(), default=0)
    means = {
        key: sign * mean(each) if each else -math.inf for key, each in values.items() if lacking[key] == least
    }
    best = max(means.values(), default=0.0)
    return [key for key, each in means.items() if each == best or math.isclose(each, best)]
