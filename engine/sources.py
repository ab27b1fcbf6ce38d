"""Where cohorts come from: a grid's missing trials, sized so that handing them out costs nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from .events import Event
from .outcome import Task

SHORT_S, LONG_S = 5.0, 20.0
"""Cohorts that end sooner make the next ones twice as large, those that last longer half as large."""

LARGEST = 64
"""Trials of a cohort at most."""


class Source(Protocol):
    """Hands out cohorts and learns how they end; a search chooses the next by it."""

    def next_cohort(self) -> tuple[str, list[Task]] | None:
        """A name and the tasks of the next cohort; None when there are no more."""
        ...

    def judge(self, name: str, epoch: int, value: float) -> bool:
        """Whether a cohort whose metric has this value after an epoch is to be given up."""
        ...

    def cohort_ended(self, name: str, *, whole: bool) -> list[Event]:
        """Take note that a cohort is over; `whole` unless it was given up early. What follows from that."""
        ...


class Grid:
    """The given tasks in their order; cohorts grow while they are short."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks, self._next, self._size = list(tasks), 0, 1
        self._since: dict[str, float] = {}

    def next_cohort(self) -> tuple[str, list[Task]] | None:
        """The next tasks; fewer towards the end, so that no worker is left with many."""
        left = len(self._tasks) - self._next
        if not left:
            return None
        size = min(self._size, max(1, left // 8))
        name, tasks = f"cohort {self._next}", self._tasks[self._next : self._next + size]
        self._next += size
        self._since[name] = time.monotonic()
        return name, tasks

    def judge(self, name: str, epoch: int, value: float) -> bool:
        """Never: every trial of a grid is wanted."""
        return False

    def cohort_ended(self, name: str, *, whole: bool) -> list[Event]:
        """Size the next cohorts by the time that this one took."""
        took = time.monotonic() - self._since.pop(name)
        if took < SHORT_S:
            self._size = min(2 * self._size, LARGEST)
        elif took > LONG_S:
            self._size = max(self._size // 2, 1)
        return []
