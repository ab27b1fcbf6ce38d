"""Workers: processes that train the trials of cohorts, one after the other or in lockstep."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from statistics import fmean

import torch

from ...storage import Store
from ..core.events import ClaimedElsewhere, Ended, EpochFinished, Event, Listener, MachineFailed, Started
from ..core.process import Stop, StoppedMidway, prepare_cpu
from ..core.resources import Machine
from ..trial import outcome
from ..trial.outcome import Job
from ..trial.resumable_attempt import Attempt, Claims, TrainingFactory
from ..trial.training import Training
from .cohorts import CohortSource
from .outcome_buffer import OutcomeBuffer

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
        self._claims_of = cache(partial(Claims, store))  # of each run
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
            gpu_share=1.0 if machine.gpus == "auto" else machine.gpus or 1.0,
        )
        outcome.commit()  # at the start, since the files may change during training

    def attempts(self, jobs: Sequence[Job]) -> list[Attempt]:
        """Return an attempt for each job. An attempt claims its trial when it starts."""
        return [self._attempt(job, claims=self._claims_of(job.run)) for job in jobs]

    def events(self, attempts: Sequence[Attempt]) -> Iterator[Event]:
        """Train each trial to its end, and yield all events.

        Trials train one after the other. Short trials are stored together, and only then reported as ended. A
        machine failure is the last event. A caller that stops early calls `flush`.
        """
        for attempt in attempts:
            attempt.save_after_s = MIN_CHECKPOINT_INTERVAL_S
        yield from self._buffer.stored(self._train(attempts))

    def in_step(self, attempts: Sequence[Attempt]) -> Lockstep:
        """Return a Lockstep that trains these attempts.

        The attempts belong to one search point. After each epoch, the point may be pruned. Short trials that
        end together are stored together.
        """
        return Lockstep(attempts, self._buffer)

    def flush(self) -> list[Event]:
        """Store the outcomes of ended trials; return the events that report their ends."""
        return self._buffer.flush()

    def _train(self, attempts: Sequence[Attempt]) -> Iterator[Event]:
        """Yield the events of training, up to a machine failure; ends come before outcomes are stored."""
        for attempt in attempts:
            while not attempt.ended:
                yield (event := attempt.advance())
                if isinstance(event, MachineFailed):
                    return


class Lockstep:
    """The trials of one search point, trained epoch by epoch.

    Each epoch is trained for all of them before the next one begins. The mean of their metric decides whether
    the point is pruned. A point belongs to one process: all processes claim the same trial first, and its
    owner gets the others.
    """

    def __init__(self, attempts: Sequence[Attempt], held: OutcomeBuffer) -> None:
        self._attempts, self._buffer = attempts, held
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
        for event in self._turn():
            yield event
            if isinstance(event, ClaimedElsewhere | MachineFailed):
                return

    def _turn(self) -> Iterator[Event]:
        """Start the trials that have not begun, and train an epoch of those with the fewest epochs."""
        for attempt in self._open():
            if attempt.training is None:
                yield attempt.advance()
        begun = [
            (attempt.training.epoch, attempt) for attempt in self._open() if attempt.training is not None
        ]
        least = min((epoch for epoch, _ in begun), default=0)
        for attempt in (attempt for epoch, attempt in begun if epoch == least):
            yield (event := attempt.advance())
            training = attempt.training  # None if the trial has ended or is retried with less memory
            if training is not None and training.finished and not isinstance(event, MachineFailed):
                yield attempt.advance()

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
