"""Cohorts: groups of trials that a worker receives together.

The missing trials of a grid form cohorts that are large enough to make scheduling cheap.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ...studies.planning.time_estimates import MIN_INFORMATIVE_FLOPS
from ...studies.resolve.costs import max_trial_flops
from ...studies.resolve.trial import Trial
from ..core.events import Event
from ..trial.outcome import Job

COHORT_S = 10.0
"""The training time that a cohort should take, estimated from earlier cohorts."""

MAX_COHORT_TRIALS = 64
"""The maximum number of trials in a cohort."""

ROUNDS = 3
"""A cohort has at most 1 / ROUNDS of a worker's share of the remaining work, so that all workers end
together."""

SCHEDULING_S = 0.02
"""The seconds that Tune needs to schedule a cohort; cohorts are long enough that no worker waits for it."""

_REMEMBERED = 8  # the number of latest cohorts, the slowest of which determines the size of the next


class CohortSource(Protocol):
    """Interface of a grid or a search that hands out cohorts to workers, and is told when they end."""

    def next_cohort(self, workers: int = 1) -> tuple[str, list[Job]] | None:
        """Return the name and the jobs of the next cohort, or None if there is none."""
        ...

    def may_have_more(self) -> bool:
        """Return whether more cohorts may follow once a running one ends."""
        return False

    def should_prune(self, name: str, epoch: int, value: float) -> bool:
        """Return whether to prune a cohort after this epoch, at which its metric is `value`."""
        return False

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        """Record the end of a cohort, and return the events that follow."""
        ...


def expected_work(trial: Trial) -> float:
    """Return an upper bound of a trial's FLOPs.

    Tiny steps count as the smallest step whose time can be predicted from FLOPs.
    """
    settings = trial.settings
    steps = settings.train.epochs * settings.train.steps_per_epoch
    return max(max_trial_flops(settings), steps * MIN_INFORMATIVE_FLOPS)


class GridCohorts(CohortSource):
    """The trials of a grid, divided into cohorts.

    One worker gets the jobs in order; several workers get the largest jobs first. A cohort has as much work
    as takes COHORT_S seconds, estimated from the speed of finished cohorts. Towards the end cohorts shrink,
    as in guided self-scheduling (Polychronopoulos and Kuck, 1987).
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        work: Callable[[Trial], float] = expected_work,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = [(work(job.trial), job) for job in jobs]
        self._left, self._next, self._is_sorted = sum(work for work, _ in self._jobs), 0, False
        self._clock = clock
        self._begun: dict[str, tuple[float, float]] = {}
        self._seconds_of_work, self._num_ended = deque[float](maxlen=_REMEMBERED), 0

    def next_cohort(self, workers: int = 1) -> tuple[str, list[Job]] | None:
        if self._next == len(self._jobs):
            return None
        if workers > 1 and not self._is_sorted:
            self._jobs[self._next :] = sorted(
                self._jobs[self._next :], key=lambda each: (each[1].turn, -each[0])
            )
            self._is_sorted = True
        limit = 0.0
        if self._seconds_of_work:
            second = 1 / max(self._seconds_of_work)  # the work of one second
            limit = min(COHORT_S * second, self._left / (ROUNDS * workers))
            # a single worker does not keep the scheduler busy
            limit = max(limit, self._minimum_work(second, workers)) if workers > 1 else limit
        first, taken = self._next, 0.0
        while self._next < len(self._jobs) and self._next - first < MAX_COHORT_TRIALS:
            if taken and taken + self._jobs[self._next][0] > limit:
                break
            taken += self._jobs[self._next][0]
            self._next += 1
        self._left -= taken
        name = f"cohort {first}"
        self._begun[name] = self._clock(), taken
        return name, [job for _, job in self._jobs[first : self._next]]

    def _minimum_work(self, second: float, workers: int) -> float:
        """Return the minimum work of a cohort, in FLOPs.

        With less work, scheduling would cost too much time. `second` is the work that one worker does in a
        second. Until as many cohorts have ended as there are workers, the minimum is at most a worker's share
        of the remaining work. Among cohorts that started together the shortest end first, and they say little
        about the speed.
        """
        least = SCHEDULING_S * second * workers
        return least if self._num_ended >= workers else min(least, self._left / workers)

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        begun, work = self._begun.pop(name)
        self._num_ended += 1
        # 1e-6, because the clock may not have moved
        self._seconds_of_work.append(max(self._clock() - begun, 1e-6) / work)
        return []
