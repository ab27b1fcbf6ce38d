"""Where cohorts come from: a grid's missing trials, sized so that handing them out costs nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from ..core.events import Event
from ..trial.outcome import Job

GROW_BELOW_S, SHRINK_ABOVE_S = 5.0, 20.0
"""Cohorts that end sooner make the next ones twice as large, those that last longer half as large."""

MAX_COHORT_TRIALS = 64
"""Trials of a cohort at most."""


class CohortSource(Protocol):
    """Hands out cohorts and learns how they end; a search chooses the next by it."""

    def next_cohort(self) -> tuple[str, list[Job]] | None:
        """A name and the tasks of the next cohort; None when there are no more."""
        ...

    def should_prune(self, name: str, epoch: int, value: float) -> bool:
        """Whether a cohort whose metric has this value after an epoch is to be given up."""
        ...

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        """Take note that a cohort is over; `completed` unless it was given up early. What follows."""
        ...


class GridCohorts:
    """The given tasks in their order; cohorts grow while they are short."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._tasks, self._next, self._size = list(jobs), 0, 1
        self._since: dict[str, float] = {}

    def next_cohort(self) -> tuple[str, list[Job]] | None:
        """The next tasks; fewer towards the end, so that no worker is left with many."""
        left = len(self._tasks) - self._next
        if not left:
            return None
        size = min(self._size, max(1, left // 8))
        name, tasks = f"cohort {self._next}", self._tasks[self._next : self._next + size]
        self._next += size
        self._since[name] = time.monotonic()
        return name, tasks

    def should_prune(self, name: str, epoch: int, value: float) -> bool:
        """Never: every trial of a grid is wanted."""
        return False

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        """Size the next cohorts by the time that this one took."""
        took = time.monotonic() - self._since.pop(name)
        if took < GROW_BELOW_S:
            self._size = min(2 * self._size, MAX_COHORT_TRIALS)
        elif took > SHRINK_ABOVE_S:
            self._size = max(self._size // 2, 1)
        return []
