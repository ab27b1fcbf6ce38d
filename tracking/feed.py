"""Listener that sends the events of a running study to trackers.

Each tracker has a thread and a queue.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Literal

from ..engine.core.events import ClaimedElsewhere, Ended, EpochFinished, Event, Listener, Relay, Started
from ..studies.resolve.trial import Trial
from ..studies.schema.factors import level_name
from ..studies.text.units import truncate
from .contract import Setting, TrackedEnd, TrackedTable, TrackedTrial, Tracker

MAX_QUEUED = 10_000
"""The largest length of the queue; further events are dropped."""

RETRY_S = 30.0
"""Seconds before a failed tracker is tried again; events in between are dropped."""

MAX_REASON_WIDTH = 160
"""The largest number of characters of a tracker's error message, since servers send long ones."""

CLOSE_S = 20.0
"""The time limit in seconds for sending the queue at the end of a run."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerUpdate:
    """An update to send to a tracker: an event of one trial, or new tables of a study.

    `what` names the event: a trial begins or resumes after `epoch` epochs, reports the metrics of an epoch,
    ends, or is left for another process to resume.
    """

    what: Literal["begun", "measured", "ended", "left", "tables"]
    study: str = ""
    trial: TrackedTrial | None = None
    epoch: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    end: TrackedEnd | None = None
    tables: Sequence[TrackedTable] = ()
    at: float = 0.0


class TrackerThread:
    """Thread that passes updates to a tracker, in the order in which `put` receives them.

    A tracker that raises an exception is reported once in the log, and tried again later. `lacks_data` says
    whether the tracker did not receive an update, or lacks epochs before the first one. No epoch is sent
    twice, because the tracker says first which epochs it has.
    """

    def __init__(self, name: str, tracker: Tracker) -> None:
        self.name, self.error, self.lacks_data = name, "", False
        self._tracker = tracker
        self._queue: SimpleQueue[TrackerUpdate | None] = SimpleQueue()
        self._open: dict[str, tuple[TrackedTrial, set[int]]] = {}
        self._silent_until = float("-inf")
        self._thread = threading.Thread(target=self._work, name=f"tracking {name}", daemon=True)
        self._thread.start()

    def put(self, update: TrackerUpdate) -> None:
        """Queue an update without waiting. If the queue is full, drop the update."""
        # the queue itself has no limit; its size is only approximate, which is enough
        if self._queue.qsize() < MAX_QUEUED:
            self._queue.put(update)
        else:
            self._drop(update)

    def close(self) -> bool:
        """Send the queued updates, pause open trials and end the thread.

        Return False if the time limit ends first.
        """
        self._queue.put(None)
        # after the limit the process may end all the same, because the thread is a daemon
        self._thread.join(CLOSE_S)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (update := self._queue.get()) is not None:
            if time.monotonic() < self._silent_until or not self._try(update):
                self._drop(update)
        for trial, _ in tuple(self._open.values()):
            self._try(TrackerUpdate(what="left", trial=trial))
        with suppress(Exception):  # what it has received is already known
            self._tracker.close()

    def _try(self, update: TrackerUpdate) -> bool:
        try:
            self._send(update)
        except Exception as error:  # noqa: BLE001 -- whatever a library raises, a training goes on
            reason = (str(error).splitlines() or [""])[0]
            earlier, self.error = self.error, truncate(f"{type(error).__name__}: {reason}", MAX_REASON_WIDTH)
            self._silent_until = time.monotonic() + RETRY_S
            if update.trial is not None:
                self._open.pop(update.trial.id, None)  # its next update opens it again
            if not earlier:
                _log.warning("%s cannot be reached; training continues: %s", self.name, self.error)
            return False
        return True

    def _send(self, update: TrackerUpdate) -> None:
        match update:
            case TrackerUpdate(what="begun", trial=TrackedTrial() as trial):
                self._known(trial, update.epoch, update.at)
            case TrackerUpdate(what="measured", trial=TrackedTrial() as trial):
                known = self._known(trial, update.epoch - 1, update.at)
                if update.epoch not in known:
                    self._tracker.log(trial, update.epoch, update.metrics, update.at)
                    known.add(update.epoch)
            case TrackerUpdate(what="ended", trial=TrackedTrial() as trial, end=TrackedEnd() as end):
                self._known(trial, 0, update.at)
                self._tracker.end(trial, end)
                del self._open[trial.id]
            case TrackerUpdate(what="left", trial=TrackedTrial() as trial):
                if self._open.pop(trial.id, None):
                    self._tracker.pause(trial)
            case _:
                self._tracker.show_tables(update.study, update.tables)

    def _known(self, trial: TrackedTrial, before: int, at: float) -> set[int]:
        """Open a trial if it is not open, and return the epochs that the tracker already has.

        It should have all epochs up to `before`.
        """
        if trial.id not in self._open:
            known = set(self._tracker.known(trial).epochs)
            self._tracker.begin(trial, at)
            self._open[trial.id] = trial, known
            self.lacks_data |= not known.issuperset(range(1, before + 1))
        return self._open[trial.id][1]

    def _drop(self, update: TrackerUpdate) -> None:
        # the start of a trial is sent again with its next update
        self.lacks_data |= update.what in ("measured", "ended", "tables")


class Tracking(Relay):
    """Listener in the driver's process that forwards events to trackers without waiting for them."""

    def __init__(self, listener: Listener, trackers: Mapping[str, Tracker]) -> None:
        super().__init__(listener)
        self._trials: dict[str, TrackedTrial] = {}
        self._threads = [TrackerThread(name, tracker) for name, tracker in trackers.items()]

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Remember these trials, because events name trials only by their ids."""
        self._trials |= {trial.id: tracked_trial(trial) for trial in trials}
        super().on_planned(trials)

    def on_event(self, event: Event) -> None:
        """Pass an event to the wrapped listener, and add it to the queue of each tracker."""
        super().on_event(event)
        if (update := self._update_for(event, time.time())) is not None:
            self._send(update)

    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Send a study's tables to the trackers."""
        if tables:
            self._send(TrackerUpdate(what="tables", study=study, tables=tables))

    def close(self) -> list[str]:
        """Send the queued updates within a time limit.

        Return a line for each tracker with missing data.
        """
        return [line for thread in self._threads if (line := _close(thread))]

    def _send(self, update: TrackerUpdate) -> None:
        for thread in self._threads:
            thread.put(update)

    def _update_for(self, event: Event, now: float) -> TrackerUpdate | None:
        match event:
            case Started():
                return TrackerUpdate(what="begun", trial=self._trials[event.trial], epoch=event.epoch, at=now)
            case EpochFinished():
                trial, epoch = self._trials[event.trial], event.epoch
                return TrackerUpdate(what="measured", trial=trial, epoch=epoch, metrics=event.metrics, at=now)
            case Ended():
                end = TrackedEnd(status=event.status, reason=event.reason, metrics=event.metrics, at=now)
                return TrackerUpdate(what="ended", trial=self._trials[event.trial], end=end, at=now)
            case ClaimedElsewhere() if event.trial in self._trials:
                return TrackerUpdate(what="left", trial=self._trials[event.trial])
            case _:
                return None


@contextmanager
def tracking(
    listener: Listener, trackers: Mapping[str, Tracker], tell: Callable[[str], None]
) -> Iterator[Tracking]:
    """Track a study within a context. At the end, `tell` gets a line for each tracker that lacks data."""
    tracked = Tracking(listener, trackers)
    try:
        yield tracked
    finally:
        for line in tracked.close():
            tell(line)


def _close(thread: TrackerThread) -> str | None:
    """Close a tracker's thread; return a sentence about data that the tracker did not receive, or None."""
    over = thread.close()
    texts = ["has not received all data"] if thread.lacks_data else []
    texts += [] if over else [f"was still receiving data after {CLOSE_S:g} s"]
    if not texts:
        return None
    why = f" ({thread.error})" if thread.error else ""
    return f"{thread.name} {' and '.join(texts)}{why}; activemem study export adds what is missing"


_MAX_NAME_LENGTH = 80
_NOT_IN_NAMES = re.compile(r"[^\w.=+-]+", re.ASCII)


def tracked_trial(trial: Trial) -> TrackedTrial:
    """Return a trial in the form for trackers, which is a flat list of settings.

    Settings have names such as `train.batch_size`; the levels of the trial are also settings.
    """
    levels = {name: level_name(level) for name, level in trial.levels.items()}
    named = {**levels, "seed": str(trial.settings.seed)}
    words = _NOT_IN_NAMES.sub("_", ",".join(f"{name}={text}" for name, text in named.items()))
    settings = dict(_flat("", trial.settings.model_dump(mode="json")))
    return TrackedTrial(
        id=trial.id,
        study=trial.study,
        name=f"{words[:_MAX_NAME_LENGTH]}-{trial.id}",
        settings={**settings, **trial.levels, "seed": trial.settings.seed},
    )


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Setting]]:
    """Yield every setting that is not None: its dotted name and its value. Lists become JSON text."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value)
        elif isinstance(value, list):
            yield prefix + name, json.dumps(value)
        elif value is not None:
            yield prefix + name, value
