"""The progress of a study: its trials by status, and the remaining time.

The time of a trial is estimated from trained epochs. The processes that train now share the remaining time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from ...studies.planning.time_estimates import RecipeTimes
from ...studies.planning.trials_to_run import left_within_budget
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import read_recipe
from .store_reader import BegunTrial, StudyNow


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressNow:
    """The numbers of a study's trials by status, and its unfinished trials.

    `running` trials belong to a living process, `stopped` trials do not. `eta_s` is the remaining time in
    seconds; None if nothing trains, or if it is not known yet.
    """

    total: int
    counts: Counter[str]
    running: tuple[BegunTrial, ...]
    stopped: tuple[BegunTrial, ...]
    eta_s: float | None

    @property
    def ended(self) -> Counter[str]:
        """Return the number of ended trials by status, without incomplete trials, which are trained again."""
        return Counter({status: count for status, count in self.counts.items() if status != "incomplete"})

    @property
    def left(self) -> int:
        """Return how many trials remain to be trained, including incomplete trials."""
        return max(0, self.total - self.ended.total())

    @property
    def share(self) -> float:
        """Return the share of the study that is done, from 0 to 1, with the epochs of unfinished trials."""
        begun = sum(map(epochs_share, (*self.running, *self.stopped)))
        return min(1.0, (self.total - self.left + begun) / self.total) if self.total else 1.0


def study_progress(now: StudyNow) -> ProgressNow:
    """Return the progress of a study at a moment."""
    counts = Counter[str](now.outcomes["status"])
    begun = sorted(
        now.begun, key=lambda each: each.note.saved_at.timestamp() if each.note else 0.0, reverse=True
    )
    running = tuple(each for each in begun if each.held)
    left = None
    if now.study.search is not None:
        trials = (each.trial for each in begun)
        left = left_within_budget(now.study.search, now.outcomes, trials)
    parts = list(_remaining_seconds(now, left)) if running else []
    spent = None if left is None else counts.total() - counts["incomplete"] + left
    # the remaining time is at least that of the longest trial, which only one process can train
    return ProgressNow(
        total=max(now.study.total if spent is None else spent, counts.total()),
        counts=counts,
        running=running,
        stopped=tuple(each for each in begun if not each.held),
        eta_s=max(sum(parts) / len(running), *parts) if parts else None,
    )


def epochs_share(begun: BegunTrial) -> float:
    """Return the share of an unfinished trial's epochs that are completed."""
    return begun.epoch / begun.trial.settings.train.epochs


def _remaining_seconds(now: StudyNow, left: int | None) -> Iterator[float]:
    """Yield one estimate of the remaining seconds for each trial that has not ended.

    Yield nothing before the first epoch ends. `left` is the number of trials left in a search that has spent
    its budget, otherwise None.
    """
    speed = RecipeTimes()
    ended = now.outcomes.filter(pl.col("status") == "done").select("recipe_id", "seconds")
    begun = {each.trial.id: each for each in now.begun}
    for recipe, spent in ended.iter_rows():
        speed.add(recipe, spent, 1.0)
    for each in now.begun:
        if each.note and each.note.seconds:
            speed.add(_recipe(each.trial), each.note.seconds, epochs_share(each))
    if speed.mean_s is None:
        return
    statuses = dict(now.outcomes.select("trial", "status").iter_rows())
    for trial in now.study.trials:
        if statuses.get(trial.id, "incomplete") == "incomplete":
            left_share = 1 - (epochs_share(begun[trial.id]) if trial.id in begun else 0.0)
            yield speed.trial_s(_recipe(trial)) * left_share
    if now.study.search:
        yield from [speed.mean_s] * (max(0, now.study.total - len(statuses)) if left is None else left)


def _recipe(trial: Trial) -> str:
    return read_recipe(trial.settings.model.recipe).id
