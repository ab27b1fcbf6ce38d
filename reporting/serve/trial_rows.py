"""Trials as lines of a page: the levels that distinguish each trial, and its metrics."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...studies.catalog.metrics import METRICS
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import ABSENT, SEED, level_name, short_level_names
from ...studies.schema.settings import Level
from ...studies.study import Study
from ..search.promotion import RECIPE, column_names
from .store_reader import StudyNow

MAX_METRICS = 4
"""The maximum number of metrics in a trial's line."""

PAGE_SIZE = 100
"""The number of trials on a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLine:
    """A trial with its levels and, once ended, its stored row; `state` is its progress."""

    id: str
    levels: Sequence[str]
    state: str
    row: Mapping[str, Any] | None
    own_metrics: Sequence[str] = ()  # of the study, which come first

    @property
    def metrics(self) -> list[tuple[str, str]]:
        """Return its final metrics as text."""
        if self.row is None:
            return []
        measured = {each["name"]: each["value"] for each in self.row["metrics"]}
        return metric_words(measured, self.own_metrics)


def own_metrics(study: Study) -> list[str]:
    """Return the metrics that a search optimises, or that the first table shows."""
    if study.search is not None:
        return [each.name for each in study.search.objectives]
    return [name for table in study.tables[:1] for path, name in table.named_metrics() if path[0] == "value"]


def factor_names(study: Study) -> list[str]:
    """Return the factors in which a study's trials differ; for a search, mainly its recipe."""
    if study.search is not None:
        rungs = [study.fidelity.name] if study.fidelity else []
        return [*column_names(study), *study.search.across, *rungs, SEED]
    return [name for name, levels in study.factors.items() if len(levels) > 1]


def level_words(levels: Mapping[str, Level], names: Sequence[str]) -> list[str]:
    """Return the levels of these factors for display; "" where a trial has none."""
    return [level_name(levels[name]) if name in levels else "" for name in names]


def trial_levels(trial: Trial) -> dict[str, Level]:
    """Return the levels of a trial, its seed and its resolved recipe."""
    return {**trial.levels, SEED: trial.settings.seed, RECIPE: trial.settings.model.recipe}


def row_levels(row: Mapping[str, Any]) -> dict[str, Level]:
    """Return the levels of a stored row, its seed and its resolved recipe."""
    return {SEED: row["seed"], **json.loads(row["factors"]), RECIPE: row["recipe"]}


def trial_words(study: Study, trials: Sequence[Mapping[str, Level]]) -> list[str]:
    """Return a line for each trial, given by its levels: its distinguishing levels in the study.

    Texts are in short forms, numbers have their factor's name. Points of a search, whose levels are not
    listed, are distinguished from each other.
    """
    names, short = factor_names(study), dict[str, dict[Level, str]]()
    for name in names:
        known = (*study.factors.get(name, ()), *(levels[name] for levels in trials if name in levels))
        texts = list(dict.fromkeys(each for each in known if isinstance(each, str)))
        short[name] = dict(zip(texts, short_level_names(texts), strict=True))

    def words(name: str, level: Level) -> str:
        return short[name][level] if isinstance(level, str) else f"{name} {level_name(level)}"

    told = [
        [words(name, levels[name]) for name in names if levels.get(name) not in (None, ABSENT)]
        for levels in trials
    ]
    return [" · ".join(each) or str(levels[RECIPE]) for each, levels in zip(told, trials, strict=True)]


def metric_words(metrics: Mapping[str, float], own: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the first few metrics with their numbers: a study's own, then in catalog order."""
    first = [name for name in own if name in metrics]
    known = [name for name in METRICS if name in metrics and name not in first]
    named = [
        *first,
        *known,
        *(name for name in metrics if name not in METRICS and name not in first and "[" not in name),
    ]
    return [(name, number(name, metrics[name])) for name in named[:MAX_METRICS]]


def number(name: str, value: float) -> str:
    """Return a metric's value in the form of tables."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return METRICS[name].format(value) if name in METRICS else f"{value:,.4g}".replace("-", "−")


def trial_lines(now: StudyNow) -> list[TrialLine]:
    """Return all trials of a study in its order; for a search, stored and begun trials."""
    names, own = factor_names(now.study), own_metrics(now.study)
    rows = {row["trial"]: row for row in now.outcomes.iter_rows(named=True)}
    begun = {each.trial.id: "running" if each.held else "begun" for each in now.begun}
    return [
        TrialLine(
            id=trial,
            levels=level_words(levels, names),
            state=begun.get(trial) or (rows[trial]["status"] if trial in rows else "waiting"),
            row=rows.get(trial),
            own_metrics=own,
        )
        for trial, levels in _iter_trials(now, rows)
    ]


def _iter_trials(
    now: StudyNow, rows: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Level]]]:
    if now.study.search is None:
        yield from ((trial.id, trial.levels) for trial in now.study.trials)
        return
    yield from ((each.trial.id, trial_levels(each.trial)) for each in now.begun if each.trial.id not in rows)
    newest_first = sorted(rows.values(), key=lambda row: row["finished"], reverse=True)
    yield from ((row["trial"], row_levels(row)) for row in newest_first)
