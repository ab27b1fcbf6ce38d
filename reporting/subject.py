"""The trials of a table or figure: their values, and the shared captions and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from ..studies.catalog.metrics import Metric, find_metric
from ..studies.planning.trial_values import ValueStatus, probe_command
from ..studies.presentation.kinds import describe_levels, fixed_levels, is_selected, selected_levels
from ..studies.presentation.metric_words import difference_sentence, with_true_title
from ..studies.resolve.trial import Trial
from ..studies.schema.factors import SEED, level_key
from ..studies.schema.settings import Level, TrialSettings
from ..studies.study import Study
from .frames import value_frame
from .outcomes import omitted_trials, provenance

if TYPE_CHECKING:
    from .statistics.factor_effects import Contrast, FactorModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The value of one trial, with the levels of its cell and its seed."""

    trial: str
    value: float
    levels: Mapping[str, Level]

    @property
    def seed(self) -> int:
        """Return the seed by which values are paired."""
        return int(self.levels[SEED])


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """The values of all trials that have one; `gaps` counts the others by status.

    `trials` are all ids, `cells` the number of combinations of levels.
    """

    values: tuple[Observation, ...]
    gaps: Counter[str]
    trials: tuple[str, ...]
    cells: int

    @property
    def planned(self) -> int:
        """Return the number of cells times seeds."""
        return len(self.values) + self.gaps.total()


@dataclass(frozen=True)
class ResultSubject:
    """The selected trials of a study with their outcomes, the store's latest attempts."""

    study: Study
    select: Mapping[str, Any]
    outcomes: pl.DataFrame

    @cached_property
    def trials(self) -> list[Trial]:
        """Return the trial of every selected cell and seed."""
        return [trial for trial in self.study.cells if is_selected(self.select, trial.levels)]

    @cached_property
    def settings(self) -> list[TrialSettings]:
        """Return the settings of the trials."""
        return [trial.settings for trial in self.trials]

    @cached_property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """Return the selected levels of every factor."""
        return selected_levels(self.select, self.study.factors)

    @cached_property
    def varied(self) -> dict[str, tuple[Level, ...]]:
        """Return the factors, except seeds, with several levels among the selected cells, and the levels."""
        found = dict[str, tuple[Level, ...]]()
        for name, levels in self.levels.items():
            there = {level_key(trial.levels[name]) for trial in self.trials}
            kept = tuple(level for level in levels if level_key(level) in there)
            if name != SEED and len(kept) > 1:
                found[name] = kept
        return found

    def metric(self, name: str, digits: Mapping[str, int] | None = None) -> tuple[Metric, str]:
        """Return a metric with a title that fits the trials, and the text after its name in a heading."""
        return with_true_title(find_metric(name, digits), self.settings)

    def observe(self, metric: str) -> Observations:
        """Return the final values of a metric."""
        frame = value_frame(self.study.name, [trial.id for trial in self.trials], self.outcomes, [metric])
        values, gaps = list[Observation](), Counter[str]()
        for trial, (value, status) in zip(self.trials, frame.select("value", "status").rows(), strict=True):
            if status == ValueStatus.DONE:
                values.append(Observation(trial=trial.id, value=value, levels=trial.levels))
            else:
                gaps[status] += 1
        cells = {
            tuple(level_key(level) for name, level in trial.levels.items() if name != SEED)
            for trial in self.trials
        }
        ids = tuple(dict.fromkeys(trial.id for trial in self.trials))
        return Observations(values=tuple(values), gaps=gaps, trials=ids, cells=len(cells))

    def fixed(self, shown: Iterable[str | None]) -> Mapping[str, Level]:
        """Return the levels shared by all trials, of factors that have several and are not shown."""
        named = [name for name in shown if name is not None]
        return fixed_levels([trial.levels for trial in self.trials], named, self.study.design)

    def fixed_note(self, fixed: Mapping[str, Level]) -> list[str]:
        """Return the sentence about fixed levels; none if there are none."""
        return [f"At {describe_levels(fixed)}."] if fixed else []

    def difference(self, metrics: Sequence[Metric]) -> list[str]:
        """Return the sentence about differing measurements of trials; none if they agree."""
        sentence = difference_sentence(metrics, self.settings)
        return [sentence] if sentence else []

    def omitted(self, gaps: Counter[str], planned: int) -> Iterator[str]:
        """Yield the sentence about trials without a value."""
        yield from omitted_trials(gaps, planned, probe_command(self.study.name))

    def provenance(self, trials: Collection[str] | None = None) -> str:
        """Return the provenance of the trials' numbers."""
        ids = [trial.id for trial in self.trials] if trials is None else trials
        return provenance(list(dict.fromkeys(ids)), self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyModel:
    """A linear model of the varying factors; None if nothing varies.

    `observed` has the levels of each factor that have a value.
    """

    observations: Observations
    observed: Mapping[str, tuple[Level, ...]]
    model: FactorModel | None

    def level_means(self, *factors: str) -> dict[tuple[str, ...], Contrast]:
        """Return the mean at each level of a factor, or each combination of two, by their keys."""
        if self.model is None or any(len(self.observed[name]) < 2 for name in factors):
            return {}
        term = tuple(name for name in self.observed if name in factors)
        keys = product(*(map(level_key, self.observed[name]) for name in term))
        means = self.model.means(term)
        found = zip(keys, means, strict=True) if means else ()
        return {tuple(key[term.index(name)] for name in factors): mean for key, mean in found}


def model_factors(subject: ResultSubject, metric: str, *, interactions: bool) -> StudyModel:
    """Return the model of the varying factors, over the existing values of a metric."""
    from .statistics.factor_effects import FactorModel, TermColumns  # noqa: PLC0415 -- loads NumPy

    observations = subject.observe(metric)
    observed = dict[str, tuple[Level, ...]]()
    for name, levels in subject.varied.items():
        there = {level_key(each.levels[name]) for each in observations.values}
        observed[name] = tuple(level for level in levels if level_key(level) in there)
    varied = [name for name, levels in observed.items() if len(levels) > 1]
    if not varied:
        return StudyModel(observations=observations, observed=observed, model=None)
    seeds = sorted({each.seed for each in observations.values})
    numbers = {name: {level_key(level): at for at, level in enumerate(observed[name])} for name in varied}
    columns = TermColumns(
        levels={
            name: [numbers[name][level_key(each.levels[name])] for each in observations.values]
            for name in varied
        },
        seeds=[seeds.index(each.seed) for each in observations.values],
        with_interactions=interactions,
    )
    model = FactorModel(columns, [each.value for each in observations.values])
    return StudyModel(observations=observations, observed=observed, model=model)
