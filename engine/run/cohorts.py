"""Cohorts: trials that one worker receives together, and runs one after the other or in lockstep."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from statistics import fmean

import torch

from ...storage import Store
from ..core.cpu import prepare_cpu
from ..core.events import ClaimedElsewhere, Ended, EpochFinished, Event, Listener, MachineFailed, Started
from ..core.interruption import Stop, StoppedMidway
from ..core.resources import Machine
from ..packs.form import form_of
from ..packs.packer import Packer
from ..trial import provenance
from ..trial.checkpoints import checkpoint_of
from ..trial.claims import Claims
from ..trial.machine_failures import MachineError, storing
from ..trial.outcome import Job
from ..trial.resumable_attempt import Attempt, TrainingFactory
from ..trial.training import Training
from .cohort_sources import CohortSource
from .gpu_share import device_bytes, gpu_memory
from .memory_guard import MemoryGuard

FLUSH_S = 1.0
"""The minimum seconds between two flushes; an outcome waits at most until the first step after that."""


class OutcomeBuffer:
    """Buffer of a worker's finished trials, which are reported as ended only once they are stored.

    Until then a trial keeps its lease and its checkpoint: if the worker dies, the trial is resumed and ends
    again.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._flushed_at = -FLUSH_S
        self._attempts: dict[str, Attempt] = {}
        self._waiting: dict[str, Event] = {}

    def add(self, attempt: Attempt) -> None:
        """Add a finished attempt."""
        self._attempts[attempt.job.trial.id] = attempt

    def flush_if_due(self) -> None:
        """Store the buffered outcomes if the last flush is long enough ago. Raise MachineError."""
        if self._attempts and self._clock() - self._flushed_at >= FLUSH_S:
            self._flush()

    def stored(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield events up to a machine failure; the end of a trial only after its outcome is stored."""
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
        """Store all buffered outcomes; return their events."""
        return self._tell(self._flush)

    def _tell(self, flush: Callable[[], None]) -> list[Event]:
        try:
            flush()
        except MachineError as error:
            return [MachineFailed(reason=str(error))]
        stored = [trial for trial in self._waiting if trial not in self._attempts]
        return [self._waiting.pop(trial) for trial in stored]

    def _flush(self) -> None:
        """Store buffered outcomes that this process still owns; after a failure keep and report nothing."""
        held, self._attempts = self._attempts, {}
        waiting, self._waiting = self._waiting, {}
        taken = {trial: event for trial, each in held.items() if (event := each.leave_if_lost()) is not None}
        kept = [attempt for trial, attempt in held.items() if trial not in taken]
        with storing():
            if len(kept) == 1:
                self._store.write(*kept[0].outcome)
            elif kept:
                self._store.write_together([attempt.outcome for attempt in kept])
        for attempt in kept:
            attempt.close()
        self._flushed_at = self._clock()
        self._waiting = waiting | {trial: event for trial, event in taken.items() if trial in waiting}


MIN_CHECKPOINT_INTERVAL_S = 1.0
"""The minimum training time between two checkpoints of a grid's trial. Saving a small trial takes some
milliseconds, as long as some of its steps."""


class Worker:
    """A process that runs cohorts: its store, device and limits."""

    def __init__(
        self,
        store: Store,
        machine: Machine,
        make_training: TrainingFactory = Training,
        guard: MemoryGuard | None = None,
    ) -> None:
        prepare_cpu(machine.threads)
        import_module("torch._dynamo")  # or the first optimiser does, and the memory of its trial stays
        self._store, self._begin = store, make_training
        if machine.activation_checkpointing and make_training is Training:
            self._begin = partial(Training, recomputes=True)
        self._limit, self._every = machine.time_limit_s, machine.checkpoint_every_s
        self._data, self._guard = machine.data, guard
        self._device = torch.device(machine.device)
        self._memory = gpu_memory(machine)
        self._device_suffix = f", a share of {share:g}" if (share := _share(machine)) < 1.0 else ""
        self._claims: dict[str, Claims] = {}
        self._packer = _make_packer(machine, self._device)
        self._buffer = OutcomeBuffer(store)
        provenance.commit()  # now: the files may change while it trains

    def attempts(self, jobs: Sequence[Job]) -> list[Attempt]:
        """Return the attempts of these jobs; each is claimed when it starts."""
        return [
            Attempt(
                job,
                self._store,
                self._device,
                claims=self._claims_of(job.run),
                checkpoint=checkpoint_of(self._store, job.trial.id, job.shorter),
                time_limit_s=self._limit,
                checkpoint_every_s=self._every,
                data=self._data,
                make_training=self._begin,
                guard=self._guard,
                buffer=self._buffer,
                memory=self._memory,
                device_suffix=self._device_suffix,
            )
            for job in jobs
        ]

    def events(self, attempts: Sequence[Attempt]) -> Iterator[Event]:
        """Train each trial to its end, one after the other or in packs; yield all events.

        Short trials are stored together, and only then reported as ended. A machine failure is the last
        event. A caller that stops early calls `flush`.
        """
        for attempt in attempts:
            attempt.save_after_s = MIN_CHECKPOINT_INTERVAL_S
        yield from self._buffer.stored(self._train(attempts))

    def in_step(self, attempts: Sequence[Attempt]) -> Lockstep:
        """Return the trials of a search point in lockstep.

        Short trials that end together are stored together.
        """
        return Lockstep(attempts, self._buffer, self._packer)

    def flush(self) -> list[Event]:
        """Store ended trials; return their events."""
        return self._buffer.flush()

    def _train(self, attempts: Sequence[Attempt]) -> Iterator[Event]:
        """Yield the events of training; ends of trials are not stored yet."""
        if self._packer is None:
            yield from sequentially(attempts)
            return
        for alike in alike_jobs(attempts):
            for event in self._packer.events(alike) if len(alike) > 1 else sequentially(alike):
                yield event
                if isinstance(event, MachineFailed):
                    return

    def _claims_of(self, run: str) -> Claims:
        if run not in self._claims:
            self._claims[run] = Claims(self._store, run)
        return self._claims[run]


def _share(machine: Machine) -> float:
    return 1.0 if machine.gpus == "auto" else min(machine.gpus or 1.0, 1.0)


def _make_packer(machine: Machine, device: torch.device) -> Packer | None:
    if machine.pack == "off":
        return None
    bytes_here = int(_share(machine) * device_bytes(machine)) if device.type == "cuda" else None
    return Packer(machine.most_packed, fitting=machine.pack == "auto", device_bytes=bytes_here)


def alike_jobs(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Group attempts by the form of their trials; a trial that cannot be packed forms its own group."""
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        form = form_of(attempt.job.trial.settings) or attempt.job.trial.id
        found.setdefault(form, []).append(attempt)
    return list(found.values())


def sequentially(attempts: Sequence[Attempt]) -> Iterator[Event]:
    """Train each trial to its end, one after the other; yield all events up to a machine failure."""
    for attempt in attempts:
        while not attempt.ended:
            event = attempt.advance()
            yield event
            if isinstance(event, MachineFailed):
                return


class Lockstep:
    """The trials of one search point, trained in lockstep by epochs, so that their mean can be judged early.

    A point belongs to one process: all processes claim the same trial first, and its owner gets the others.
    With a packer, trials of one form, such as the seeds of the point, take their steps together.
    """

    def __init__(
        self, attempts: Sequence[Attempt], held: OutcomeBuffer, packer: Packer | None = None
    ) -> None:
        self._attempts, self._buffer, self._packer = attempts, held, packer
        self._latest: dict[str, Mapping[str, float]] = {}
        self.epoch = 0

    @property
    def ended(self) -> bool:
        """Return whether every trial has its outcome."""
        return all(attempt.ended for attempt in self._attempts)

    def advance(self) -> list[Event]:
        """Train one more epoch of the trials that have trained least; return the events.

        Trials set back by a crash thus catch up first, and all are judged at the same epoch.
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
        """Yield the events of `advance` before ends are stored, up to one that ends the step for all."""
        for event in self._start():
            yield event
            if isinstance(event, ClaimedElsewhere | MachineFailed):
                return
        least = min((attempt.epoch for attempt in self._open() if attempt.epoch is not None), default=None)
        behind = [attempt for attempt in self._open() if attempt.epoch == least]
        if self._packer is not None:
            self._packer.take_steps(behind)
        for attempt in behind:
            yield (event := attempt.advance())
            if attempt.trained and not attempt.ended:
                yield (event := attempt.advance())
            if isinstance(event, ClaimedElsewhere | MachineFailed):
                return

    def _start(self) -> list[Event]:
        events: list[Event] = []
        for attempt in self._open():
            if attempt.epoch is None and not any(
                isinstance(each, ClaimedElsewhere | MachineFailed) for each in events
            ):
                events.append(attempt.advance())
        return events

    def _open(self) -> list[Attempt]:
        return [attempt for attempt in self._attempts if not attempt.ended]

    def mean_metric(self, metric: str) -> float:
        """Return the mean of a metric over the trials; NaN while one lacks it, or if one has failed."""
        values = [metrics.get(metric, math.nan) for metrics in self._latest.values()]
        return fmean(values) if values and len(values) == len(self._attempts) else math.nan


def collect(events: Iterator[Event], seconds: float) -> list[Event]:
    """Collect the events of about this many seconds; an empty list at the end."""
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
    make_training: TrainingFactory = Training,
) -> None:
    """Run all cohorts of a source in this process, or stop on request, even within an epoch."""
    worker: Worker | None = None  # which loads much that nobody needs where nothing is left to train
    while not stop.requested and (cohort := source.next_cohort()) is not None:
        if worker is None:
            worker = Worker(store, machine, make_training)
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
