"""Cohorts: the trials that one worker is handed together, run one after the other or in step."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from statistics import fmean

import torch

from ...storage import Store
from ..core.cpu import prepare_cpu
from ..core.events import Ended, EpochFinished, Event, MachineFailed, Taken
from ..core.resources import Machine
from ..packs.form import form_of
from ..packs.packer import Packer
from ..trial import provenance
from ..trial.checkpoints import checkpoint_of
from ..trial.claims import Claims
from ..trial.outcome import Job
from ..trial.resumable_attempt import Attempt, TrainingFactory
from ..trial.training import Training
from .gpu_share import device_bytes, gpu_memory
from .held_outcomes import HeldOutcomes
from .memory_guard import MemoryGuard

SAVED_AFTER_S = 1.0
"""The least seconds of training between two checkpoints of a trial of a grid.

Saving a small trial takes some milliseconds, as long as some of its steps.
"""


class Worker:
    """A process that runs cohorts: its store, its device and its limits."""

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
        self._told = f", a share of {share:g}" if (share := _share(machine)) < 1.0 else ""
        self._claims: dict[str, Claims] = {}
        self._packer = _make_packer(machine, self._device)
        self._held = HeldOutcomes(store)
        provenance.commit()  # now: the files may change while it trains

    def attempts(self, jobs: Sequence[Job]) -> list[Attempt]:
        """Return the attempts at these jobs; each is claimed when it starts."""
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
                holder=self._held,
                memory=self._memory,
                told=self._told,
            )
            for job in jobs
        ]

    def events(self, attempts: Sequence[Attempt]) -> Iterator[Event]:
        """Train each trial to its end, then the next, or some together in packs; yield every event.

        Short trials are stored together, and reported as ended then. A failure of the machine is the last
        event. A caller that leaves earlier calls `flush` for the rest.
        """
        for attempt in attempts:
            attempt.save_after_s = SAVED_AFTER_S
        yield from self._held.told(self._train(attempts))

    def in_step(self, attempts: Sequence[Attempt]) -> Lockstep:
        """Return the trials of a search's point in step; short ones that end together are stored together."""
        return Lockstep(attempts, self._held, self._packer)

    def flush(self) -> list[Event]:
        """Store what has ended; return the events of it."""
        return self._held.flush()

    def _train(self, attempts: Sequence[Attempt]) -> Iterator[Event]:
        """Yield the events of `events`, before the ends of trials are stored."""
        if self._packer is None:
            yield from sequentially(attempts)
            return
        for alike in alike_jobs(attempts):
            for event in self._packer.events(alike) if len(alike) > 1 else sequentially(alike):
                yield event
                if isinstance(event, MachineFailed):
                    return

    def _claims_of(self, run: str) -> Claims:
        """Return the claims of a run, which remember what they have read of the store."""
        if run not in self._claims:
            self._claims[run] = Claims(self._store, run)
        return self._claims[run]


def _share(machine: Machine) -> float:
    """Return the share of a GPU that a trial has; 1 where it has none, or several."""
    return 1.0 if machine.gpus == "auto" else min(machine.gpus or 1.0, 1.0)


def _make_packer(machine: Machine, device: torch.device) -> Packer | None:
    """Return the packer that trains trials together, if that is wanted."""
    if machine.pack == "off":
        return None
    bytes_here = int(_share(machine) * device_bytes(machine)) if device.type == "cuda" else None
    return Packer(machine.most_packed, fitting=machine.pack == "auto", device_bytes=bytes_here)


def alike_jobs(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Group attempts by the form of their trials; a trial that cannot be packed is alone."""
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        form = form_of(attempt.job.trial.settings) or attempt.job.trial.id
        found.setdefault(form, []).append(attempt)
    return list(found.values())


def sequentially(attempts: Sequence[Attempt]) -> Iterator[Event]:
    """Train each trial to its end, then the next; yield every event, up to a failure of the machine."""
    for attempt in attempts:
        while not attempt.ended:
            event = attempt.advance()
            yield event
            if isinstance(event, MachineFailed):
                return


class Lockstep:
    """The trials of one search point, one epoch each at a time, so that their mean can be judged early.

    A point belongs to one process: if another has one of its trials, all are left to it. All processes begin
    with the same trial, so the process that has it has all. With a packer, trials of one form, such as the
    seeds of the point, take their steps together.
    """

    def __init__(self, attempts: Sequence[Attempt], held: HeldOutcomes, packer: Packer | None = None) -> None:
        self._attempts, self._held, self._packer = attempts, held, packer
        self._latest: dict[str, Mapping[str, float]] = {}
        self.epoch = 0

    @property
    def ended(self) -> bool:
        """Return whether every trial has its outcome."""
        return all(attempt.ended for attempt in self._attempts)

    def advance(self) -> list[Event]:
        """Train the trials that have trained least for one more epoch; return the events.

        So trials that a crash has left behind catch up first, and all are judged by the same epoch.
        """
        events = list(self._held.told(self._step()))
        if any(isinstance(event, MachineFailed) for event in events):
            return events
        if any(isinstance(event, Taken) for event in events):
            events += self._leave()
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
            if isinstance(event, Taken | MachineFailed):
                return
        least = min((attempt.epoch for attempt in self._open() if attempt.epoch is not None), default=None)
        behind = [attempt for attempt in self._open() if attempt.epoch == least]
        if self._packer is not None:
            self._packer.take_steps(behind)
        for attempt in behind:
            yield (event := attempt.advance())
            if attempt.trained and not attempt.ended:
                yield (event := attempt.advance())
            if isinstance(event, Taken | MachineFailed):
                return

    def _start(self) -> list[Event]:
        """Begin the trials that have not begun, up to one that another process has, or a failure."""
        events: list[Event] = []
        for attempt in self._open():
            if attempt.epoch is None and not any(isinstance(each, Taken | MachineFailed) for each in events):
                events.append(attempt.advance())
        return events

    def _open(self) -> list[Attempt]:
        """Return the attempts that have not ended."""
        return [attempt for attempt in self._attempts if not attempt.ended]

    def _leave(self) -> list[Event]:
        """Give back all trials that have not ended."""
        return [attempt.leave() for attempt in self._open()]

    def mean_metric(self, metric: str) -> float:
        """Return the mean of a metric over the trials; NaN as long as one has none, or if one has failed."""
        values = [metrics.get(metric, math.nan) for metrics in self._latest.values()]
        return fmean(values) if values and len(values) == len(self._attempts) else math.nan


def collect(events: Iterator[Event], seconds: float) -> list[Event]:
    """Return the events of about this many seconds; an empty list at the end."""
    deadline, taken = time.monotonic() + seconds, []
    for event in events:
        taken.append(event)
        if time.monotonic() >= deadline:
            break
    return taken
