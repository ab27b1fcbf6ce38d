"""The worker's side of an isolated run: a process that gets cohorts by a pipe and tells what happens."""

from __future__ import annotations

import faulthandler
import pickle
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType

from ....plugins import PluginError, PluginFile, load_plugin_files
from ....storage import Store
from ...core.events import Event, MachineFailed
from ...core.interruption import StoppedMidway, stop_soon
from ...core.process_end import end_with
from ...core.resources import Machine
from ...trial.machine_failures import lost_gpu
from ...trial.resumable_attempt import Attempt, TrainingFactory
from ..cohorts import Worker
from ..memory_guard import MemoryGuard

STOP_SIGNAL = signal.SIGUSR1
"""What the run sends when its worker is to leave the epoch under way in some seconds."""

HELD_BACK = (signal.SIGINT, signal.SIGTERM, STOP_SIGNAL)
"""Signals that wait until the worker has handlers for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Where a worker works: the store, the machine, how trainings are made, the metric of a search."""

    store: Store
    machine: Machine
    make_training: TrainingFactory
    metric: str | None
    plugins: tuple[PluginFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What has happened to a cohort in a step, and how it stands; `value` is that of a search's metric."""

    events: Sequence[Event] = ()
    ended: bool = False
    stopped: bool = False
    epoch: int = 0
    value: float = 0.0


def work(post: Post, connection: Connection, parent: int) -> None:
    """Answer the run's requests until it closes the pipe: jobs to begin with, or None for another step."""
    end_with(parent)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the whole group may get it; the run says when to stop
    signal.signal(STOP_SIGNAL, _stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
    faulthandler.disable()  # each trial has its own file for that
    with suppress(EOFError, BrokenPipeError):
        try:
            load_plugin_files(post.plugins)
        except PluginError as error:
            connection.send(Step(events=[MachineFailed(reason=f"a worker cannot begin: {error}")]))
            return
        limit = post.machine.memory_limit
        guard = None if limit is None else MemoryGuard(limit)
        worker = Worker(post.store, post.machine, post.make_training, guard)
        try:
            connection.send(Step())
            _answer(worker, post.metric, connection)
        finally:
            worker.end()


def _answer(worker: Worker, metric: str | None, connection: Connection) -> None:
    """Answer requests until the pipe is closed."""
    cohort = _Cohort(worker, [], metric)
    try:
        while True:
            if (request := connection.recv()) is not None:
                cohort.release()
                cohort = _Cohort(worker, worker.attempts(pickle.loads(request)), metric)
            if lost_gpu() is not None:
                return  # another process has it again
            connection.send(cohort.step())
    finally:
        cohort.release()


class _Cohort:
    """The trials that are under way."""

    def __init__(self, worker: Worker, attempts: Sequence[Attempt], metric: str | None) -> None:
        self._worker, self._attempts, self._metric = worker, attempts, metric
        self._in_step = worker.in_step(attempts)
        self._events: Iterator[Event] = worker.events(attempts)

    def release(self) -> None:
        """Give back what has not ended."""
        for attempt in self._attempts:
            attempt.release()
        self._worker.flush()

    def step(self) -> Step:
        """The next event; of a search's point, all that an epoch brings."""
        try:
            if self._metric is None:
                event = next(self._events, None)
                return Step(events=() if event is None else (event,), ended=event is None)
            events = self._in_step.advance()
            value = self._in_step.mean_metric(self._metric)
            return Step(events=events, ended=self._in_step.ended, epoch=self._in_step.epoch, value=value)
        except StoppedMidway:
            self.release()
            return Step(stopped=True)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    stop_soon()
