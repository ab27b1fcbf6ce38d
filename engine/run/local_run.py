"""Local runs: trials in the calling process, one cohort after the other, without Ray."""

from __future__ import annotations

from collections.abc import Iterator

from ...storage import Store
from ..core.events import Event, Listener, Started
from ..core.interruption import StoppedMidway
from ..core.resources import Machine
from ..trial.resumable_attempt import TrainingFactory
from ..trial.training import Training
from .cohort_sources import CohortSource
from .cohorts import Lockstep, Worker
from .interrupts import Stop


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
    """Run a source's cohorts to their end, or until a stop is requested, which leaves epochs midway."""
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
    """Advance the trials of a search point in step, until they end or the source gives the point up."""
    while not cohort.ended:
        yield from cohort.advance()
        if not cohort.ended and source.should_prune(name, cohort.epoch, cohort.mean_metric(metric)):
            return
