"""Sources of the trials that a run trains: a grid here, or a search in `search/`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ...studies.planning.time_estimates import MIN_INFORMATIVE_FLOPS
from ...studies.resolve.costs import max_trial_flops
from ...studies.resolve.trial import Trial
from ..core.events import Event
from ..trial.outcome import Job


class TrialSource(Protocol):
    """Interface of a grid or a search that hands out trials one by one, and is told when they end."""

    needs_results: bool
    """whether the next trial may depend on the results of the last one, which must then be stored"""

    def next_job(self, workers: int = 1) -> Job | None:
        """Return the next trial to train, or None if there is none now."""
        ...

    def may_have_more(self) -> bool:
        """Return whether more trials may follow once a running one ends."""
        return False

    def job_ended(self, job: Job, *, paused_at: int | None) -> list[Event]:
        """Record that a worker has ended a trial, or paused it after an epoch; return the next events."""
        ...


def expected_work(trial: Trial) -> float:
    """Return an upper bound of a trial's FLOPs.

    Tiny steps count as the smallest step whose time can be predicted from FLOPs.
    """
    settings = trial.settings
    steps = settings.train.epochs * settings.train.steps_per_epoch
    return max(max_trial_flops(settings), steps * MIN_INFORMATIVE_FLOPS)


class GridTrials(TrialSource):
    """The missing trials of a grid.

    One worker gets them in the order of their turns. Several workers get the largest trials of a turn first,
    so that they end together.
    """

    needs_results = False

    def __init__(self, jobs: Sequence[Job], *, work: Callable[[Trial], float] = expected_work) -> None:
        self._jobs, self._work, self._is_sorted = deque(jobs), work, False

    def next_job(self, workers: int = 1) -> Job | None:
        """Return the next trial in the order for this number of workers."""
        if workers > 1 and not self._is_sorted:
            self._jobs = deque(sorted(self._jobs, key=lambda job: (job.turn, -self._work(job.trial))))
            self._is_sorted = True
        return self._jobs.popleft() if self._jobs else None

    def job_ended(self, job: Job, *, paused_at: int | None) -> list[Event]:
        """Return no events: the trials of a grid do not depend on each other."""
        return []
