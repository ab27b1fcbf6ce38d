"""A study at one moment: its outcomes, its unfinished trials, its progress and the remaining time.

The time of a trial is estimated from trained epochs. The processes that train now share the remaining time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from ...storage import CheckpointNote, Store
from ...studies.planning.status import TrialCounts, count_trials
from ...studies.planning.time_estimates import RecipeTimes
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import read_recipe
from ...studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunTrial:
    """An unfinished trial. `held` is true while a process still trains it."""

    trial: Trial
    note: CheckpointNote | None
    held: bool

    @property
    def epoch(self) -> int:
        """Return the last epoch that has ended; 0 before the first."""
        return self.note.epoch if self.note else 0

    @property
    def metrics(self) -> Mapping[str, float]:
        """Return the metrics of the last epoch that has ended."""
        return self.note.metrics if self.note else {}

    @property
    def share(self) -> float:
        """Return the share of the trial's epochs that are completed."""
        return self.epoch / self.trial.settings.train.epochs


@dataclass(frozen=True, kw_only=True)
class StudyNow:
    """A study at one moment, with its outcomes and its unfinished trials.

    `outcomes` are those of the study's own trials; `ended` also has those of all seeds that may be added.
    `rows` is a text that changes with the outcomes, and `key` one that also changes with the unfinished
    trials.
    """

    study: Study
    store: Store
    outcomes: pl.DataFrame
    ended: pl.DataFrame
    begun: tuple[BegunTrial, ...]
    rows: str = ""
    key: str = ""

    @cached_property
    def counts(self) -> Counter[str]:
        """Return the number of trials by status. Incomplete trials are trained again."""
        return Counter(self.outcomes["status"])

    @property
    def num_ended(self) -> int:
        """Return how many trials have ended, without incomplete trials."""
        return self.counts.total() - self.counts["incomplete"]

    @property
    def running(self) -> list[BegunTrial]:
        """Return the trials of living processes, the last saved first."""
        return sorted((each for each in self.begun if each.held), key=_saved_at, reverse=True)

    @property
    def stopped(self) -> list[BegunTrial]:
        """Return the unfinished trials that no process trains, the last saved first."""
        return sorted((each for each in self.begun if not each.held), key=_saved_at, reverse=True)

    @property
    def total(self) -> int:
        """Return the number of the study's trials; of a search that has spent its budget, those it trains."""
        return self.num_ended + self.left if self._counted.is_over_budget else self._counted.total

    @property
    def left(self) -> int:
        """Return how many trials remain to be trained."""
        return self._counted.left

    @property
    def share(self) -> float:
        """Return the share of the study that is done, from 0 to 1, with the epochs of unfinished trials."""
        begun = sum(each.share for each in self.begun)
        return min(1.0, (self.num_ended + begun) / self.total) if self.total else 1.0

    @cached_property
    def eta_s(self) -> float | None:
        """Return the remaining time in seconds; None if nothing trains, or if it is not known yet."""
        parts = list(self._remaining_seconds()) if self.running else []
        # at least that of the longest trial, which only one process can train
        return max(sum(parts) / len(self.running), *parts) if parts else None

    @cached_property
    def _counted(self) -> TrialCounts:
        return count_trials(self.study, self.outcomes, (each.trial for each in self.begun))

    def _remaining_seconds(self) -> Iterator[float]:
        """Yield an estimate of the remaining seconds of each trial that has not ended.

        Yield nothing before the first epoch ends.
        """
        speed = RecipeTimes()
        ended = self.outcomes.filter(pl.col("status") == "done").select("recipe_id", "seconds")
        begun = {each.trial.id: each for each in self.begun}
        for recipe, spent in ended.iter_rows():
            speed.add(recipe, spent, 1.0)
        for each in self.begun:
            if each.note and each.note.seconds:
                speed.add(_recipe(each.trial), each.note.seconds, each.share)
        if speed.mean_s is None:
            return
        statuses = dict(self.outcomes.select("trial", "status").iter_rows())
        known = [
            trial
            for trial in self.study.trials  # none of a search
            if statuses.get(trial.id, "incomplete") == "incomplete"
        ]
        for trial in known:
            yield speed.trial_s(_recipe(trial)) * (1 - (begun[trial.id].share if trial.id in begun else 0.0))
        yield from [speed.mean_s] * (self.left - len(known))


def _saved_at(begun: BegunTrial) -> float:
    return begun.note.saved_at.timestamp() if begun.note else 0.0


def _recipe(trial: Trial) -> str:
    return read_recipe(trial.settings.model.recipe).id
