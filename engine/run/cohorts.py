"""A cohort: the trials that one worker is handed together, run one after the other or in step."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import torch

from ...storage import Store
from ..core.events import Ended, EpochFinished, Event, MachineFailed
from ..core.resources import Machine
from ..trial.outcome import Job
from ..trial.resumable_attempt import Attempt, TrainingFactory
from ..trial.training import Training


class Worker:
    """What stays the same from cohort to cohort in one process: the store, the device and the limits."""

    def __init__(self, store: Store, machine: Machine, make_training: TrainingFactory = Training) -> None:
        torch.set_num_threads(machine.threads)
        self._store, self._limit, self._begin = store, machine.time_limit_s, make_training
        self._data = machine.data
        self._device = torch.device(machine.device)

    def attempts(self, jobs: Sequence[Job], *, restarted: bool = False) -> list[Attempt]:
        """The jobs, ready to advance; where a dead worker is `restarted`, without those that it had ended."""
        ended = self._store.latest_attempts() if restarted else {}
        return [
            Attempt(
                job,
                self._store,
                self._device,
                time_limit_s=self._limit,
                data=self._data,
                make_training=self._begin,
            )
            for job in jobs
            if ended.get(job.trial.id, ("", -1))[1] < job.attempt
        ]


def sequentially(attempts: Sequence[Attempt]) -> Iterator[Event]:
    """Each trial to its end, then the next: every event as it happens, up to a failure of the machine."""
    for attempt in attempts:
        while not attempt.ended:
            event = attempt.advance()
            yield event
            if isinstance(event, MachineFailed):
                return


class Lockstep:
    """Several trials of one search point, an epoch each at a time, so that their mean can be judged early."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self._attempts = attempts
        self._latest: dict[str, Mapping[str, float]] = {}
        self.epoch = 0

    @property
    def ended(self) -> bool:
        """Whether every trial has its outcome."""
        return all(attempt.ended for attempt in self._attempts)

    def advance(self) -> list[Event]:
        """One epoch more of every trial that has not ended; what happened."""
        events: list[Event] = []
        for attempt in self._attempts:
            while not attempt.ended:
                events.append(attempt.advance())
                if isinstance(events[-1], MachineFailed):
                    return events
                if isinstance(events[-1], EpochFinished) and not attempt.trained:
                    break
        for event in events:
            if isinstance(event, EpochFinished):
                self._latest[event.trial] = event.metrics
                self.epoch = max(self.epoch, event.epoch)
            elif isinstance(event, Ended) and event.status != "done":
                self._latest[event.trial] = {}
        return events

    def mean_metric(self, metric: str) -> float:
        """The mean of a metric over the trials; NaN as long as one has none, or when one has failed."""
        values = [metrics.get(metric, math.nan) for metrics in self._latest.values()]
        return fmean(values) if values and len(values) == len(self._attempts) else math.nan


def collect(events: Iterator[Event], seconds: float) -> list[Event]:
    """The next events, for about that long; none when there are no more."""
    deadline, taken = time.monotonic() + seconds, []
    for event in events:
        taken.append(event)
        if time.monotonic() >= deadline:
            break
    return taken
