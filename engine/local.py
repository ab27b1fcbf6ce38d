"""Trials in the calling process, one cohort after the other, without Ray."""

from __future__ import annotations

from collections.abc import Iterator

from ..storage import Store
from .attempt import Begin
from .cohorts import InStep, Worker, in_turn
from .events import Advanced, Event, Listener
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
        events = in_turn(attempts) if metric is None else _judged(name, InStep(attempts), metric, source)
        for event in events:
            listener.hear(event)
            if stop.requested and isinstance(event, Advanced):
                return
        for event in source.cohort_ended(name, whole=all(attempt.ended for attempt in attempts)):
            listener.hear(event)


def _judged(name: str, cohort: InStep, metric: str, source: Source) -> Iterator[Event]:
    """The trials of a search point in step, until they end or the source gives the point up."""
    while not cohort.ended:
        yield from cohort.advance()
        if not cohort.ended and source.judge(name, cohort.epoch, cohort.value(metric)):
            return
