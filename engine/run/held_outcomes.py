"""Held outcomes: short trials that end soon after one another are stored together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ...storage import Store
from ..core.events import Ended, Event, MachineFailed
from ..core.interruption import StoppedMidway
from ..trial.machine_failures import MachineError, storing
from ..trial.resumable_attempt import Attempt

FLUSH_S = 1.0
"""The least seconds between two flushes; outcomes wait no longer than until the next step after it."""


class HeldOutcomes:
    """The trials of a worker that have ended and are not stored yet; they are reported once they are.

    Until then a trial keeps its lease and its checkpoint: if the worker dies, it is resumed and ends again.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._flushed_at = -FLUSH_S
        self._held: dict[str, Attempt] = {}
        self._untold: dict[str, Event] = {}

    def add(self, attempt: Attempt) -> None:
        """Hold an attempt that has ended."""
        self._held[attempt.job.trial.id] = attempt

    def flush_if_due(self) -> None:
        """Store what is held, if the last flush is long enough ago; raises MachineError."""
        if self._held and self._clock() - self._flushed_at >= FLUSH_S:
            self._flush()

    def told(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield events, ends of trials once these are stored, up to a failure of the machine."""
        try:
            for event in events:
                if isinstance(event, Ended) and event.trial in self._held:
                    self._untold[event.trial] = event
                else:
                    yield event
                for stored in self._tell(self.flush_if_due):
                    yield stored
                    if isinstance(stored, MachineFailed):
                        return
        except StoppedMidway:
            yield from self.flush()
            raise
        yield from self.flush()

    def flush(self) -> list[Event]:
        """Store all that is held; return the events of it."""
        return self._tell(self._flush)

    def _tell(self, flush: Callable[[], None]) -> list[Event]:
        try:
            flush()
        except MachineError as error:
            return [MachineFailed(reason=str(error))]
        stored = [trial for trial in self._untold if trial not in self._held]
        return [self._untold.pop(trial) for trial in stored]

    def _flush(self) -> None:
        """Store what is held and still this process's; after a failure nothing is held or reported."""
        held, self._held = self._held, {}
        untold, self._untold = self._untold, {}
        taken = {trial: event for trial, each in held.items() if (event := each.leave_if_lost()) is not None}
        kept = [attempt for trial, attempt in held.items() if trial not in taken]
        with storing():
            if len(kept) == 1:
                self._store.write(*kept[0].outcome)
            elif kept:
                self._store.write_together([attempt.outcome for attempt in kept])
        for attempt in kept:
            attempt.close()
        self._flushed_at = self._clock()
        self._untold = untold | {trial: event for trial, event in taken.items() if trial in untold}
