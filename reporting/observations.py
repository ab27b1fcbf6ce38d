"""The final values of a metric over a study's cells, each with its levels and its seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ..studies.planning.trial_values import ValueStatus, trial_values
from ..studies.presentation.effects import varied_factors
from ..studies.presentation.selection import is_selected
from ..studies.resolve.trial import Trial
from ..studies.schema.design import level_key
from ..studies.schema.factors import SEED
from ..studies.schema.settings import Level
from ..studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The value of one trial at the levels of its cell, its seed among them."""

    trial: str
    value: float
    levels: Mapping[str, Level]

    @property
    def seed(self) -> int:
        """The seed that it is paired by."""
        return int(self.levels[SEED])


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """The values of all selected trials that have one; `gaps` counts the others by status.

    `trials` are all that are selected, `cells` the number of combinations of levels that they have.
    """

    values: tuple[Observation, ...]
    gaps: Counter[str]
    trials: tuple[str, ...]
    cells: int

    def observed(self, levels: Sequence[Level], factor: str) -> tuple[Level, ...]:
        """Those of a factor's levels that have a value."""
        found = {level_key(each.levels[factor]) for each in self.values}
        return tuple(level for level in levels if level_key(level) in found)


def observe(study: Study, select: Mapping[str, Any], metric: str, outcomes: pl.DataFrame) -> Observations:
    """The final values of a metric in the selected trials, from the store's latest attempts."""
    trials = selected_trials(study, select)
    values = trial_values(study.name, [trial.id for trial in trials], outcomes, metric)
    by_trial = {trial: (value, status) for trial, _, value, status, _ in values.iter_rows()}
    found, gaps = list[Observation](), Counter[str]()
    for trial in trials:
        value, status = by_trial[trial.id]
        if status == ValueStatus.DONE:
            found.append(Observation(trial=trial.id, value=value, levels=trial.levels))
        else:
            gaps[status] += 1
    cells = {
        tuple(level_key(level) for name, level in trial.levels.items() if name != SEED) for trial in trials
    }
    return Observations(
        values=tuple(found),
        gaps=gaps,
        trials=tuple(dict.fromkeys(trial.id for trial in trials)),
        cells=len(cells),
    )


def shown_factors(study: Study, select: Mapping[str, Any]) -> dict[str, tuple[Level, ...]]:
    """The factors of which the selected cells have several levels, with these."""
    trials = selected_trials(study, select)
    found = dict[str, tuple[Level, ...]]()
    for name, levels in varied_factors(select, study.factors).items():
        there = {level_key(trial.levels[name]) for trial in trials}
        found[name] = tuple(level for level in levels if level_key(level) in there)
    return {name: levels for name, levels in found.items() if len(levels) > 1}


def selected_trials(study: Study, select: Mapping[str, Any]) -> list[Trial]:
    """The trial of every selected cell and seed."""
    return [trial for trial in study.cells if is_selected(select, trial.levels)]
