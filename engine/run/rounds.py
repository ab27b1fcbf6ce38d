"""Rounds of a run: it trains what is missing, then what other drivers leave, until nothing is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ...storage import Store
from ...studies.planning.reused_trials import ShorterTrials
from ...studies.planning.trials_to_run import start_turns, trials_to_run
from ...studies.resolve.trial import Trial
from ...studies.study import Study
from ..core.events import Ended, Event, Listener, MachineFailed, Relay, Taken
from ..trial.checkpoints import STARTS_FILE, checkpoint_of, dies_often
from ..trial.claims import taken
from ..trial.machine_failures import lost_gpu
from ..trial.outcome import Job
from .cohort_sources import BegunCohorts, CohortSource
from .interrupts import Stop

ENDED_BETWEEN_LOOKS = 32
"""After this many trials have ended, the run checks whether their files should be merged."""


class RunCounter(Relay):
    """Listener of a run: it passes events on, counts ended trials, and requests a stop where needed.

    Now and then it merges the files of what has ended, so that a folder never holds thousands.
    """

    def __init__(
        self, listener: Listener, stop: Stop, max_failures: int | None, merge: Callable[[], object]
    ) -> None:
        super().__init__(listener)
        self._stop, self._max_failures, self._merge = stop, max_failures, merge
        self.planned: set[str] = set()
        self.ended: dict[str, str] = {}
        self.machine_failure: str | None = None
        self.taken: dict[str, Taken] = {}

    @property
    def has_failed_too_often(self) -> bool:
        """Return whether as many trials have failed as are allowed."""
        failed = list(self.ended.values()).count("failed")
        return self._max_failures is not None and failed >= self._max_failures

    def pop_taken(self) -> dict[str, Taken]:
        """Return the trials that other drivers train, of which this one has heard since the last call."""
        taken, self.taken = self.taken, {}
        return taken

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Note them as trials of this run."""
        self.planned.update(trial.id for trial in trials)
        super().on_planned(trials)

    def on_event(self, event: Event) -> None:
        """Note what ends and what other drivers train."""
        if isinstance(event, Ended):
            self.ended[event.trial] = event.status
            if len(self.ended) % ENDED_BETWEEN_LOOKS == 0:
                with suppress(OSError):  # it can wait for the end of the run
                    self._merge()
        elif isinstance(event, MachineFailed):
            self.machine_failure = event.reason
        elif isinstance(event, Taken):
            self.taken[event.trial] = event
            self.planned.discard(event.trial)
        self._stop.requested |= self.machine_failure is not None or self.has_failed_too_often
        super().on_event(event)


class RunRounds:
    """The rounds of one run; methods return why cohorts were given up, if any were."""

    def __init__(
        self,
        study: Study,
        store: Store,
        counter: RunCounter,
        stop: Stop,
        run: Callable[[CohortSource], list[str]],
        *,
        run_id: str,
        make_grid: Callable[[Sequence[Job]], CohortSource],
    ) -> None:
        self._study, self._store, self._counter = study, store, counter
        self._make_grid = make_grid
        self._stop, self._run, self._id = stop, run, run_id
        self._leases = store.leases(run_id)

    def train(
        self,
        missing: Sequence[Trial],
        last: Mapping[str, int],
        max_trials: int | None,
        *,
        retry_failed: bool,
    ) -> list[str]:
        """Train the missing trials of a grid, or search; note that the rest has stopped in order."""
        try:
            if self._study.search is None:
                return self.train_grid(missing, last, max_trials)
            return self.search(max_trials, retry_failed=retry_failed)
        finally:
            if lost_gpu() is None:  # else the trial whose kernel has failed counts as a death
                left = self._counter.planned - self._counter.ended.keys()
                with suppress(OSError):  # a stop that cannot be recorded counts as a death
                    for trial in self._store.files.trials_with_checkpoint(left):
                        checkpoint_of(self._store, trial).record_stop()

    def train_grid(
        self, missing: Sequence[Trial], last: Mapping[str, int], max_trials: int | None
    ) -> list[str]:
        """Train these trials, at most `max_trials` of them, after the last attempts at them."""
        free, elsewhere, given_up = self._jobs(missing, last), dict[str, Taken](), list[str]()
        jobs = {job.trial.id: job for job in free}
        left = len(free) if max_trials is None else max_trials
        while free and left > 0 and not self._stop.requested:
            now, free = free[:left], free[left:]
            self._counter.on_planned([job.trial for job in now])
            given_up += self._run(self._make_grid(now))
            taken_now = self._counter.pop_taken()
            left -= len(now) - len(taken_now)
            elsewhere |= {trial: event for trial, event in taken_now.items() if not event.ended}
            if not free and left > 0:
                found = self._wait(elsewhere)
                free = [replace(jobs[trial], gone=gone) for trial, gone in found.items()]
                for trial in found:
                    del elsewhere[trial]
        return given_up

    def _jobs(self, missing: Sequence[Trial], last: Mapping[str, int]) -> list[Job]:
        """Return the jobs of these trials; those at which processes have died come last."""
        folder, shorter = self._store.files.checkpoints_folder(STARTS_FILE), ShorterTrials(self._store)
        turns = start_turns(self._study)
        last_turn = max(turns.values(), default=0) + 1
        turns |= {trial.id: last_turn for trial in missing if dies_often(folder / trial.id)}
        return [
            Job(
                trial=trial,
                attempt=last.get(trial.id, -1) + 1,
                run=self._id,
                keep_weights=self._study.keep_weights,
                keep_checkpoint=self._study.keep_checkpoints,
                shorter=shorter.find(trial),
                turn=turns[trial.id],
            )
            for trial in sorted(missing, key=lambda trial: turns[trial.id])
        ]

    def search(self, max_trials: int | None, *, retry_failed: bool) -> list[str]:
        """Search until its points are tried, with at most `max_trials` trials."""
        from .search.search import Search  # noqa: PLC0415 -- Optuna is loaded for searches only

        given_up: list[str] = []
        gone: dict[str, int] = {}
        while True:
            left = None if max_trials is None else max_trials - len(self._counter.ended)
            source = Search(
                self._study,
                self._store,
                self._id,
                self._counter,
                max_trials=left,
                retry_failed=retry_failed,
                gone=gone,
            )
            if (first := source.next_cohort()) is not None:  # else no worker is started
                given_up += self._run(BegunCohorts(first, source))
            taken_now = self._counter.pop_taken()
            if not taken_now or len(self._counter.ended) == max_trials:
                return given_up
            gone = self._wait(taken_now)
            if self._stop.requested:
                return given_up

    def _wait(self, trials: Mapping[str, Taken]) -> dict[str, int]:
        """Wait until some trials of other drivers can be taken over, all have ended, or a stop is requested.

        Return each trial that is free, with the last attempt whose owner is gone; -1 if there was none.
        """
        waiting, shown = dict(trials), set[Taken]()
        while waiting and not self._stop.requested:
            found = {trial: self._leases.find(trial, each.attempt) for trial, each in waiting.items()}
            stored = self._store.last_numbers() if any(each and each.ended for each in found.values()) else {}
            free: dict[str, int] = {}
            for trial, state in found.items():
                if state is None:
                    free[trial] = -1
                elif state.ended and stored.get(trial, -1) >= state.attempt:
                    del waiting[trial]
                elif state.lists_are_current if state.ended else state.gone:
                    free[trial] = state.attempt
                else:
                    waiting[trial] = taken(state)
            if free:
                return free
            if waiting and shown != (now := set(waiting.values())):
                self._counter.waiting(list(waiting.values()))
                shown = now
            time.sleep(self._leases.poll_s)
        return {}


def find_missing(
    study: Study, store: Store, trial_ids: Collection[str] | None, *, retry_failed: bool
) -> list[Trial]:
    """Return the trials that a run trains, in the order in which they start.

    Of a search they are the trials at the ends of its dimensions.
    """
    if study.search is not None:
        return study.boundary_trials()
    statuses = {trial: status for trial, (status, _) in store.latest_attempts().items()}
    missing, turns = (
        trials_to_run(study, store, statuses, only=trial_ids, retry_failed=retry_failed),
        start_turns(study),
    )
    return sorted(missing, key=lambda trial: turns[trial.id])
