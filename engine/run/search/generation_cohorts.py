"""The trials of a population as cohorts: those of a generation, and once all have ended those of the next.

So one run has all generations, and its workers stay; who goes on from whom, the store decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.events import Event, Listener
from ...trial.outcome import Job
from ..cohort_sources import CohortSource

FurtherJobs = Callable[[], Sequence[Job]]
"""The jobs of the next generation; none as long as a member of this one has not ended, and after the last."""

MakeGrid = Callable[[Sequence[Job]], CohortSource]
"""Makes the cohorts of jobs that do not depend on each other."""


class GenerationCohorts:
    """A source of cohorts with at most `max_jobs` jobs; `handed_out` counts those of all generations."""

    def __init__(
        self,
        jobs: Sequence[Job],
        further: FurtherJobs,
        make_grid: MakeGrid,
        listener: Listener,
        *,
        max_jobs: int | None,
    ) -> None:
        self._further, self._make_grid, self._listener = further, make_grid, listener
        self._max_jobs, self.handed_out = max_jobs, len(jobs)
        self._grid, self._generation = make_grid(jobs), 0
        self._open: dict[str, str] = {}  # the grid's name of each cohort

    def next_cohort(self, workers: int = 1) -> tuple[str, list[Job]] | None:
        """The next trials of a generation; of the next one only when no cohort is open."""
        found = self._grid.next_cohort(workers)
        if found is None and not self._open and (jobs := self._next_jobs()):
            self._grid, self._generation = self._make_grid(jobs), self._generation + 1
            found = self._grid.next_cohort(workers)
        if found is None:
            return None
        name = f"generation {self._generation}, {found[0]}"
        self._open[name] = found[0]
        return name, found[1]

    def may_have_more(self) -> bool:
        """Whether a cohort is open, at whose end a generation may be."""
        return bool(self._open)

    def should_prune(self, name: str, epoch: int, value: float) -> bool:
        """Never: members are compared when they have ended."""
        return False

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        """Take note of a cohort that is over."""
        return self._grid.cohort_ended(self._open.pop(name), completed=completed)

    def _next_jobs(self) -> Sequence[Job]:
        """The jobs of the next generation, as many as may be handed out."""
        left = None if self._max_jobs is None else self._max_jobs - self.handed_out
        jobs = [] if left == 0 else self._further()[:left]
        self.handed_out += len(jobs)
        if jobs:
            self._listener.on_planned([job.trial for job in jobs])
        return jobs
