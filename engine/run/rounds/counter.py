"""What a run hears of: what ends, what others train, and whether it is to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from ....studies.resolve.trial import Trial
from ...core.events import Ended, Event, Listener, MachineFailed, Relay, Taken
from ..interrupts import Stop

ENDED_BETWEEN_LOOKS = 32
"""When so many more trials have ended, it is seen whether their files are to be merged."""


class RunCounter(Relay):
    """Passes everything on, notes what ends and what others train, and asks for a stop where it must.

    It has the files of what has ended merged now and then, so that a folder never holds thousands.
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
        """Whether as many trials have failed as are allowed."""
        failed = list(self.ended.values()).count("failed")
        return self._max_failures is not None and failed >= self._max_failures

    def pop_taken(self) -> dict[str, Taken]:
        """What others train, as heard of since the last call."""
        taken, self.taken = self.taken, {}
        return taken

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Note them as trials of this run."""
        self.planned.update(trial.id for trial in trials)
        super().on_planned(trials)

    def on_event(self, event: Event) -> None:
        """Note what ends and what others train."""
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
