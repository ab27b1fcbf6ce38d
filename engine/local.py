"""Trials in the calling process, one cohort after the other, without Ray: for debugging and for small machines."""

from __future__ import annotations

from ..storage import Store
from .attempt import Attempt, Begin
from .cohorts import InStep, Worker, in_turn
from .events import Advanced, Listener
from .machine import Machine
from .sources import Source
from .stopping import Stop
from .training import Training


def run_local(
    source: Source,
    store: Store,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    *,
    metric: str | None = None,
    begin: Begin = Training,
) -> None:
    """Run a source's cohorts to their end, or until a stop is requested and the epoch under way is over."""
    worker = Worker(store, machine, begin)
    while not stop.requested and (cohort := source.next_cohort()) is not None:
        name, tasks = cohort
        attempts = worker.attempts(tasks)
        if metric is None:
            whole = _all_in_turn(attempts, listener, stop)
        else:
            whole = _all_in_step(name, InStep(attempts), metric, source, listener, stop)
        if not stop.requested:
            for event in source.cohort_ended(name, whole=whole):
                listener.hear(event)


def _all_in_turn(attempts: list[Attempt], listener: Listener, stop: Stop) -> bool:
    for event in in_turn(attempts):
        listener.hear(event)
        if stop.requested and isinstance(event, Advanced):
            return False
    return True


def _all_in_step(
    name: str, cohort: InStep, metric: str, source: Source, listener: Listener, stop: Stop
) -> bool:
    """Train the trials of a search point in step; False if the source gave the point up."""
    while not cohort.ended and not stop.requested:
        for event in cohort.advance():
            listener.hear(event)
        if not cohort.ended and source.judge(name, cohort.epoch, cohort.value(metric)):
            return False
    return True
