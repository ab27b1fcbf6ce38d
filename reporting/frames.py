"""Rows of the store as frames for analysis, with a column for each factor and each final metric."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from ..storage.rows import METRICS as METRIC_COLUMNS
from ..storage.rows import TRIALS as TRIAL_COLUMNS
from ..studies.catalog.metrics import METRICS
from ..studies.planning.status import study_outcomes
from ..studies.planning.trial_values import final_value, trial_values
from ..studies.schema.factors import ABSENT, SEED, level_text
from ..studies.schema.settings import Level
from ..studies.study import Study

_SHARED_FACTORS = ("task", SEED)
"""Factors that already have a column in the store, with the same values."""

_RESERVED_COLUMNS = {*TRIAL_COLUMNS, *METRIC_COLUMNS, *METRICS}.difference(_SHARED_FACTORS)

_INT64_LIMIT = 2**63  # integers below this fit a column


def value_frame(
    study: str,
    trials: Sequence[str],
    outcomes: pl.DataFrame,
    names: Iterable[str],
    *,
    history: pl.DataFrame | None = None,
    begun: Collection[str] = (),
) -> pl.DataFrame:
    """Return the tidy frame of trials and metrics: the columns metric, trial, seed, value, status and why.

    Tables and figures are made of such rows, one for each trial and metric. A trial that is given twice has
    two. `history` are the stored metrics; their last values are used for indexed metrics. `begun` are trials
    with a checkpoint.
    """
    given = pl.DataFrame({"trial": trials}, schema={"trial": pl.String})
    frames = (
        given.join(
            trial_values(study, trials, outcomes, name, metrics=history, begun=begun),
            on="trial",
            how="left",
            maintain_order="left",
        ).select(pl.lit(name).alias("metric"), "trial", "seed", "value", "status", "why")
        for name in dict.fromkeys(names)
    )
    return pl.concat(frames)


def final_values(outcomes: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Return the final values of metrics or costs, a row for each outcome and a column for each name."""
    return outcomes.select("trial", *(final_value(name).alias(name) for name in dict.fromkeys(names)))


def levels_frame(cells: Sequence[tuple[str, Mapping[str, Level]]]) -> pl.DataFrame:
    """Return the column `trial` and one for each factor, a row for each trial's id and levels.

    A factor is a column of numbers or booleans if all of its levels are, else of text; it is null where a
    cell lacks the factor. It is called `factor_NAME` if the store or a metric uses its name.
    """
    names = dict.fromkeys(name for _, levels in cells for name in levels)
    columns = {
        factor_column(name): _column([_present(levels.get(name)) for _, levels in cells]) for name in names
    }
    return pl.DataFrame({"trial": pl.Series([trial for trial, _ in cells], dtype=pl.String), **columns})


def stored_levels(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return the levels of all stored trials, from their rows, for every study."""
    cells = outcomes.select("trial", "factors").iter_rows()
    return levels_frame([(trial, json.loads(factors)) for trial, factors in cells])


def study_levels(study: Study, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return the levels of a study's trials, a row for each cell and seed."""
    if study.search is not None:
        return stored_levels(study_outcomes(study, outcomes))
    return levels_frame([(trial.id, trial.levels) for trial in study.cells])


def factor_column(factor: str) -> str:
    """Return the name of a factor's column."""
    return f"factor_{factor}" if factor in _RESERVED_COLUMNS else factor


def trials_frame(outcomes: pl.DataFrame, levels: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each row of `levels` whose trial has an outcome: levels, status and metrics."""
    known = metric_names(outcomes)
    names = [name for name in METRICS if name in known or not known] + sorted(known.difference(METRICS))
    measured = final_values(outcomes, names)
    factors = levels.columns[1:]
    first = ("trial", "study", *factors, "status", "reason", *names)
    rest = [name for name in TRIAL_COLUMNS if name not in ("metrics", *first)]
    return (
        levels.drop(_SHARED_FACTORS, strict=False)
        .join(outcomes.drop("metrics"), on="trial", maintain_order="left")
        .join(measured, on="trial", how="left", maintain_order="left")
        .select(*first, *rest)
    )


def metrics_frame(metrics: pl.LazyFrame, levels: pl.DataFrame) -> pl.LazyFrame:
    """Return the metrics over time in long form, each row with the levels of its trial's cell."""
    return (
        levels.lazy()
        .join(metrics.drop("attempt"), on="trial", maintain_order="left_right")
        .select("trial", *levels.columns[1:], "epoch", "step", "name", "value")
    )


def metric_names(outcomes: pl.DataFrame) -> set[str]:
    """Return the names of the metrics of any outcome."""
    return set(outcomes["metrics"].explode().struct.field("name").drop_nulls())


def _present(level: Level | None) -> Level | None:
    return None if level == ABSENT else level


def _column(levels: Sequence[Level | None]) -> pl.Series:
    """Return one factor's levels in the narrowest type that holds all of them."""
    kinds = {type(level) for level in levels if level is not None}
    if kinds == {bool}:
        return pl.Series(levels, dtype=pl.Boolean)
    if kinds == {int} and all(
        level is None or -_INT64_LIMIT <= int(level) < _INT64_LIMIT for level in levels
    ):
        return pl.Series(levels, dtype=pl.Int64)
    if float in kinds and kinds <= {int, float}:
        return pl.Series([None if level is None else float(level) for level in levels], dtype=pl.Float64)
    return pl.Series([None if level is None else level_text(level) for level in levels], dtype=pl.String)
