"""Buffer of finished trials: short trials are stored together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ...storage import Store
from ..core.events import Event
from ..trial.failures import MachineError, storing
from ..trial.resumable_attempt import Attempt

FLUSH_S = 1.0
"""The minimum seconds between two flushes; an outcome waits at most until the first step after that."""


class OutcomeBuffer:
    """Buffer of a worker's finished trials, which are stored together.

    A trial is reported as ended only after its outcome is stored. Until then a trial keeps its lease and its
    checkpoint: if the worker dies, the trial is resumed and ends again.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._flushed_at = -FLUSH_S
        self._attempts: dict[str, Attempt] = {}
        self._waiting: dict[str, Event] = {}

    def add(self, attempt: Attempt) -> None:
        """Add a finished attempt to the buffer."""
        self._attempts[attempt.job.trial.id] = attempt

    def flush_if_due(self) -> None:
        """Store the buffered outcomes if this is due again; raise MachineError if they cannot be stored."""
        if self._attempts and self._clock() - self._flushed_at >= FLUSH_S:
            self._flush()

    def stored(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield these events, a machine failure as the last; delay ends of trials that are not stored yet.

        A caller that has no more events calls `flush`.
        """
        for event in events:
            if event.kind == "ended" and event.run.trial in self._attempts:
                self._waiting[event.run.trial] = event
            else:
                yield event
            for stored in self._tell(self.flush_if_due):
                yield stored
                if stored.kind == "machine_failed":
                    return

    def flush(self) -> list[Event]:
        """Store all buffered outcomes, and return their events."""
        return self._tell(self._flush)

    def _tell(self, flush: Callable[[], None]) -> list[Event]:
        try:
            flush()
        except MachineError as error:
            return [Event(kind="machine_failed", reason=str(error))]
        stored = [trial for trial in self._waiting if trial not in self._attempts]
        return [self._waiting.pop(trial) for trial in stored]

    def _flush(self) -> None:
        """Store the buffered outcomes. Leave out trials that another process has taken over.

        If that fails, drop all buffered outcomes and do not report that their trials have ended.
        """
        # empty the buffer first: after an error, nothing in it may be stored or reported
        held, self._attempts = self._attempts, {}
        waiting, self._waiting = self._waiting, {}
        taken = {trial: attempt.drop() for trial, attempt in held.items() if attempt.is_lost()}
        kept = [attempt for trial, attempt in held.items() if trial not in taken]
        rows = [attempt.outcome for attempt in kept if attempt.outcome is not None]
        with storing():
            if rows:
                self._store.write_together(rows)
        for attempt in kept:
            attempt.close()
        self._flushed_at = self._clock()
        self._waiting = waiting | {trial: event for trial, event in taken.items() if trial in waiting}
