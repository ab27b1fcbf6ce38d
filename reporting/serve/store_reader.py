"""Reader of a store, shared by all viewers of its pages.

It reads the store again only when files have changed. Without a viewer nothing is read. A check costs a
folder listing, at most once a second. After a slow read the next one waits, so that pages take little from a
machine that trains.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import polars as pl

from ...storage import CheckpointNote, Store, StoreError, StoreState
from ...storage.latest_attempts import LatestAttempts
from ...studies.last_run import load_last_run
from ...studies.planning.reused_trials import find_stale_trials
from ...studies.planning.status import study_outcomes
from ...studies.planning.trials_to_run import read_unfinished
from ...studies.resolve.trial import Trial
from ...studies.study import Study, follow_rounds
from ...studies.text.errors import StudyError

LOOK_S, LOOK_AT_BUCKET_S = 1.0, 10.0
"""The seconds between two checks of a store in a folder, and in a bucket, where each check is a request."""

REFRESH_FACTOR, MAX_AGE_S = 5, 10.0
"""The next read waits for this multiple of the last read's time, up to a limit in seconds."""

LEASES_SKIPPED = 5
"""The checks of a store between two readings of its leases, which name the process that trains a trial.

When a trial begins, the leases are read at once.
"""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyNow:
    """A study at one moment, with its outcomes and its unfinished trials.

    `rows` is a text that changes with the outcomes, and `begun_key` one that changes with the begun trials.
    `added` are the trials of added seeds that have begun or ended. `others` has outcomes that are not of the
    study's trials: those of added seeds, which decide claims and tables, and those from a different version
    of a plug-in, which do not count. `probed` says that models of the store, of any study, have been probed
    or tuned.
    """

    study: Study
    store: Store
    outcomes: pl.DataFrame
    others: pl.DataFrame
    added: tuple[Trial, ...]
    begun: tuple[BegunTrial, ...]
    probed: bool
    rows: str
    begun_key: str

    @property
    def key(self) -> str:
        """Return a text that changes with the study's outcomes and unfinished trials."""
        return f"{self.rows}-{self.begun_key}"

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Return all trials of a grid, with those of added seeds, or the unfinished trials of a search."""
        if self.study.search is not None:
            return tuple(each.trial for each in self.begun)
        return (*self.study.trials, *self.added)

    def rows_by_trial(self) -> dict[str, dict[str, Any]]:
        """Return the row of each trial that has ended, including trials of added seeds."""
        added = self.others.filter(pl.col("trial").is_in([trial.id for trial in self.added]))
        return {row["trial"]: row for row in pl.concat([self.outcomes, added]).iter_rows(named=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreNow:
    """The studies in a store at one moment.

    A study that cannot be read is a StudyError. `read_at` is the time of reading.
    """

    studies: Mapping[str, StudyNow | StudyError]
    read_at: datetime


class StoreReader:
    """Reader of a store, shared by several threads.

    While one thread reads, the others get the last snapshot.
    """

    def __init__(self, store: Store, look_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare to read the store. `current` checks it at most every `look_s` seconds."""
        self._store, self._clock, self._look_s = store, clock, look_s
        self._reading = threading.Lock()
        self._due, self._leases_due = -1.0, -1.0
        self._leases = store.watched_leases()
        self._state: StoreState | None = None
        self._latest: LatestAttempts | None = None
        self._loaded: dict[str, tuple[int, Study | StudyError]] = {}
        self._notes: dict[str, tuple[int, CheckpointNote | None]] = {}
        self._trials: dict[str, Trial | None] = {}
        self._later: dict[str, tuple[Study, list[Trial]]] = {}
        self._held: frozenset[str] = frozenset()
        self._snapshot: StoreNow | None = None

    def current(self) -> StoreNow:
        """Return a recent snapshot of the store. Raise StoreError if the store cannot be read."""
        if self._snapshot is None or self._clock() >= self._due:
            if self._snapshot is None:
                self._reading.acquire()
            elif not self._reading.acquire(blocking=False):
                return self._snapshot
            try:
                # another thread may have read the store while this one waited
                if self._clock() >= self._due:
                    self._look()
            finally:
                self._reading.release()
        assert self._snapshot is not None
        return self._snapshot

    def _look(self) -> None:
        begun_at = self._clock()
        try:
            state = self._store.state()
            held = self._held_trials(state)
            if self._snapshot is None or state != self._state or held != self._held:
                self._held = held
                self._snapshot = self._read(state)
                self._state = state
        finally:
            now = self._clock()
            # also after an error, so that an unreadable store is not read in a loop
            self._due = now + max(self._look_s, min(REFRESH_FACTOR * (now - begun_at), MAX_AGE_S))

    def _read(self, state: StoreState) -> StoreNow:
        latest, before = self._latest, self._state
        if latest is None or (before is not None and before.rows - state.rows):  # removed, or merged
            latest = self._store.follow()
        elif before is not None and state.rows != before.rows:
            latest.refresh()
        self._latest = latest
        outcomes = latest.trials()
        begun = [
            trial for trial in state.notes if trial not in latest or latest[trial]["status"] == "incomplete"
        ]
        notes = {trial: self._note(trial, state.notes[trial]) for trial in begun}
        studies: dict[str, StudyNow | StudyError] = {}
        for name in state.studies:
            study = self._load(name, state.records.get(name, 0))
            if isinstance(study, StudyError):
                studies[name] = study
            else:
                studies[name] = self._now(study, outcomes, notes, state)
        return StoreNow(studies=studies, read_at=datetime.now(UTC))

    def _now(
        self,
        study: Study,
        outcomes: pl.DataFrame,
        notes: Mapping[str, CheckpointNote | None],
        state: StoreState,
    ) -> StudyNow:
        own = study_outcomes(study, outcomes)
        stale = [each.stored for each in find_stale_trials(study, outcomes).values()]
        later = self._later_trials(study)
        others = outcomes.filter(pl.col("trial").is_in([*stale, *(trial.id for trial in later)]))
        known = {*notes, *others["trial"]}
        added = tuple(trial for trial in later if trial.id in known)
        begun = [
            BegunTrial(trial=trial, note=notes[trial.id], held=trial.id in self._held)
            for trial in self._begun_trials(study, added, notes)
        ]
        ends = [each.select("trial", "attempt", "status").rows() for each in (own, others)]
        times = [(each.trial.id, state.notes[each.trial.id], each.held) for each in begun]
        return StudyNow(
            study=study,
            store=self._store,
            outcomes=own,
            others=others,
            added=added,
            begun=tuple(begun),
            probed=bool(state.measured),
            rows=_digest(ends, sorted(state.measured.items()), state.records.get(study.name, 0)),
            begun_key=_digest(times),
        )

    def _later_trials(self, study: Study) -> list[Trial]:
        known = self._later.get(study.name)
        if known is None or known[0] is not study:
            own = {trial.id for trial in study.trials}
            later = [trial for trial in study.with_later_seeds().trials if trial.id not in own]
            known = self._later[study.name] = (study, later)
        return known[1]

    def _begun_trials(
        self, study: Study, added: Sequence[Trial], notes: Mapping[str, CheckpointNote | None]
    ) -> Sequence[Trial]:
        """Return the study's unfinished trials, including trials of added seeds.

        The trials of a search are read from the folders of their checkpoints.
        """
        if study.search is None:
            return [trial for trial in (*study.trials, *added) if trial.id in notes]
        recorded = map(self._recorded_trial, notes)
        return [trial for trial in recorded if trial is not None and trial.study == study.name]

    def _recorded_trial(self, trial: str) -> Trial | None:
        if trial not in self._trials:
            try:
                found = read_unfinished(self._store.files.checkpoint_dir(trial))
            except (OSError, StoreError):
                return None
            self._trials[trial] = found and found.trial
        return self._trials[trial]

    def _note(self, trial: str, written: int) -> CheckpointNote | None:
        """Return the progress of an unfinished trial.

        The process that trains the trial writes it as a note.

        The note's file is read again only if it has changed.
        """
        known = self._notes.get(trial)
        if known is None or known[0] != written:
            found = self._store.files.checkpoint_note(trial) if written else None
            known = self._notes[trial] = (written, found)
        return known[1]

    def _load(self, name: str, recorded: int) -> Study | StudyError:
        """Load a study as it was in its last run, or return the error.

        If its design has rounds, the rounds that followed are included.
        """
        known = self._loaded.get(name)
        if known is None or known[0] != recorded:
            try:
                known = (recorded, load_last_run(name, self._store))
            except StudyError as error:
                known = (recorded, error)
            self._loaded[name] = known
        found = known[1]
        try:
            return found if isinstance(found, StudyError) else follow_rounds(found, self._store)
        except StudyError as error:
            return error

    def _held_trials(self, state: StoreState) -> frozenset[str]:
        now = self._clock()
        if self._latest is None:
            self._latest = self._store.follow()
        if (
            now < self._leases_due
            and self._state is not None
            and state.notes.keys() == self._state.notes.keys()
        ):
            return self._held
        self._leases_due = now + LEASES_SKIPPED * self._look_s
        latest = self._latest
        found = {trial: self._leases.find(trial, latest.last_number(trial) + 1) for trial in state.notes}
        return frozenset(
            trial for trial, lease in found.items() if lease is not None and not (lease.ended or lease.gone)
        )


def _digest(*values: object) -> str:
    return sha256(json.dumps(values, default=str).encode()).hexdigest()[:16]
