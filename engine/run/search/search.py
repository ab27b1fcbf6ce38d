"""Search driver, which hands out the trials of search points.

The store is the source of truth. A search replays the stored points into Optuna, resumes unfinished points,
and then asks for new ones. A point is identified by the id of its first trial, so that values that make the
same model are one point.

Points leave a search early on rungs of a rising fidelity: asynchronous successive halving (Li et al. 2020,
Algorithm 2). No point is dropped for good: it may be promoted after more points have ended on its rung. This
follows from the stored rows alone, so that a search can resume.

A scheduler that compares epochs pauses the trials of a point after the same epoch, and prunes the point or
lets all of them continue.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from hashlib import sha256
from typing import Literal

import optuna
from optuna.trial import TrialState

from ....storage import Store
from ....storage.leases import LeaseState
from ....studies.planning.trials_to_run import EarlierTrials, budget_exhausted, keeps_last_state
from ....studies.schema.search_settings import Rungs
from ....studies.schema.settings import Level
from ....studies.study import Study
from ...core.events import Event, Listener
from ...core.run import Run
from ...trial.failures import storing
from ...trial.outcome import Job
from ...trial.resumable_attempt import store_pruned
from ..trial_source import TrialSource
from .optuna_study import OptunaStudy, next_comparison
from .stored_points import BegunPoints, SearchPoint, StoredPoints, mean_course

LOOKS_FOR_TURN = 10
"""How often a driver looks for its turn to begin a point, while it would look once for a trial."""


def next_promoted(fidelity: Rungs, rungs: Sequence[Mapping[str, float | None]]) -> tuple[str, int] | None:
    """Return the id of the next search point to promote, with its new rung; None if there is none.

    `rungs` maps the id of each point that has begun on a rung to its loss there, in the order in which points
    ended. The loss is None while the point trains. A point with an infinite loss is never promoted. Points
    for the highest rung come first.
    """
    for rung in reversed(range(fidelity.top)):
        losses = {point: loss for point, loss in rungs[rung].items() if loss is not None}
        # among equal losses, the point that ended first comes first
        for point in sorted(losses, key=losses.__getitem__)[: fidelity.promoted(len(losses))]:
            if math.isfinite(losses[point]) and point not in rungs[rung + 1]:
                return point, rung + 1
    return None


class PointState(Enum):
    """Stage of a search point, from its proposal to its end."""

    PROPOSED = auto()  # unfinished by an earlier run
    RUNNING_HERE = auto()
    RUNNING_ELSEWHERE = auto()  # another driver trains it, or its workers died too often
    ENDED = auto()


BEGUN = PointState.RUNNING_HERE, PointState.RUNNING_ELSEWHERE, PointState.ENDED
"""The states of points that count against the number of points that a search begins."""


@dataclass(slots=True)
class TrackedPoint:
    """A search point on one rung, with its jobs.

    The jobs are the trials of the point that this driver trains: those that wait for a worker, run, or have
    paused. `trial` is Optuna's trial for the point, if Optuna proposed it.
    """

    point: SearchPoint
    state: PointState = PointState.PROPOSED
    trial: optuna.Trial | None = None
    waiting: list[Job] = field(default_factory=list[Job])
    running: list[Job] = field(default_factory=list[Job])
    paused: list[Job] = field(default_factory=list[Job])
    reached: dict[str, int] = field(default_factory=dict[str, int])
    """the number of epochs of each trial that a scheduler compares"""
    loss: float | None = None
    """the loss by which an ended point is promoted to the next rung; infinite if it cannot be promoted"""

    @property
    def num_jobs(self) -> int:
        """Return the number of jobs that have not ended."""
        return len(self.waiting) + len(self.running) + len(self.paused)


class TrackedPoints:
    """The points of a search, in the order of entering their states.

    Points on different rungs are tracked separately.
    """

    def __init__(self) -> None:
        self._points: dict[str, TrackedPoint] = {}

    def __contains__(self, point: SearchPoint) -> bool:
        return point.name in self._points

    def __getitem__(self, name: str) -> TrackedPoint:
        return self._points[name]

    def of(self, *states: PointState) -> list[TrackedPoint]:
        """Return the search points in these states, in the order of entering them."""
        return [each for each in self._points.values() if each.state in states]

    def move(self, tracked: TrackedPoint, state: PointState) -> None:
        """Change the state of a search point."""
        self._points.pop(tracked.point.name, None)
        tracked.state = state
        self._points[tracked.point.name] = tracked

    def begun(self) -> set[str]:
        """Return the ids of the points that a driver has begun, by `SearchPoint.global_id`."""
        return {each.point.global_id for each in self.of(*BEGUN)}

    def trials(self) -> set[str]:
        """Return the ids of all trials of the search points."""
        return {trial.id for each in self._points.values() for trial in each.point.trials}


class Search(TrialSource):
    """A search as a source of trials.

    A search point has a trial for each seed, with rungs on each rung. Points over the study's budget are
    skipped. Different drivers may search the same study: the points of all drivers count, and Optuna receives
    all results. `points` reads those in the store. `gone` maps trials of other drivers to the last attempt
    whose driver is dead.
    """

    needs_results = True

    def __init__(
        self,
        study: Study,
        store: Store,
        run: str,
        listener: Listener,
        *,
        max_trials: int | None = None,
        retry_failed: bool = False,
        gone: Mapping[str, int] | None = None,
    ) -> None:
        assert study.search is not None
        self._study, self._store, self._run = study, store, run
        self._search, self._settings = study.search, study.search.settings
        self._compares_epochs = self._settings.compares_epochs
        self._listener, self._left = listener, max_trials
        self._gone = gone or {}
        self._found: Job | None = None  # a job that `has_next` has already found
        self._optuna = OptunaStudy(study)
        self._tracked = TrackedPoints()
        self.points = StoredPoints(study, store, retry_failed=retry_failed)
        self._earlier = EarlierTrials(store)
        self._stored = self.points.attempts
        baseline = dict(self._search.baseline)
        self._baseline = self.points.of_values(baseline) if baseline else None
        self._leases = store.leases(run)
        self._turn_id = sha256(f"points of {study.name}".encode()).hexdigest()[:16]
        self._others = BegunPoints(study, store, self.points)
        if self._settings.warm_start:
            self.points.copy_fitting()
        self._replay_stored()

    def next_job(self, workers: int = 1) -> Job | None:
        """Return the next trial: of begun points first, then of unfinished and of new ones."""
        if (found := self._found) is not None:
            self._found = None
            return found
        while (tracked := self._waiting()) is None:
            if (self._left is not None and self._left <= 0) or not self._begin_point():
                return None
        job = tracked.waiting.pop(0)
        tracked.running.append(job)
        return job

    def _waiting(self) -> TrackedPoint | None:
        """Return the first point of this driver with a trial that waits for a worker."""
        return next((each for each in self._tracked.of(PointState.RUNNING_HERE) if each.waiting), None)

    def _begin_point(self) -> bool:
        """Begin or resume the next search point. Return False if there is none."""
        with self._turn():
            if (tracked := self._next_point()) is None:
                return False
            point, jobs = tracked.point, self._missing(tracked.point)
            is_new = point.global_id not in self._tracked.begun()
            may_resume = point in self._tracked
            self._tracked.move(tracked, PointState.RUNNING_HERE)
            if is_new and jobs:
                self._others.begin(jobs[0].trial)
        if jobs and may_resume and self._compares_epochs:
            self._report(tracked, self.points.begun_course(point))
        if not jobs:  # trained by another study
            self._end(tracked)
            return True
        self._left = None if self._left is None else self._left - len(jobs)
        self._listener(Event(kind="planned", trials=tuple(job.trial for job in jobs)))
        self._hand_out(tracked, jobs)
        return True

    def _hand_out(self, tracked: TrackedPoint, jobs: Sequence[Job]) -> None:
        """Let trials of a point wait for workers, up to the epoch at which the scheduler compares the point.

        After a crash the trials may have reached different epochs. Those that are ahead pause until the
        others have caught up.
        """
        for job in jobs if self._compares_epochs else ():
            tracked.reached.setdefault(job.trial.id, self.points.reached(job.trial))
        reached = [tracked.reached.get(job.trial.id, 0) for job in jobs]
        until = next_comparison(self._settings, min(reached), jobs[0].trial.settings)
        for job, epoch in zip(jobs, reached, strict=True):
            is_ahead = until is not None and epoch >= until
            (tracked.paused if is_ahead else tracked.waiting).append(replace(job, until=until))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Within this context, let no other driver begin a search point.

        So several drivers together begin no more points than the search has. Once all points have been begun,
        do nothing. The turn is a lease, which another driver takes over from a dead one. Raise MachineError
        if it cannot be claimed.
        """
        if len(self._tracked.begun()) >= self._settings.trials:
            yield
            return
        with storing():
            while isinstance(turn := self._leases.claim(self._turn_id, 0), LeaseState):
                time.sleep(self._leases.poll_s / LOOKS_FOR_TURN)
        try:
            yield
        finally:
            with suppress(OSError):  # then the lease expires
                turn.release()

    def has_next(self) -> bool:
        """Return whether there is a trial to train. It is kept for the next call of `next_job`."""
        self._found = self.next_job()
        return self._found is not None

    def may_have_more(self) -> bool:
        """Return whether a running point may get a higher rung, or its other trials may continue."""
        can_grow = self._compares_epochs or bool(self._search.rungs.rungs)
        return can_grow and bool(self._tracked.of(PointState.RUNNING_HERE))

    def job_ended(self, job: Job, *, paused_at: int | None) -> list[Event]:
        """Record that a trial has ended or paused; compare its point, or report its end to Optuna.

        A trial that has neither ended nor paused belongs to another driver. So does its point then, if a
        scheduler compares it.
        """
        (tracked,) = (each for each in self._tracked.of(PointState.RUNNING_HERE) if job in each.running)
        tracked.running.remove(job)
        events = list[Event]()
        if paused_at is not None:
            tracked.paused.append(replace(job, is_resumed=True))
            tracked.reached[job.trial.id] = paused_at
        else:
            self._stored.refresh()
            is_elsewhere = self._stored.last_number(job.trial.id) < job.attempt
            if is_elsewhere and self._compares_epochs:
                events += [_left_to_others(each, "paused") for each in (*tracked.waiting, *tracked.paused)]
                tracked.waiting, tracked.paused = [], []
        if tracked.running or tracked.waiting:
            return events
        if tracked.paused and not self._is_pruned(tracked):
            open_jobs, tracked.paused = tracked.paused, []
            self._hand_out(tracked, open_jobs)
            return events
        for each in tracked.paused:
            events.append(store_pruned(each, self._store, self._reason))
        self._stored.refresh()
        self._end(tracked)
        return events

    def _is_pruned(self, tracked: TrackedPoint) -> bool:
        """Return whether the scheduler prunes a point, all of whose trials have ended or paused."""
        assert tracked.trial is not None, "the sampler proposed the point"
        epoch = max(each.until or 0 for each in tracked.paused)
        value = self.points.value_at(tracked.point, epoch)
        return self._optuna.should_prune(tracked.trial, {} if math.isnan(value) else {epoch: value})

    def _next_point(self) -> TrackedPoint | None:
        if self._search.rungs.rungs:
            self._learn_from_others()
            for tracked in self._tracked.of(PointState.PROPOSED):
                return tracked
            if not self._is_spent and (promoted := self._promoted()) is not None:
                return promoted
        return self._ask()

    def _promoted(self) -> TrackedPoint | None:
        """Return the next point to train on a higher rung."""
        rungs: list[dict[str, TrackedPoint]] = [{} for _ in self._search.rungs.rungs]
        for each in self._tracked.of(*BEGUN):
            if each.point.values != self._search.baseline:
                rungs[each.point.rung][each.point.global_id] = each
        losses = [{point: each.loss for point, each in rung.items()} for rung in rungs]
        if (found := next_promoted(self._search.rungs, losses)) is None:
            return None
        point, rung = found
        return TrackedPoint(self.points.of_values(rungs[rung - 1][point].point.values, rung))

    def _end(self, tracked: TrackedPoint) -> None:
        """Report a point to Optuna, or wait for the drivers that train its missing trials."""
        if self.points.missing(tracked.point):
            self._tracked.move(tracked, PointState.RUNNING_ELSEWHERE)
            return
        self._tracked.move(tracked, PointState.ENDED)
        self._tell(tracked, self._courses([tracked.point]) if tracked.trial is None else {})

    @property
    def _reason(self) -> str:
        return f"pruned by {self._settings.scheduler.name}"

    def _ask(self) -> TrackedPoint | None:
        self._learn_from_others()
        begun = self._tracked.begun()
        accept = partial(self._accept, begun)
        # a point whose model exceeds a limit by now is never trained
        waiting = [each for each in self._tracked.of(PointState.PROPOSED) if accept(each.point.values)]
        is_full = len(begun) >= self._settings.trials
        if waiting and not is_full:  # what an earlier run has begun comes first
            waiting[0].trial = self._optuna.ask_for(waiting[0].point.values)
            return waiting[0]
        if self._is_spent:
            return None
        if self._baseline is not None and (point := accept(self._baseline.values)) is not None:
            return TrackedPoint(point, trial=self._optuna.ask_for(point.values))
        if is_full:
            return None
        if (proposed := self._optuna.propose(accept, len(begun))) is None:
            return None
        point, trial, _ = proposed
        if self._search.rungs.rungs:
            point = self.points.of_values(point.values, rung=0)
        return TrackedPoint(point, trial=trial)

    def _accept(self, begun: Collection[str], values: dict[str, Level]) -> SearchPoint | None:
        """Return the search point with these values, unless it has `begun` or exceeds a limit."""
        point = self.points.of_values(values)
        is_new = point.global_id not in begun
        return point if is_new and self._search.budget.allows(point.trials[0].settings) else None

    @property
    def _is_spent(self) -> bool:
        running = sum(each.num_jobs for each in self._tracked.of(PointState.RUNNING_HERE))
        return budget_exhausted(self._settings.budget, self._others.spent, running)

    def _learn_from_others(self) -> None:
        for point in self._others.new(self._tracked.trials()):
            if point not in self._tracked:
                self._tracked.move(TrackedPoint(point), PointState.RUNNING_ELSEWHERE)
                for job in self._missing(point):
                    self._listener(_left_to_others(job))
        for tracked in self._tracked.of(PointState.RUNNING_ELSEWHERE):
            if not self.points.missing(tracked.point):
                self._end(tracked)

    def _replay_stored(self) -> None:
        """Report the ended search points in the store to Optuna. Unfinished points get the state PROPOSED."""
        ended: list[TrackedPoint] = []
        for point in self._others.new():
            self._prune_with_others(point)
            tracked = TrackedPoint(point)
            if self.points.missing(point):
                self._tracked.move(tracked, PointState.PROPOSED)
            else:
                ended.append(tracked)
        courses = self._courses([each.point for each in ended])
        for tracked in ended:
            self._tracked.move(tracked, PointState.ENDED)
            self._tell(tracked, courses)

    def _courses(self, points: Sequence[SearchPoint]) -> dict[str, dict[int, float]]:
        return self.points.courses(points) if self._compares_epochs else {}

    def _tell(self, tracked: TrackedPoint, courses: Mapping[str, Mapping[int, float]]) -> None:
        """Report to Optuna how a search point has ended.

        Record its loss for the rungs. A scheduler receives all epochs of a restored point in turn, because it
        compares later points with them.
        """
        point = tracked.point
        self.points.copy_from_others(point)
        if tracked.trial is None and self._compares_epochs:
            tracked.trial = self._optuna.ask_for(point.values)
            self._report(tracked, mean_course(point, courses))
        end = self.points.end(point)
        self._optuna.tell(point, end, tracked.trial)
        tracked.trial = None
        if self._search.rungs.rungs and point.values != self._search.baseline:
            counts = end.state == TrialState.COMPLETE and end.keeps_limits
            tracked.loss = self._settings.objectives[0].loss(end.values[0]) if counts else math.inf
            for trial in point.trials:
                if keeps_last_state(self._study, trial.common):
                    self._earlier.add(trial.settings)  # on a rung with more epochs, training continues here

    def _report(self, tracked: TrackedPoint, course: Mapping[int, float]) -> None:
        """Report epochs of an earlier run to the scheduler.

        Otherwise, it would take the first epoch after them for each epoch that it compares.
        """
        if tracked.trial is not None:
            self._optuna.should_prune(tracked.trial, course)

    def _prune_with_others(self, point: SearchPoint) -> None:
        """Prune all begun trials of a search point if one of them was pruned.

        A driver may have been killed after it had stored only some of them. If the others trained on, they
        would be compared with trials of fewer epochs.
        """
        if self.points.was_pruned(point):
            missing = self._missing(point)
            begun = self._store.files.trials_with_checkpoint(job.trial.id for job in missing)
            for job in [job for job in missing if job.trial.id in begun]:
                self._listener(Event(kind="planned", trials=(job.trial,)))
                self._listener(store_pruned(job, self._store, self._reason))
            self._stored.refresh()

    def _missing(self, point: SearchPoint) -> list[Job]:
        return [
            Job(
                trial=trial,
                attempt=self._stored.last_number(trial.id) + 1,
                run=self._run,
                gone=self._gone.get(trial.id, -1),
                keep_weights=self._study.header.keep_weights,
                keep_checkpoint=keeps_last_state(self._study, trial.common),
                earlier=self._earlier.find(trial),
            )
            for trial in self.points.missing(point)
        ]


def _left_to_others(job: Job, status: Literal["elsewhere", "paused"] = "elsewhere") -> Event:
    """Return the event that another driver has a trial, or will train it, because it has the point."""
    return Event(kind="elsewhere", run=Run(trial=job.trial.id, attempt=job.attempt, status=status))
