"""Trials in a process of their own, without Ray: what one of them does to it does not end the run."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Self

from ....plugins import loaded_files
from ....storage import Store
from ...core.events import Ended, Listener, MachineFailed, Started, Taken
from ...core.interruption import GRACE_S
from ...core.process_end import describe_end
from ...core.resources import Machine
from ...trial.last_words import MAX_WORKER_DEATHS, note_death
from ...trial.outcome import Job
from ...trial.resumable_attempt import TrainingFactory
from ...trial.training import Training
from ..cohort_sources import CohortSource
from ..interrupts import Stop
from .worker_process import HELD_BACK, STOP_SIGNAL, Post, Step, work

POLL_S = 0.1
"""So often it is looked whether a stop is requested, while a worker trains."""

STOP_S = GRACE_S + 2.0
"""So long after a stop is requested a worker may take to leave its epoch; then it is killed."""


class _WorkerDiedError(Exception):
    """The worker has ended while something was asked of it; the text says how."""


def run_isolated(
    source: CohortSource,
    store: Store,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    *,
    metric: str | None = None,
    make_training: TrainingFactory = Training,
) -> None:
    """Run a source's cohorts to their end, or until a stop is requested, in a worker's process.

    When that dies, another goes on with the cohort: its deaths are counted as those of Ray's workers are.
    """
    post = Post(
        store=store, machine=machine, make_training=make_training, metric=metric, plugins=loaded_files()
    )
    with _WorkerProcess(post, stop) as worker:
        run = _IsolatedRun(source=source, store=store, listener=listener, stop=stop, worker=worker)
        while not stop.requested and (cohort := source.next_cohort()) is not None:
            name, jobs = cohort
            if (completed := run.train(name, jobs)) is None:
                return
            for event in source.cohort_ended(name, completed=completed):
                listener.on_event(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class _IsolatedRun:
    """A run in the process that asks for it."""

    source: CohortSource
    store: Store
    listener: Listener
    stop: Stop
    worker: _WorkerProcess

    def train(self, name: str, jobs: Sequence[Job]) -> bool | None:
        """Train a cohort, by as many workers as it takes; whether it ended, None if the run is to end."""
        left, deaths = {job.trial.id: job for job in jobs}, 0
        step = self._begin(left)
        while True:
            if step is None:
                deaths += 1
                if self.stop.requested or self._has_no_hope(deaths):
                    return None
                step = self._begin(left)
                continue
            for event in step.events:
                deaths = 0
                if isinstance(event, Ended | Taken):
                    left.pop(event.trial, None)
                self.listener.on_event(event)
            if step.ended:
                return True
            if step.stopped or (self.stop.requested and not _has_begun_only(step)):
                return None
            if step.epoch and self.source.should_prune(name, step.epoch, step.value):
                self._ask([], {})  # which gives the trials back
                return False
            step = self._ask(None, left)

    def _begin(self, left: Mapping[str, Job]) -> Step | None:
        """The first step of a worker with these jobs; None if it died."""
        return self._ask(list(left.values()), left)

    def _ask(self, jobs: Sequence[Job] | None, left: Iterable[str]) -> Step | None:
        """A step of the worker; None if it died, which is noted beside the checkpoints of what was left."""
        try:
            return self.worker.step(jobs)
        except _WorkerDiedError as death:
            for trial in left:
                note_death(self.store.checkpoint_dir(trial), str(death))
            return None

    def _has_no_hope(self, deaths: int) -> bool:
        """Whether workers die without any event, which their trials would have ended by their own deaths."""
        if hopeless := deaths > 2 * MAX_WORKER_DEATHS:
            self.listener.on_event(MachineFailed(reason="workers die before they begin to train"))
        return hopeless


def _has_begun_only(step: Step) -> bool:
    return all(isinstance(event, Started) for event in step.events)


class _WorkerProcess:
    """The worker of a run: started when something is asked of it, and again after its death."""

    def __init__(self, post: Post, stop: Stop) -> None:
        self._post, self._stop = post, stop
        self._process: SpawnProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(at_once=kind is not None)

    def step(self, jobs: Sequence[Job] | None) -> Step:
        """Have the worker begin with these jobs, or go on with those before; what happened, or its death."""
        if self._process is None:
            started = self._start()
            if started.events or started.stopped:
                return started
        try:
            self._connection.send(None if jobs is None else pickle.dumps(jobs))
        except OSError:
            raise self._died() from None
        return self._answer()

    def _start(self) -> Step:
        """Start the process; its first answer says that it is ready, or why it is not."""
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        process = context.Process(
            target=work, args=(self._post, theirs, os.getpid()), name="activemem", daemon=True
        )
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)  # until it has handlers for them
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._process = process
        theirs.close()
        return self._answer()

    def _answer(self) -> Step:
        """The worker's next answer; a worker that does not stop in time when it is to is killed."""
        assert self._process is not None, "it was started"
        kill_at = None
        while not wait([self._connection, self._process.sentinel], timeout=POLL_S):
            if self._stop.requested and kill_at is None:
                os.kill(self._process.pid or 0, STOP_SIGNAL)
                kill_at = time.monotonic() + STOP_S
            elif kill_at is not None and time.monotonic() > kill_at:
                self._end(at_once=True)
                return Step(stopped=True)
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            raise self._died() from None

    def _died(self) -> _WorkerDiedError:
        """How the worker has ended."""
        assert self._process is not None, "it was started"
        process = self._process
        self._end(at_once=False)
        return _WorkerDiedError(describe_end(process.exitcode or 0))

    def _end(self, *, at_once: bool) -> None:
        """End the process: when it has read the end of the pipe, or at once."""
        if self._process is None:
            return
        process, self._process = self._process, None
        self._connection.close()
        if not at_once:
            process.join(STOP_S)
        if process.is_alive():
            process.kill()
        process.join()
