"""Where cohorts come from: a grid's missing trials, sized so that handing them out costs nothing."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

from ...studies.planning.time_estimates import MIN_INFORMATIVE_FLOPS, TimeEstimator
from ...studies.resolve.costs import flops_of_test, max_training_flops
from ...studies.resolve.trial import Trial
from ..core.events import Event
from ..packs.form import form_of
from ..trial.outcome import Job

COHORT_S = 10.0
"""About so long a cohort trains, by what those before it took."""

MAX_COHORT_TRIALS = 64
"""Trials of a cohort at most."""

ROUNDS = 3
"""Of the work that is left, a cohort has at most this part of a worker's share, so that all end together."""

HANDING_OUT_S = 0.02
"""What Tune takes for a cohort, one after the other: cohorts are never so short that workers wait for it."""

FEW = 4
"""Of so many that train together a worker gets its share at once, whatever the work that is left."""

PACKS_OF_A_FORM = 2
"""A cohort has trials of one form for up to so many packs: lengths part them, and there are more of each."""

ROUNDS_OF_PACKS = 1.25
"""As `ROUNDS`, of trials that train together: many gain more, and so fewer rounds are worth it."""

_REMEMBERED = 8  # cohorts whose speed counts for the next; the slowest of them does


class CohortSource(Protocol):
    """Hands out cohorts and learns how they end; a search chooses the next by it."""

    def next_cohort(self, workers: int = 1) -> tuple[str, list[Job]] | None:
        """A name and the tasks of the next cohort for one of so many workers; None when there are no more."""
        ...

    def may_have_more(self) -> bool:
        """Whether the end of a cohort may lead to another, though there are no more now."""
        ...

    def should_prune(self, name: str, epoch: int, value: float) -> bool:
        """Whether a cohort whose metric has this value after an epoch is to be given up."""
        ...

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        """Take note that a cohort is over; `completed` unless it was given up early. What follows."""
        ...


Work = Callable[[Trial], float]
"""How much a trial is to others."""


def expected_work(trial: Trial) -> float:
    """The most operations of a trial, or those of steps that take longer than they say."""
    settings = trial.settings
    steps = settings.train.epochs * settings.train.steps_per_epoch
    return max(max_training_flops(settings) + flops_of_test(settings), steps * MIN_INFORMATIVE_FLOPS)


def measured_work(trials: Sequence[Trial], times: TimeEstimator) -> Work:
    """As `expected_work`, but that trials of which the plan has measured others count by their seconds.

    A second is as many operations as all those that are measured have in one.
    """
    found = {trial.id: times.estimate(trial) for trial in trials}
    measured = {trial: each for trial, each in found.items() if each.basis == "measured"}
    seconds = {trial: each.seconds for trial, each in measured.items() if each.seconds}
    if not seconds:
        return expected_work
    speed = sum(expected_work(trial) for trial in trials if trial.id in seconds) / sum(seconds.values())
    return lambda trial: speed * seconds[trial.id] if trial.id in seconds else expected_work(trial)


class GridCohorts:
    """The given tasks, for one worker in their order, for several the largest first.

    Cohorts have the work of COHORT_S seconds, known from those that have ended, less towards the end: the
    parts of what is left become smaller as in guided self-scheduling (Polychronopoulos and Kuck 1987).
    With `pack` those that train together are handed out together: to one worker all that a cohort has room
    for, to one of several what is its share of the work that is left.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        pack: int = 1,
        work: Work = expected_work,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = [(work(job.trial), job) for job in jobs]
        self._left, self._next, self._is_sorted = sum(work for work, _ in self._jobs), 0, False
        self._clock, self._pack = clock, pack
        self._forms = {job.trial.id: form_of(job.trial.settings) for job in jobs} if pack > 1 else {}
        self._begun: dict[str, tuple[float, float]] = {}
        self._seconds_of_work, self._num_ended = deque[float](maxlen=_REMEMBERED), 0

    def next_cohort(self, workers: int = 1) -> tuple[str, list[Job]] | None:
        """The next tasks; one alone as long as nothing is known of how long they take."""
        if self._next == len(self._jobs):
            return None
        if workers > 1 and not self._is_sorted:
            self._jobs[self._next :] = sorted(self._jobs[self._next :], key=lambda each: -each[0])
            self._is_sorted = True
        limit = 0.0
        if self._seconds_of_work:
            second = 1 / max(self._seconds_of_work)  # the work of one
            limit = min(COHORT_S * second, self._left / (ROUNDS * workers))
            limit = max(limit, self._least(second, workers)) if workers > 1 else limit
        first, taken, together = self._next, 0.0, self._gather_alike(workers)
        while self._next < len(self._jobs) and self._next - first < MAX_COHORT_TRIALS:
            work, _ = self._jobs[self._next]
            if taken and taken + work > limit and self._next - first >= together:
                break
            taken += work
            self._next += 1
        self._left -= taken
        name = f"cohort {first}"
        self._begun[name] = self._clock(), taken
        return name, [job for _, job in self._jobs[first : self._next]]

    def _least(self, second: float, workers: int) -> float:
        """The work of a cohort at least, given that of a second: by `HANDING_OUT_S`, at first only a share.

        Of cohorts that have begun together the shortest end first, and all seem to be as short.
        """
        least = HANDING_OUT_S * second * workers
        return least if self._num_ended >= workers else min(least, self._left / workers)

    def _gather_alike(self, workers: int) -> int:
        """Put those that train together with the next task behind it; how many they are with it."""
        left = self._jobs[self._next :]
        form = self._forms.get(left[0][1].trial.id) if self._forms else None
        if form is None:
            return 1
        alike = [place for place, (_, job) in enumerate(left) if self._forms[job.trial.id] == form]
        chosen = dict.fromkeys(alike[: self._share([left[place][0] for place in alike], workers)])
        others = [each for place, each in enumerate(left) if place not in chosen]
        self._jobs[self._next :] = [*(left[place] for place in chosen), *others]
        return len(chosen)

    def _share(self, work: Sequence[float], workers: int) -> int:
        """How many of the tasks of a form, which are so much work, one of so many workers gets at once."""
        most = PACKS_OF_A_FORM * self._pack
        even = -(-len(work) // -(-len(work) // most))  # no few are left behind
        if workers == 1:
            return even
        share = self._left / (ROUNDS_OF_PACKS * workers)
        fitting = sum(until <= share for until in accumulate(work[:even]))
        return max(fitting, min(FEW, even, -(-len(work) // workers)))

    def may_have_more(self) -> bool:
        """Never: all are known from the beginning."""
        return False

    def should_prune(self, name: str, epoch: int, value: float) -> bool:
        """Never: every trial of a grid is wanted."""
        return False

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        """Size the next cohorts by the time that this one took for its work."""
        begun, work = self._begun.pop(name)
        self._num_ended += 1
        self._seconds_of_work.append(max(self._clock() - begun, 1e-6) / work)
        return []


class BegunCohorts:
    """A source of which somebody has taken the first cohort, to see whether there is one."""

    def __init__(self, first: tuple[str, list[Job]], source: CohortSource) -> None:
        self._first: tuple[str, list[Job]] | None = first
        self._source = source

    def next_cohort(self, workers: int = 1) -> tuple[str, list[Job]] | None:
        """The cohort that was taken, then those of the source."""
        if (first := self._first) is None:
            return self._source.next_cohort(workers)
        self._first = None
        return first

    def may_have_more(self) -> bool:
        """As the source says."""
        return self._source.may_have_more()

    def should_prune(self, name: str, epoch: int, value: float) -> bool:
        """As the source says."""
        return self._source.should_prune(name, epoch, value)

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        """What the source makes of it."""
        return self._source.cohort_ended(name, completed=completed)
