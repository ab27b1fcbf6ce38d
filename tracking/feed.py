"""Listener that sends the events of a running study to trackers, each through a queue and a thread."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import cast

from ..engine.core.events import Event
from ..studies.resolve.trial import Trial
from ..studies.schema.factors import level_name
from ..studies.text.document import iter_leaves
from ..studies.text.units import truncate
from .contract import Known, Setting, TrackedEnd, TrackedTable, TrackedTrial, Tracker

MAX_REASON_WIDTH = 160
"""The largest number of characters of a tracker's error message, since servers send long ones."""

CLOSE_S = 20.0
"""The time limit in seconds for sending the queue at the end of a run."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _NewTables:
    study: str
    tables: Sequence[TrackedTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A trial that has ended, as it is stored: its metrics by epoch, and its end."""

    trial: TrackedTrial
    started: float
    course: Mapping[int, Mapping[str, float]]
    end: TrackedEnd


def send_record(record: StoredRecord, tracker: Tracker) -> int | None:
    """Send the missing epochs and the end of a trial, and return how many; None if nothing was missing."""
    known = tracker.known(record.trial)
    if known.ended is not None and known.ended < record.started:
        tracker.remove(record.trial)
        known = Known()
    new = {epoch: metrics for epoch, metrics in record.course.items() if epoch not in known.epochs}
    if known.status == record.end.status and not new:
        return None
    tracker.begin(record.trial, record.started)
    for epoch, metrics in new.items():
        tracker.log(record.trial, epoch, metrics, record.end.at)  # the store has no times of single epochs
    tracker.end(record.trial, record.end)
    return len(new)


_Update = tuple[Event | _NewTables | StoredRecord, TrackedTrial | None, float]
"""An update for a tracker: an event of a trial with its time, a stored trial, or new tables of a study."""


class TrackerThread:
    """Thread that passes updates to a tracker, in order.

    A tracker that raises an exception is reported in the log, and gets nothing more in this run. No epoch is
    sent twice, because the tracker says first which epochs it has.
    """

    def __init__(self, name: str, tracker: Tracker) -> None:
        self._name, self._tracker = name, tracker
        self._error, self._lacks_data = "", False
        self._queue: SimpleQueue[_Update | None] = SimpleQueue()
        self._open: dict[str, tuple[TrackedTrial, set[int]]] = {}
        self._thread = threading.Thread(target=self._work, name=f"tracking {name}", daemon=True)
        self._thread.start()

    def put(self, update: _Update) -> None:
        """Queue an update without waiting."""
        self._queue.put(update)

    def close(self) -> str | None:
        """Send the queued updates within a time limit, pause open trials, and end the thread.

        Return a sentence about data that the tracker has not received, or None.
        """
        self._queue.put(None)
        # after the limit the process may end all the same, because the thread is a daemon
        self._thread.join(CLOSE_S)
        texts = ["has not received all data"] if self._lacks_data else []
        texts += [f"was still receiving data after {CLOSE_S:g} s"] if self._thread.is_alive() else []
        if not texts:
            return None
        why = f" ({self._error})" if self._error else ""
        return f"{self._name} {' and '.join(texts)}{why}; activemem study export adds what is missing"

    def _work(self) -> None:
        while (update := self._queue.get()) is not None:
            try:
                if not self._error:
                    self._send(*update)
            except Exception as error:  # noqa: BLE001 -- whatever a library raises, a training goes on
                reason = (str(error).splitlines() or [""])[0]
                self._error = truncate(f"{type(error).__name__}: {reason}", MAX_REASON_WIDTH)
                _log.warning("%s cannot be reached; training continues: %s", self._name, self._error)
            if self._error:  # the start of a trial is sent again with its next update
                lost = update[0]
                self._lacks_data |= not isinstance(lost, Event) or lost.kind in ("epoch", "ended")
        for trial, _ in self._open.values():
            with suppress(Exception):  # what it has received is already known
                self._tracker.pause(trial)
        with suppress(Exception):
            self._tracker.close()

    def _send(self, event: Event | _NewTables | StoredRecord, trial: TrackedTrial | None, at: float) -> None:
        if isinstance(event, _NewTables):
            self._tracker.show_tables(event.study, event.tables)
            return
        if isinstance(event, StoredRecord):
            send_record(event, self._tracker)
            return
        assert trial is not None, "only tables and stored trials belong to no trial"
        run = event.run
        match event.kind:
            case "started":
                if run.epoch == 0 and trial.id not in self._open:
                    self._tracker.remove(trial)
                self._known(trial, run.epoch, at)
            case "epoch":
                known = self._known(trial, run.epoch - 1, at)
                if run.epoch not in known:
                    self._tracker.log(trial, run.epoch, run.metrics, at)
                    known.add(run.epoch)
            case "ended":
                self._known(trial, 0, at)
                end = TrackedEnd(status=run.status, reason=run.reason, metrics=run.metrics, at=at)
                self._tracker.end(trial, end)
                del self._open[trial.id]
            case "elsewhere":  # another process resumes it
                if self._open.pop(trial.id, None):
                    self._tracker.pause(trial)
            case _:
                pass

    def _known(self, trial: TrackedTrial, before: int, at: float) -> set[int]:
        """Open a trial if needed, and return the epochs that the tracker has of it.

        It should have all epochs up to `before`.
        """
        if trial.id not in self._open:
            known = set(self._tracker.known(trial).epochs)
            self._tracker.begin(trial, at)
            self._open[trial.id] = trial, known
            self._lacks_data |= not known.issuperset(range(1, before + 1))
        return self._open[trial.id][1]


class Tracking:
    """Listener that sends events to trackers without waiting for them. It is in the driver's process."""

    def __init__(self, trackers: Mapping[str, Tracker]) -> None:
        self._trials: dict[str, TrackedTrial] = {}
        self._threads = [TrackerThread(name, tracker) for name, tracker in trackers.items()]

    def __call__(self, event: Event) -> None:
        """Add an event of a trial to the queue of each tracker."""
        # events name trials only by their ids
        if event.kind == "planned":
            self._trials |= {trial.id: tracked_trial(trial) for trial in event.trials}
        elif (trial := self._trials.get(event.run.trial)) is not None:
            self._send((event, trial, time.time()))

    def send_stored(self, records: Sequence[StoredRecord]) -> None:
        """Send trials that had ended before this run to the trackers that lack them."""
        for record in records:
            self._send((record, None, time.time()))

    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Send a study's tables to the trackers."""
        if tables:
            self._send((_NewTables(study, tables), None, time.time()))

    def close(self) -> list[str]:
        """Send the queued updates within a time limit. Return a line for each tracker with missing data."""
        return [line for thread in self._threads if (line := thread.close())]

    def _send(self, update: _Update) -> None:
        for thread in self._threads:
            thread.put(update)


@contextmanager
def tracking(trackers: Mapping[str, Tracker], tell: Callable[[str], None]) -> Iterator[Tracking]:
    """Track a study within a context. Finally call `tell` with a line for each tracker that lacks data."""
    tracked = Tracking(trackers)
    try:
        yield tracked
    finally:
        for line in tracked.close():
            tell(line)


_MAX_NAME_LENGTH = 80
_NOT_IN_NAMES = re.compile(r"[^\w.=+-]+", re.ASCII)


def tracked_trial(trial: Trial) -> TrackedTrial:
    """Return a trial as trackers expect it, with a flat mapping of its settings.

    Settings have names such as `train.batch_size`; the levels of the trial are also settings. Lists become
    JSON text.
    """
    levels = {name: level_name(level) for name, level in trial.levels.items()}
    named = {**levels, "seed": str(trial.settings.seed)}
    words = _NOT_IN_NAMES.sub("_", ",".join(f"{name}={text}" for name, text in named.items()))
    settings = {
        ".".join(map(str, path)): json.dumps(value) if isinstance(value, list) else cast("Setting", value)
        for path, value in iter_leaves((), trial.settings.model_dump(mode="json"))
        if value is not None
    }
    return TrackedTrial(
        id=trial.id,
        study=trial.study,
        name=f"{words[:_MAX_NAME_LENGTH]}-{trial.id}",
        settings={**settings, **trial.levels, "seed": trial.settings.seed},
    )
