"""The rounds of a run: what is missing is trained, then what other drivers leave, until nothing is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ....storage import Store
from ....studies.planning.shorter_trials import ShorterTrials
from ....studies.planning.trials_to_run import trials_to_run
from ....studies.resolve.trial import Trial
from ....studies.study import Study
from ...core.events import Taken
from ...trial.checkpoints import STARTS_FILE, checkpoint_of, dies_often
from ...trial.machine_failures import lost_gpu
from ...trial.outcome import Job
from ..cohort_sources import BegunCohorts, CohortSource
from ..interrupts import Stop
from ..other_drivers import OtherDrivers
from .counter import RunCounter


class RunRounds:
    """Trains what is missing: first all that is free, then what other drivers leave, until nothing is."""

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
        self._others = OtherDrivers(store, self._id, counter)
        self._made = dict[str, Job]()  # by trial

    def train(
        self,
        missing: Sequence[Trial],
        last: Mapping[str, int],
        max_trials: int | None,
        *,
        retry_failed: bool,
    ) -> list[str]:
        """Train what is missing of a grid, or search; why cohorts were given up. What is left has stopped."""
        try:
            if self._study.search is None:
                return self.train_grid(missing, last, max_trials)
            return self.search(max_trials, retry_failed=retry_failed)
        finally:
            if lost_gpu() is None:  # else whose kernel has failed is found as if the process had died
                self._record_stops()

    def _record_stops(self) -> None:
        """Note that what is left was not left by a death."""
        left = self._counter.planned - self._counter.ended.keys()
        with suppress(OSError):  # what cannot be written counts as a death
            for trial in self._store.files.trials_with_checkpoint(left):
                checkpoint_of(self._store, trial).record_stop()

    def train_grid(
        self, missing: Sequence[Trial], last: Mapping[str, int], max_trials: int | None
    ) -> list[str]:
        """Train these trials, at most so many, after the last attempts at them; why cohorts were given up."""
        free, elsewhere, given_up = self._jobs(missing, last), dict[str, Taken](), list[str]()
        left = len(free) if max_trials is None else max_trials
        while free and left > 0 and not self._stop.requested:
            now, free = free[:left], free[left:]
            self._counter.on_planned([job.trial for job in now])
            given_up += self._run(self._make_grid(now))
            taken = self._counter.pop_taken()
            left -= len(now) - len(taken)
            elsewhere |= {trial: event for trial, event in taken.items() if not event.ended}
            if not free and left > 0:
                found = self._others.wait(elsewhere, self._stop)
                free = [replace(self._made[trial], gone=gone) for trial, gone in found.items()]
                for trial in found:
                    del elsewhere[trial]
        return given_up

    def _jobs(self, missing: Sequence[Trial], last: Mapping[str, int]) -> list[Job]:
        """What is to be done for these trials, those first that no process has died of."""
        folder, shorter = self._store.files.checkpoints_folder(STARTS_FILE), ShorterTrials(self._store)
        jobs = [
            Job(
                trial=trial,
                attempt=last.get(trial.id, -1) + 1,
                run=self._id,
                keep_weights=self._study.keep_weights,
                keep_checkpoint=self._study.keep_checkpoints,
                shorter=shorter.find(trial),
            )
            for trial in sorted(missing, key=lambda trial: dies_often(folder / trial.id))
        ]
        self._made |= {job.trial.id: job for job in jobs}
        return jobs

    def search(self, max_trials: int | None, *, retry_failed: bool) -> list[str]:
        """Search until its points are tried, at most so many trials; why cohorts were given up."""
        from ..search.optuna_search import OptunaSearch  # noqa: PLC0415 -- Optuna is loaded for searches only

        given_up: list[str] = []
        gone: dict[str, int] = {}
        while True:
            left = None if max_trials is None else max_trials - len(self._counter.ended)
            source = OptunaSearch(
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
            taken = self._counter.pop_taken()
            if not taken or len(self._counter.ended) == max_trials:
                return given_up
            gone = self._others.wait(taken, self._stop)
            if self._stop.requested:
                return given_up


def find_missing(
    study: Study, store: Store, trial_ids: Collection[str] | None, *, retry_failed: bool
) -> list[Trial]:
    """The trials that a run is to train; of a search that asks a sampler the ends of its dimensions."""
    if study.search is not None:
        return study.boundary_trials()
    statuses = {trial: status for trial, (status, _) in store.latest_attempts().items()}
    return trials_to_run(study, store, statuses, only=trial_ids, retry_failed=retry_failed)
