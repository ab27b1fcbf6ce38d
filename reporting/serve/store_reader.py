"""Reader of a store, shared by all viewers of its pages.

It reads the store again only when files have changed. Without a viewer nothing is read. A check costs a
folder listing, at most once a second. After a slow read the next one waits, so that pages take little from a
machine that trains.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from hashlib import sha256

from ...storage import Store, StoreState
from ...storage.read import LatestAttempts
from ...studies.last_run import load_or_error
from ...studies.planning.status import study_outcomes, unfinished_of
from ...studies.sections import SECTIONS
from ...studies.study import Study
from ...studies.text.errors import StudyError
from ..snapshot import Snapshot
from .study_now import BegunTrial, StudyNow

REFRESH_FACTOR, MAX_AGE_S = 5, 10.0
"""The next read waits for this multiple of the last read's time, up to a limit in seconds."""


StoreNow = Mapping[str, StudyNow | StudyError]
"""The studies in a store at one moment, by name. A study that cannot be read is a StudyError."""


class StoreReader:
    """Reader of a store, shared by several threads. While one reads, the others get the last snapshot."""

    def __init__(self, store: Store, look_s: float) -> None:
        """Prepare to read the store. `current` checks it at most every `look_s` seconds."""
        self._store, self._look_s = store, look_s
        self._reading = threading.Lock()
        self._due = -1.0
        self._leases = store.leases(None)
        self._latest: LatestAttempts | None = None
        self._read_state: tuple[StoreState, frozenset[str]] | None = None
        self._loaded: dict[str, tuple[int, Study | StudyError]] = {}
        self._snapshots: dict[str, tuple[str, Snapshot]] = {}
        self._snapshot: StoreNow | None = None
        self._fault: Exception | None = None

    def current(self) -> StoreNow:
        """Return a recent snapshot of the store. Raise what its last reading raised, such as StoreError."""
        is_first = self._snapshot is None and self._fault is None
        if time.monotonic() >= self._due and self._reading.acquire(blocking=is_first):
            try:
                # another thread may have read the store while this one waited
                if time.monotonic() >= self._due:
                    self._look()
            finally:
                self._reading.release()
        if self._fault is not None:
            raise self._fault.with_traceback(None)
        assert self._snapshot is not None
        return self._snapshot

    def _look(self) -> None:
        begun_at = time.monotonic()
        try:
            state = self._store.state()
            latest = self._follow(state)
            held = self._leases.held({trial: latest.last_number(trial) + 1 for trial in state.notes})
            if self._read_state != (state, held):
                self._snapshot = self._read(state, latest, held)
                self._read_state = state, held
            self._fault = None
        except Exception as error:  # noqa: BLE001 -- it is raised for each viewer, until the store is read again
            self._fault = error
        finally:
            now = time.monotonic()
            # also after an error, so that an unreadable store is not read in a loop
            self._due = now + max(self._look_s, min(REFRESH_FACTOR * (now - begun_at), MAX_AGE_S))

    def _follow(self, state: StoreState) -> LatestAttempts:
        """Return the latest attempts. Only new files are read, unless files were removed or merged."""
        before = self._read_state[0].rows if self._read_state else frozenset[str]()
        if self._latest is None or before - state.rows:
            self._latest = self._store.follow()
        elif state.rows != before:
            self._latest.refresh()
        return self._latest

    def _read(self, state: StoreState, latest: LatestAttempts, held: frozenset[str]) -> StoreNow:
        outcomes = latest.trials()
        unfinished = {
            trial: self._store.files.checkpoint_note(trial) if written else None
            for trial, written in state.notes.items()
            if trial not in latest or latest[trial]["status"] == "incomplete"
        }
        studies: dict[str, StudyNow | StudyError] = {}
        for name in state.studies:
            study = self._load(name, state.records.get(name, 0))
            if isinstance(study, StudyError):
                studies[name] = study
                continue
            every = study.with_later_seeds()
            found = unfinished_of(study, self._store, ()) if study.search else []
            begun = tuple(
                BegunTrial(trial=trial, note=unfinished[trial.id], held=trial.id in held)
                for trial in (*every.trials, *found)
                if trial.id in unfinished
            )
            known = latest.trials(name) if study.search else outcomes
            ended = study_outcomes(every, known)
            ends = ended.select("trial", "attempt", "status").rows()
            rows = _digest(ends, sorted(state.measured.items()), state.records.get(name, 0))
            times = [(each.trial.id, state.notes[each.trial.id], each.held) for each in begun]
            studies[name] = StudyNow(
                study=study,
                store=self._store,
                outcomes=study_outcomes(study, known),
                ended=ended,
                begun=begun,
                rows=rows,
                key=f"{rows}-{_digest(times)}",
            )
        return studies

    def snapshot(self, study: Study, rows: str) -> Snapshot:
        """Return a study's results, which are read again only if `rows` of StudyNow has changed."""
        known = self._snapshots.get(study.name)
        if known is None or known[0] != rows:
            known = self._snapshots[study.name] = (rows, Snapshot.of(study, self._store))
        return known[1]

    def _load(self, name: str, recorded: int) -> Study | StudyError:
        """Load a study as it was in its last run, or return the error."""
        known = self._loaded.get(name)
        if known is None or known[0] != recorded:
            known = self._loaded[name] = (recorded, load_or_error(name, self._store, SECTIONS))
        return known[1]


def _digest(*values: object) -> str:
    return sha256(json.dumps(values, default=str).encode()).hexdigest()[:16]
