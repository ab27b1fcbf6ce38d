"""Trainings with fewer epochs whose last state is kept, from which those with more can go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from ...storage import Store
from ..catalog.schedules import rates_depend_on_length
from ..resolve.trial import Trial, settings_from_json, trial_id
from ..schema.settings import TrialSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorterTrial:
    """A trial that is done, and of which a longer one repeats all epochs."""

    trial: str
    epochs: int


class ShorterTrials:
    """The trials of a store that are done and whose last state is kept, by all but their epochs."""

    def __init__(self, store: Store) -> None:
        self._found: dict[str, list[ShorterTrial]] = {}
        kept = store.files.trials_with_final_checkpoint()
        if not kept:
            return
        rows = store.trials().filter(pl.col("trial").is_in(list(kept)), status="done")
        for trial, text in rows.select("trial", "settings").iter_rows():
            try:
                settings = settings_from_json(text)
            except ValueError:  # of a plug-in or a corpus that is no longer known
                continue
            if trial_id(settings) == trial:  # else results have changed since
                shorter = ShorterTrial(trial=trial, epochs=settings.train.epochs)
                self._found.setdefault(_without_epochs(settings), []).append(shorter)

    def add(self, trial: Trial) -> None:
        """Take note of a trial that is done since, and whose last state is kept."""
        shorter = ShorterTrial(trial=trial.id, epochs=trial.settings.train.epochs)
        self._found.setdefault(_without_epochs(trial.settings), []).append(shorter)

    def find(self, trial: Trial) -> ShorterTrial | None:
        """Return the longest trial that this one can resume from.

        The result equals, bit for bit, that of a trial that begins at the start.
        """
        if not self._found:
            return None
        train = trial.settings.train
        fitting = [
            each
            for last, settings in _beginnings(trial.settings)
            for each in self._found.get(_without_epochs(settings), ())
            if each.epochs <= last
            and not rates_depend_on_length(train.schedule, each.epochs * train.steps_per_epoch)
        ]
        return max(fitting, key=lambda each: each.epochs, default=None)

    def find_all(self, trials: Iterable[Trial]) -> dict[str, ShorterTrial]:
        """Return the trials that these can resume from, by trial."""
        found = ((trial.id, self.find(trial)) for trial in trials)
        return {trial: shorter for trial, shorter in found if shorter is not None}


def _beginnings(settings: TrialSettings) -> Iterator[tuple[int, TrialSettings]]:
    """Yield the settings with none of the changes in [train], with the first, and so on.

    Each comes with the epoch up to which it holds.
    """
    train = settings.train
    for count in range(len(train.changes) + 1):
        last = train.changes[count].after if count < len(train.changes) else train.epochs - 1
        begun = train.model_copy(update={"changes": train.changes[:count]})
        yield last, settings.model_copy(update={"train": begun})


def _without_epochs(settings: TrialSettings) -> str:
    """Return what trials share that differ only in their epochs."""
    return trial_id(settings.model_copy(update={"train": settings.train.model_copy(update={"epochs": 1})}))
