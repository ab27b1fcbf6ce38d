"""Workers: processes that train one trial after the other."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from functools import cache, partial
from importlib import import_module

import torch

from ...storage import Store
from ..core.events import Event, Listener
from ..core.process import Stop, StoppedMidway, prepare_cpu
from ..core.resources import Machine
from ..trial import outcome
from ..trial.outcome import Job
from ..trial.resumable_attempt import Attempt, Claims, TrainingFactory
from ..trial.training import Training
from .outcome_buffer import OutcomeBuffer
from .trial_source import TrialSource

MIN_CHECKPOINT_INTERVAL_S = 1.0
"""The minimum training time between two checkpoints of a trial. Saving a small trial takes some milliseconds,
as long as some of its steps."""


class Worker:
    """A process that trains trials, with its store, its device and its limits."""

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

    def train(self, job: Job) -> Generator[Event]:
        """Train a trial until it ends or pauses, and yield its events.

        The end of a short trial may be stored together with later ones, and is yielded only then. A machine
        failure is the last event. Raise StoppedMidway on a requested stop. If the caller leaves early, the
        training is saved. In the end the caller calls `flush`.
        """
        attempt = self._attempt(job, claims=self._claims_of(job.run), save_after_s=MIN_CHECKPOINT_INTERVAL_S)
        try:
            yield from self._buffer.stored(_events(attempt))
        finally:
            attempt.release()

    def flush(self) -> list[Event]:
        """Store the outcomes of ended trials; return the events that report their ends."""
        return self._buffer.flush()


def _events(attempt: Attempt) -> Generator[Event]:
    while not attempt.ended:
        yield (event := attempt.advance())
        if event.kind == "machine_failed":
            return


def run_local(source: TrialSource, store: Store, machine: Machine, listener: Listener, stop: Stop) -> None:
    """Train all trials of a source in this process. A requested stop takes effect even within an epoch."""
    worker: Worker | None = None  # slow to load, and not needed if nothing is left to train
    try:
        while not stop.requested and (job := source.next_job()) is not None:
            worker = worker or Worker(store, machine)
            paused_at: int | None = None
            with closing(worker.train(job)) as events:
                for event in events:
                    listener(event)
                    paused_at = event.run.epoch if event.kind == "paused" else None
                    if stop.requested and event.kind != "started":
                        return
            for event in worker.flush() if source.needs_results else ():
                listener(event)
            for event in source.job_ended(job, paused_at=paused_at):
                listener(event)
    except StoppedMidway:
        return
    finally:
        for event in worker.flush() if worker else ():
            listener(event)
