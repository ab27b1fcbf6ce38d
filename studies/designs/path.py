"""The ablation path: each round keeps the best change on the way to the target.

Each round tries all remaining changes and keeps the best one, even if all of them make the result worse. The
choice depends only on the store, so every command and every driver of a run has the same path. Source:
Fawcett and Hoos (2016), "Analysing differences between algorithm configurations through ablation".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Literal, Self

import polars as pl

from ...storage.rows import TRIALS
from ..catalog.metrics import METRICS_AND_COSTS, find_metric, is_target, metric_family, unknown_metric
from ..planning.final_values import (
    ValueStatus,
    describe_divergence,
    guessing_losses,
    may_diverge,
    trial_values,
)
from ..schema.factors import level_key
from ..schema.reported_metrics import missing_metric
from ..schema.settings import Level
from ..text.toml_positions import KeyPath
from ..text.units import plural
from .cumulative import Stepwise, StepwiseSettings

if TYPE_CHECKING:
    from ...storage import Store
    from ..catalog.tasks import TaskSettings
    from ..resolve.trial import Trial
    from ..study import Study

_UNDECIDED = (ValueStatus.BEGUN, ValueStatus.PENDING, ValueStatus.INCOMPLETE, ValueStatus.MISSING)


class PathSettings(StepwiseSettings):
    """The keys of `[study] design` for `path`."""

    metric: str
    """the metric whose mean over the seeds decides which change each round keeps"""
    direction: Literal["max", "min"] | None = None
    """whether the highest or the lowest values of the metric are the best (default: as usual for it)"""


@dataclass(frozen=True, kw_only=True)
class Path(Stepwise):
    """An ablation path: each round keeps the change with the best value of a metric.

    `kept` are the changes kept so far.
    """

    settings: PathSettings
    kept: tuple[str, ...] = ()

    settings_class = PathSettings
    title = "one change after the other, each time the one with the best result"
    source = "Fawcett and Hoos 2016"
    has_conditions = False
    in_rounds = True

    @property
    def order(self) -> tuple[str, ...]:
        """The factors whose changes earlier rounds have kept, in the order of the rounds."""
        return self.kept

    def make_rows(self) -> list[dict[str, Level]]:
        rounds = (replace(self, kept=self.kept[:count]) for count in range(len(self.kept) + 1))
        return [self.path()[0], *(row for each in rounds for row in each.candidates().values())]

    def candidates(self) -> dict[str, dict[str, Level]]:
        """Return the cells that this round compares, by the factor that changes in each."""
        base = self.path()[-1]
        left = {name: level for name, level in self.steps.items() if name not in self.kept}
        return {name: {**base, name: level} for name, level in left.items()}

    def next_round(self, study: Study, store: Store) -> Self | None:
        """Return the design of the next round, or None until this round has a winner.

        The winner is the best of the changes that have results for all seeds, once no trial is missing.
        """
        tried = {
            name: [
                trial
                for trial in study.cells
                if all(level_key(trial.levels[each]) == level_key(level) for each, level in levels.items())
            ]
            for name, levels in self.candidates().items()
        }
        tasks = {trial.id: trial.settings.task for trials in tried.values() for trial in trials}
        if not tasks:
            return None
        metric, direction = self.settings.metric, self.settings.direction
        rows = trial_values(study.name, tasks, _outcomes(store, metric, tasks), metric)
        if rows["status"].is_in(_UNDECIDED).any():
            return None
        known = rows.filter(pl.col("status") == ValueStatus.DONE)
        values: dict[str, float] = dict(known.select("trial", "value").iter_rows())
        means = {
            name: fmean(values[trial.id] for trial in trials)
            for name, trials in tried.items()
            if trials and all(trial.id in values for trial in trials)
        }
        higher = direction == "max" if direction else find_metric(metric).higher_is_better
        best = max if higher else min
        step = best(means, key=means.__getitem__, default=None)
        return None if step is None else replace(self, kept=(*self.kept, step))

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield the faults of the path's steps, and of the metric by which a round chooses its change."""
        yield from super().faults()
        path: KeyPath = ("study", "design", "metric")
        metric = self.settings.metric
        if self.matched_size is not None:
            yield ("study", "match"), "design path cannot be combined with match: remove match"
        if metric_family(metric) not in METRICS_AND_COSTS:
            yield path, unknown_metric(metric)
        elif is_target(metric):
            yield path, f"a path compares final values, but {metric} is computed from a learning curve"
        elif not self.settings.direction and find_metric(metric).higher_is_better is None:
            unknown = f"it is not known whether higher or lower {metric} is better"
            yield path, f"{unknown}: set direction = 'max' or 'min'"

    def trial_faults(self, trials: Iterable[Trial]) -> Iterator[tuple[KeyPath, str]]:
        faults = (missing_metric(self.settings.metric, [each.settings]) for each in trials)
        if fault := next(filter(None, faults), ""):
            yield ("study", "design", "metric"), fault

    def explain_kind(self) -> str:
        steps = len(self.steps)
        most = 1 + steps * (steps + 1) // 2
        best = f"keeps the best in {self.settings.metric}"
        kept = f"kept so far: {', '.join(self.kept)}; " if self.kept else ""
        now = f"round {len(self.kept) + 1} of {steps}" if steps > len(self.kept) else "all rounds have ended"
        return (
            f"from the baseline to the target, {plural(steps, 'change')}; each round tries all remaining "
            f"changes and {best}, at most {most:,} cells; {kept}{now}; it shows the order of importance "
            "along one path, not the effect of a single change"
        )


DESIGN = Path


def _outcomes(store: Store, metric: str, tasks: Mapping[str, TaskSettings]) -> pl.DataFrame:
    columns = [name for name in TRIALS if name != "settings"]  # most of the memory of a store's trials
    outcomes = store.trials({metric}, columns).filter(pl.col("trial").is_in(list(tasks)))
    doubtful = outcomes.filter(may_diverge())
    return describe_divergence(outcomes, doubtful, store.metric_course, guessing_losses(tasks))
