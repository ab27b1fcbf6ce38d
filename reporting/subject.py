"""Data frames of trials, and the trials that one table or figure shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from ..storage.rows import METRIC_COLUMNS
from ..storage.rows import TRIALS as TRIAL_COLUMNS
from ..studies.catalog.metrics import METRICS, Metric, find_metric
from ..studies.planning.final_values import DIVERGED, ValueStatus, final_value, metric_names
from ..studies.planning.status import study_outcomes
from ..studies.presentation.kinds import describe_levels, fixed_levels, is_selected, selected_levels
from ..studies.presentation.metric_words import difference_sentence, with_true_title
from ..studies.resolve.trial import Trial, first_of_each_kind
from ..studies.schema.factors import ABSENT, SEED, level_key, level_text
from ..studies.schema.settings import Level, TrialSettings
from ..studies.study import Study
from .observe import counted_levels, counted_trials, observe
from .outcomes import omitted_trials, provenance

_SHARED_FACTORS = ("task", SEED)
"""Factors with the name and the values of a stored column; `with_task_names` moves labels of tasks."""

_RESERVED_COLUMNS = {*TRIAL_COLUMNS, *METRIC_COLUMNS, *METRICS, DIVERGED}.difference(_SHARED_FACTORS)

_INT64_LIMIT = 2**63  # integers below this fit a column


def final_values(outcomes: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Return the final values of metrics or costs: a row for each outcome, and a column for each name."""
    return outcomes.select("trial", *(final_value(name).alias(name) for name in dict.fromkeys(names)))


def levels_frame(cells: Sequence[tuple[str, Mapping[str, Level]]]) -> pl.DataFrame:
    """Return a frame with a row for each trial and a column for each factor.

    The column `trial` has the trial's id. The column of a factor has numbers or booleans if all levels are
    numbers or booleans, otherwise text. The column is null where a cell does not have the factor. The column
    is called `factor_NAME` if the store or a metric uses the name of the factor.
    """
    names = dict.fromkeys(name for _, levels in cells for name in levels)
    columns = {factor_column(name): _column([levels.get(name) for _, levels in cells]) for name in names}
    return pl.DataFrame({"trial": pl.Series([trial for trial, _ in cells], dtype=pl.String), **columns})


def stored_levels(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return the levels of all stored trials of any study, one row each."""
    cells = json.loads(f"[{','.join(outcomes['factors'])}]")  # one call is faster than one for each trial
    return levels_frame(list(zip(outcomes["trial"], cells, strict=True)))


def study_levels(study: Study, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return the levels of a study's trials: a row for each cell and seed, with those that may be added."""
    if study.search is not None:
        return stored_levels(study_outcomes(study, outcomes))
    return levels_frame([(trial.id, trial.levels) for trial in study.with_later_seeds().cells])


def with_task_names(levels: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Move labels of tasks to the column `factor_task`; `task` then has the names of the tasks."""
    if "task" not in levels.columns:
        return levels
    named = levels.join(outcomes.select("trial", name="task"), on="trial", how="left", maintain_order="left")
    if (named["task"].cast(pl.String) == named["name"]).all():
        return levels
    return named.rename({"task": "factor_task", "name": "task"})


def factor_column(factor: str) -> str:
    """Return the name of a factor's column. It is `factor_NAME` if another column can have the factor's name.

    Another column may belong to another factor, or be `factor_task`, which has labels of tasks.
    """
    bare = factor.removeprefix("factor_")
    is_taken = factor in _RESERVED_COLUMNS or (bare != factor and factor_column(bare) in (factor, "task"))
    return f"factor_{factor}" if is_taken else factor


def trials_frame(outcomes: pl.DataFrame, levels: pl.DataFrame) -> pl.DataFrame:
    """Add the status, metrics and other stored columns of each trial with an outcome to its levels."""
    known = metric_names(outcomes)
    names = [name for name in METRICS if name in known or not known] + sorted(known.difference(METRICS))
    measured = final_values(outcomes, names)
    factors = levels.columns[1:]
    marked = {DIVERGED}.intersection(outcomes.columns)
    first = ("trial", "study", *factors, "status", "reason", *marked, *names)
    rest = [name for name in TRIAL_COLUMNS if name not in ("metrics", *first)]
    return (
        levels.drop(_SHARED_FACTORS, strict=False)
        .join(outcomes.drop("metrics"), on="trial", maintain_order="left")
        .join(measured, on="trial", how="left", maintain_order="left")
        .select(*first, *rest)
    )


def metrics_frame(metrics: pl.LazyFrame, levels: pl.DataFrame) -> pl.LazyFrame:
    """Return the metrics over time with the levels of their trials: one row for each value."""
    return (
        levels.lazy()
        .join(metrics.drop("attempt"), on="trial", maintain_order="left_right")
        .select("trial", *levels.columns[1:], "epoch", "step", "name", "value")
    )


def _column(levels: Sequence[Level | None]) -> pl.Series:
    levels = [None if level == ABSENT else level for level in levels]
    # exact types, because a bool is an instance of int as well
    kinds = {type(level) for level in levels if level is not None}
    if kinds == {bool}:
        return pl.Series(levels, dtype=pl.Boolean)
    if kinds == {int} and all(
        level is None or -_INT64_LIMIT <= int(level) < _INT64_LIMIT for level in levels
    ):
        return pl.Series(levels, dtype=pl.Int64)
    if float in kinds and kinds <= {int, float}:
        return pl.Series([None if level is None else float(level) for level in levels], dtype=pl.Float64)
    # each text is made once; types keep 1, 1.0 and true apart
    keys = [(type(level), level) for level in levels]
    texts = {key: None if key[1] is None else level_text(key[1]) for key in set(keys)}
    return pl.Series([texts[key] for key in keys], dtype=pl.String)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """The values of a metric over the selected trials, each with its trial.

    `gaps` counts the trials without a value, by status, and `whys` has status and reason of each.
    """

    values: tuple[tuple[Trial, float], ...]
    gaps: Counter[str]
    whys: Mapping[str, tuple[str, str]]

    @property
    def planned(self) -> int:
        """Return the number of planned trials: the number of cells times the number of seeds."""
        return len(self.values) + self.gaps.total()


@dataclass(frozen=True)
class ResultSubject:
    """The trials that a table or figure shows. `outcomes` are the latest attempts in the store."""

    study: Study
    select: Mapping[str, Any]
    outcomes: pl.DataFrame

    @cached_property
    def trials(self) -> list[Trial]:
        """Return the trial of every selected cell and seed that counts."""
        counted = counted_trials(self.study, self.outcomes)
        return [trial for trial in counted if is_selected(self.select, trial.levels)]

    @cached_property
    def settings(self) -> list[TrialSettings]:
        """Return the settings of the selected trials, once for those that differ only in the seed."""
        return [trial.settings for trial in first_of_each_kind(self.trials)]

    @cached_property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """Return the selected levels of every factor."""
        return selected_levels(self.select, counted_levels(self.study, self.trials))

    @cached_property
    def varied(self) -> dict[str, tuple[Level, ...]]:
        """Return the factors with several levels in the selected cells. The seed is left out."""
        found = dict[str, tuple[Level, ...]]()
        for name, levels in self.levels.items():
            there = {level_key(trial.levels[name]) for trial in self.trials}
            kept = tuple(level for level in levels if level_key(level) in there)
            if name != SEED and len(kept) > 1:
                found[name] = kept
        return found

    def metric(self, name: str) -> Metric:
        """Return a metric with a title that suits these trials."""
        return with_true_title(find_metric(name), self.settings)[0]

    def observe(self, metric: str) -> Observations:
        """Return each trial's final value of a metric, and count the trials without a value."""
        frame = observe(self.study, self.trials, self.outcomes, metric)
        values, gaps, whys = list[tuple[Trial, float]](), Counter[str](), dict[str, tuple[str, str]]()
        found = frame.select("value", "status", "why").rows()
        for trial, (value, status, why) in zip(self.trials, found, strict=True):
            if status == ValueStatus.DONE:
                values.append((trial, value))
            else:
                gaps[status] += 1
                whys[trial.id] = status, why
        return Observations(values=tuple(values), gaps=gaps, whys=whys)

    def fixed(self, shown: Iterable[str | None]) -> Mapping[str, Level]:
        """Return the levels that all trials share, of factors that vary in the study and are not `shown`."""
        named = [name for name in shown if name is not None]
        return fixed_levels([trial.levels for trial in self.trials], named, self.study.design)

    def fixed_note(self, fixed: Mapping[str, Level]) -> list[str]:
        """Return a sentence about fixed levels; empty without fixed levels."""
        return [f"At {describe_levels(fixed)}."] if fixed else []

    def difference(self, metrics: Sequence[Metric]) -> list[str]:
        """Return a sentence on metrics that these trials measure differently, as at other lengths, if any."""
        sentence = difference_sentence(dict.fromkeys(metrics, self.settings))
        return [sentence] if sentence else []

    def omitted(self, gaps: Counter[str], planned: int) -> Iterator[str]:
        """Yield a sentence about the trials that have no value, if there are any."""
        yield from omitted_trials(gaps, planned, self.study.name)

    def provenance(self, trials: Collection[str] | None = None) -> str:
        """Return a sentence about the code, devices and dates behind the trials' numbers."""
        ids = [trial.id for trial in self.trials] if trials is None else trials
        return provenance(list(dict.fromkeys(ids)), self.outcomes)
