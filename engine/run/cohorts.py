"""Cohorts: groups of trials that a worker receives together.

The worker runs them one after the other or in lockstep. The missing trials of a grid form cohorts that are
large enough to make scheduling cheap.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import accumulate
from statistics import fmean
from typing import Protocol

import torch

from ...storage import Store
from ...studies.planning.time_estimates import MIN_INFORMATIVE_FLOPS
from ...studies.resolve.costs import max_trial_flops
from ...studies.resolve.trial import Trial
from ..core.events import ClaimedElsewhere, Ended, EpochFinished, Event, Listener, MachineFailed, Started
from ..core.process import Stop, StoppedMidway, prepare_cpu
from ..core.resources import Machine, find_gpus
from ..packs.packer import Packer, form_of
from ..trial import outcome
from ..trial.failures import MachineError, storing
from ..trial.outcome import Job
from ..trial.resumable_attempt import Attempt, Claims, TrainingFactory
from ..trial.training import Training

COHORT_S = 10.0
"""The training time that a cohort should take, estimated from earlier cohorts."""

MAX_COHORT_TRIALS = 64
"""The maximum number of trials in a cohort."""

ROUNDS = 3
"""A cohort has at most 1 / ROUNDS of a worker's share of the remaining work, so that all workers end
together."""

SCHEDULING_S = 0.02
"""The seconds that Tune needs to schedule a cohort; cohorts are long enough that no worker waits for it."""

FEW = 4
"""The minimum number of packed trials for a worker, however little work is left."""

PACKS_OF_A_FORM = 2
"""The maximum number of packs of equal shapes in a cohort; there are several if trials differ in length."""

ROUNDS_OF_PACKS = 1.25
"""`ROUNDS` for packed trials, which gain more from larger cohorts."""

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


Work = Callable[[Trial], float]
"""Maps a trial to its work, in any unit."""


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
    as in guided self-scheduling (Polychronopoulos and Kuck, 1987). With `pack`, jobs that can be packed are
    scheduled together. A single worker gets as many of these jobs as fit a cohort. If there are several
    workers, each gets its share of the remaining jobs.
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
        first, taken, together = self._next, 0.0, 0
        while self._next < len(self._jobs) and self._next - first < MAX_COHORT_TRIALS:
            if self._next - first >= together:  # jobs that share packs stay together
                if taken and taken + self._jobs[self._next][0] > limit:
                    break
                together = self._next - first + self._gather_alike(workers)
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

    def _gather_alike(self, workers: int) -> int:
        """Move jobs that can share packs with the next job right behind it; return their number.

        At most a worker's share of these jobs is moved. The number includes the next job.
        """
        form = self._forms.get(self._jobs[self._next][1].trial.id)
        if form is None:
            return 1
        left = self._jobs[self._next :]
        alike = [place for place, (_, job) in enumerate(left) if self._forms[job.trial.id] == form]
        chosen = dict.fromkeys(alike[: self._share([left[place][0] for place in alike], workers)])
        others = [each for place, each in enumerate(left) if place not in chosen]
        self._jobs[self._next :] = [*(left[place] for place in chosen), *others]
        return len(chosen)

    def _share(self, work: Sequence[float], workers: int) -> int:
        most = PACKS_OF_A_FORM * self._pack
        even = -(-len(work) // -(-len(work) // most))  # of equal sizes, so that no small rest is left
        if workers == 1:
            return even
        share = self._left / (ROUNDS_OF_PACKS * workers)
        fitting = sum(until <= share for until in accumulate(work[:even]))
        return max(fitting, min(FEW, even, -(-len(work) // workers)))

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        begun, work = self._begun.pop(name)
        self._num_ended += 1
        # 1e-6, because the clock may not have moved
        self._seconds_of_work.append(max(self._clock() - begun, 1e-6) / work)
        return []


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
        """Yield these events, a machine failure as the last; delay ends of trials that are not stored yet."""
        try:
            for event in events:
                if isinstance(event, Ended) and event.trial in self._attempts:
                    self._waiting[event.trial] = event
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
        """Store all buffered outcomes, and return their events."""
        return self._tell(self._flush)

    def _tell(self, flush: Callable[[], None]) -> list[Event]:
        try:
            flush()
        except MachineError as error:
            return [MachineFailed(reason=str(error))]
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
            if len(rows) == 1:
                self._store.write(*rows[0])
            elif rows:
                self._store.write_together(rows)
        for attempt in kept:
            attempt.close()
        self._flushed_at = self._clock()
        self._waiting = waiting | {trial: event for trial, event in taken.items() if trial in waiting}


MIN_CHECKPOINT_INTERVAL_S = 1.0
"""The minimum training time between two checkpoints of a grid's trial. Saving a small trial takes some
milliseconds, as long as some of its steps."""


class Worker:
    """A process that runs cohorts, with its store, its device and its limits."""

    def __init__(
        self,
        store: Store,
        machine: Machine,
        make_training: TrainingFactory = Training.begin,
    ) -> None:
        prepare_cpu(machine.threads)
        # otherwise the first optimiser imports it and keeps its trial's memory
        import_module("torch._dynamo")
        if machine.activation_checkpointing and make_training == Training.begin:
            make_training = partial(Training.begin, recomputes=True)
        share = 1.0 if machine.gpus == "auto" else min(machine.gpus or 1.0, 1.0)
        self._claims_of = cache(partial(Claims, store))  # of each run
        self._packer: Packer | None = None
        if machine.pack != "off":
            sizes = [gpu.bytes for gpu in find_gpus()] if machine.device == "cuda" else []
            here = int(share * min(sizes)) if sizes else None
            self._packer = Packer(machine.most_packed, fitting=machine.pack == "auto", device_bytes=here)
        self._buffer = OutcomeBuffer(store)
        self._attempt = partial(
            Attempt,
            store=store,
            device=torch.device(machine.device),
            time_limit_s=machine.time_limit_s,
            checkpoint_every_s=machine.checkpoint_every_s,
            data=machine.data,
            make_training=make_training,
            buffer=self._buffer,
            device_suffix=f", a share of {share:g}" if share < 1.0 else "",
        )
        outcome.commit()  # at the start, since the files may change during training

    def attempts(self, jobs: Sequence[Job]) -> list[Attempt]:
        """Return an attempt for each job. An attempt claims its trial when it starts."""
        return [self._attempt(job, claims=self._claims_of(job.run)) for job in jobs]

    def events(self, attempts: Sequence[Attempt]) -> Iterator[Event]:
        """Train each trial to its end, and yield all events.

        Trials train one after the other or in packs. Short trials are stored together, and only then reported
        as ended. A machine failure is the last event. A caller that stops early calls `flush`.
        """
        for attempt in attempts:
            attempt.save_after_s = MIN_CHECKPOINT_INTERVAL_S
        yield from self._buffer.stored(self._train(attempts))

    def in_step(self, attempts: Sequence[Attempt]) -> Lockstep:
        """Return a Lockstep that trains these attempts.

        The attempts belong to one search point. After each epoch, the point may be pruned. Short trials that
        end together are stored together.
        """
        return Lockstep(attempts, self._buffer, self._packer)

    def flush(self) -> list[Event]:
        """Store the outcomes of ended trials; return the events that report their ends."""
        return self._buffer.flush()

    def _train(self, attempts: Sequence[Attempt]) -> Iterator[Event]:
        """Yield the events of training, up to a machine failure; ends come before outcomes are stored."""
        groups: dict[str, list[Attempt]] = {}  # attempts that can share a pack
        for attempt in attempts:
            form = form_of(attempt.job.trial.settings) if self._packer is not None else None
            groups.setdefault(form or attempt.job.trial.id, []).append(attempt)
        for alike in groups.values():
            while left := [attempt for attempt in alike if not attempt.ended]:
                for event in take_turn(left, self._packer):
                    yield event
                    if isinstance(event, MachineFailed):
                        return


def take_turn(attempts: Sequence[Attempt], packer: Packer | None) -> Iterator[Event]:
    """Start all new attempts or, if there are none, train one epoch.

    The epoch is for the attempts with the fewest epochs. Yield the events. A trial ends with its last epoch.
    With a packer, trials take their steps together.
    """
    if starting := [attempt for attempt in attempts if attempt.training is None]:
        for attempt in starting:
            yield attempt.advance()
        return
    epochs = [(attempt.training.epoch, attempt) for attempt in attempts if attempt.training is not None]
    least = min(epoch for epoch, _ in epochs)
    behind = [attempt for epoch, attempt in epochs if epoch == least]
    if packer is not None:
        packer.take_steps(behind)
    for attempt in behind:
        yield (event := attempt.advance())
        training = attempt.training  # None if the trial has ended or is retried with less memory
        if training is not None and training.finished and not isinstance(event, MachineFailed):
            yield attempt.advance()


class Lockstep:
    """The trials of one search point, trained epoch by epoch.

    Each epoch is trained for all of them before the next one begins. The mean of their metric decides whether
    the point is pruned. A point belongs to one process: all processes claim the same trial first, and its
    owner gets the others. With a packer, trials of one form, such as the seeds of the point, take their steps
    together.
    """

    def __init__(
        self, attempts: Sequence[Attempt], held: OutcomeBuffer, packer: Packer | None = None
    ) -> None:
        self._attempts, self._buffer, self._packer = attempts, held, packer
        self._latest: dict[str, Mapping[str, float]] = {}
        self.epoch = 0

    @property
    def ended(self) -> bool:
        """Return whether every trial has an outcome."""
        return all(attempt.ended for attempt in self._attempts)

    def advance(self) -> list[Event]:
        """Train one more epoch, and return the events.

        Only the trials with the fewest epochs are trained. So trials that a crash has set back catch up
        first, and all trials are compared at the same epoch.
        """
        events = list(self._buffer.stored(self._step()))
        if any(isinstance(event, MachineFailed) for event in events):
            return events
        if any(isinstance(event, ClaimedElsewhere) for event in events):
            events += [attempt.leave() for attempt in self._open()]
        for event in events:
            if isinstance(event, EpochFinished):
                self._latest[event.trial] = event.metrics
                self.epoch = max(self.epoch, event.epoch)
            elif isinstance(event, Ended) and event.status != "done":
                self._latest[event.trial] = {}
        return events

    def _step(self) -> Iterator[Event]:
        is_starting = any(attempt.training is None for attempt in self._open())
        # the first turn only starts the trials
        for _ in range(1 + is_starting):
            for event in take_turn(self._open(), self._packer) if self._open() else ():
                yield event
                if isinstance(event, ClaimedElsewhere | MachineFailed):
                    return

    def _open(self) -> list[Attempt]:
        return [attempt for attempt in self._attempts if not attempt.ended]

    def mean_metric(self, metric: str) -> float:
        """Return the mean of a metric over the trials; NaN if a trial has no value yet or has failed."""
        values = [metrics.get(metric, math.nan) for metrics in self._latest.values()]
        return fmean(values) if values and len(values) == len(self._attempts) else math.nan


def collect(events: Iterator[Event], seconds: float) -> list[Event]:
    """Collect events for about this many seconds. The list is empty if the iterator has no more events."""
    deadline, taken = time.monotonic() + seconds, []
    for event in events:
        taken.append(event)
        if time.monotonic() >= deadline:
            break
    return taken


def run_local(
    source: CohortSource,
    store: Store,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    *,
    metric: str | None = None,
) -> None:
    """Train all cohorts of a source in this process. A requested stop takes effect even within an epoch."""
    worker: Worker | None = None  # slow to load, and not needed if nothing is left to train
    while not stop.requested and (cohort := source.next_cohort()) is not None:
        if worker is None:
            worker = Worker(store, machine)
        name, tasks = cohort
        attempts = worker.attempts(tasks)
        events = (
            worker.events(attempts)
            if metric is None
            else _judged(name, worker.in_step(attempts), metric, source)
        )
        try:
            for event in events:
                listener.on_event(event)
                if stop.requested and not isinstance(event, Started):
                    return
            completed = all(attempt.ended for attempt in attempts)
        except StoppedMidway:
            return
        finally:
            for attempt in attempts:
                attempt.release()
            for event in worker.flush():
                listener.on_event(event)
        for event in source.cohort_ended(name, completed=completed):
            listener.on_event(event)


def _judged(name: str, cohort: Lockstep, metric: str, source: CohortSource) -> Iterator[Event]:
    while not cohort.ended:
        yield from cohort.advance()
        if not cohort.ended and source.should_prune(name, cohort.epoch, cohort.mean_metric(metric)):
            return
