"""Training of cohorts (groups of trials) on Ray.

A pool of actors gets cohorts, and each actor trains many. The actors write results to the store themselves.
No state of this module is needed after a crash: the next driver finds the missing trials in the store.
"""

from __future__ import annotations

import pickle
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import ray
import ray.exceptions

from ...plugins import loaded_files
from ...storage import Store
from ...studies.schema.settings import TrialSettings
from ..core.events import ClusterNode, Event, Listener, MachineFailed
from ..core.process import StartAborted, Stop, stopped_by_signals
from ..core.resources import Machine, count_gpus_of_processes, gpu_here
from ..trial.checkpoints import record_stops
from ..trial.failures import MachineError
from ..trial.outcome import Job
from ..trial.resumable_attempt import TrainingFactory
from ..trial.training import Training
from .cluster_nodes import fit_to_cluster, located, share_of_gpu
from .cohorts import CohortSource
from .ray_actor import CohortActor, Report, request_stop
from .ray_connection import POLL_S, check_workers_here, connected, look_at_code

MAX_COHORT_LOSSES = 12
"""How often a cohort that has lost its worker gets another one; each trial counts its own deaths, too."""

COUNTED_S = 2.0
"""The interval at which the workers that fit the cluster are counted, in seconds."""

LEAVE_S = 60.0
"""The seconds after which a worker that does not stop is killed."""


@dataclass(slots=True)
class Cohort:
    """A group of trials for one worker. `losses` counts how often it has lost its worker."""

    name: str
    jobs: list[Job]
    losses: int = 0


class Handouts:
    """The cohorts of a grid or a search that have been handed out to workers.

    A cohort that has lost its worker is handed out again. `errors` has one line for each cohort that has lost
    too many workers.
    """

    def __init__(self, source: CohortSource, store: Store, stop: Stop, listener: Listener) -> None:
        self.source, self.stop, self._store, self._listener = source, stop, store, listener
        self._lost = deque[Cohort]()
        self._is_dry = False  # the source has had no cohort since the last end of one
        self.errors: list[str] = []

    def next(self, workers: int) -> Cohort | None:
        """Return the next cohort, or None if there is none now."""
        if self._lost:
            return self._lost.popleft()
        if self._is_dry and not self.source.may_have_more():
            return None  # to ask a source takes time
        found = self.source.next_cohort(workers)
        self._is_dry = found is None
        return None if found is None else Cohort(*found)

    def tell(self, events: Sequence[Event]) -> None:
        """Pass events on to the listener."""
        for event in events:
            self._listener.on_event(event)

    def end(self, cohort: Cohort, *, completed: bool) -> None:
        """Report to the source that a cohort has ended."""
        self._is_dry = False
        if not self.stop.requested:
            self.tell(self.source.cohort_ended(cohort.name, completed=completed))

    def lose(self, cohort: Cohort, error: BaseException | str) -> None:
        """Hand out a cohort again after it has lost its worker. After too many losses, give it up.

        Its trials do not count the loss of a node as a death.
        """
        if isinstance(error, BaseException) and _is_loss_of_node(error):
            record_stops(self._store, [job.trial.id for job in cohort.jobs])
        cohort.losses += 1
        if cohort.losses <= MAX_COHORT_LOSSES:
            self._lost.append(cohort)
            return
        self.errors.append((str(error).strip() or repr(error)).splitlines()[-1])
        self.end(cohort, completed=True)  # otherwise it would be stored as pruned


def _is_loss_of_node(error: BaseException) -> bool:
    """Return whether an error means that a node or its connection was lost.

    When a node vanishes, Ray first calls its actors temporarily unavailable. Such a worker may still train:
    the run has dropped it, so that Ray ends it once it is reachable. Until then the leases of the store keep
    it from storing anything for a trial that another worker has taken over.
    """
    if isinstance(error, ray.exceptions.ActorDiedError):
        return error.preempted or "its node has died" in str(error)
    return isinstance(error, ray.exceptions.ActorUnavailableError)


class _Pool:
    """The actors of a run, as many as fit the cluster.

    An actor starts only if a cohort waits for it, but the first free actor takes this cohort: on a cluster
    with too little room an actor may never start. Ray ends an actor to which nothing refers any more.
    """

    def __init__(
        self, handouts: Handouts, make_actor: Callable[[], Any], count_workers: Callable[[], int], run: str
    ) -> None:
        self._handouts, self._make_actor, self._run = handouts, make_actor, run
        self._count_workers, self._workers, self._counted_at = count_workers, 1, -COUNTED_S
        self._waiting = deque[Cohort]()
        self._idle: list[Any] = []
        self._starting: dict[Any, Any] = {}  # actors, by the answer that Ray promises
        self._training: dict[Any, tuple[Any, Cohort]] = {}

    def train(self) -> None:
        """Train all cohorts. A requested stop ends this, after the workers have saved their trials."""
        stop = self._handouts.stop
        self._hand_out()
        while (self._training or self._waiting) and not stop.requested:
            ready, _ = ray.wait([*self._training, *self._starting], timeout=POLL_S)
            for answer in ready:
                if answer in self._starting:
                    self._started(answer)
                else:
                    self._take_report(answer)
            if not stop.requested:
                self._hand_out()
        if stop.requested:
            self._stop()

    def _hand_out(self) -> None:
        if (now := time.monotonic()) - self._counted_at >= COUNTED_S:
            self._workers, self._counted_at = self._count_workers(), now
        free = self._workers - len(self._training)
        while len(self._waiting) < free and (cohort := self._handouts.next(self._workers)) is not None:
            self._waiting.append(cohort)
        while self._waiting and self._idle:
            actor, cohort = self._idle.pop(), self._waiting.popleft()
            # the actor loads the jobs after the plug-ins that they need
            self._training[actor.begin.remote(pickle.dumps(cohort.jobs))] = actor, cohort
        for _ in range(len(self._waiting) - len(self._starting)):
            actor = self._make_actor()
            self._starting[actor.fault.remote()] = actor
        if not self._handouts.source.may_have_more():
            self._idle.clear()

    def _started(self, answer: Any) -> None:  # noqa: ANN401 -- a reference of Ray
        actor = self._starting.pop(answer)
        try:
            fault: str = ray.get(answer)
        except ray.exceptions.RayError as error:
            if self._waiting:
                self._handouts.lose(self._waiting.popleft(), error)
            return
        if fault:
            self._handouts.tell([MachineFailed(reason=fault)])
        else:
            self._idle.append(actor)

    def _take_report(self, answer: Any) -> None:  # noqa: ANN401 -- as above
        """Pass on what a worker reports of its cohort, and let it continue, unless the cohort ends."""
        actor, cohort = self._training.pop(answer)
        stop, source = self._handouts.stop, self._handouts.source
        try:
            report: Report = ray.get(answer)
            self._handouts.tell(report.events)
            if report.lost:
                self._handouts.lose(cohort, report.lost)
                return
            is_over = report.has_ended or source.should_prune(cohort.name, report.epoch, report.value)
            if stop.requested or (is_over and not report.has_ended):
                self._handouts.tell(ray.get(actor.release.remote(), timeout=LEAVE_S))
        except ray.exceptions.RayError as error:
            self._handouts.lose(cohort, error)
            return
        if is_over:
            self._handouts.end(cohort, completed=report.has_ended)
            self._idle.append(actor)
        elif not stop.requested:
            self._training[actor.train.remote()] = actor, cohort

    def _stop(self) -> None:
        """Let all workers save their trials, and kill those that do not stop."""
        request_stop(self._run)
        if self._training:
            answers = list(self._training)
            ready, late = ray.wait(answers, num_returns=len(answers), timeout=LEAVE_S)
            for answer in ready:
                self._take_report(answer)
            for answer in late:
                ray.kill(self._training[answer][0])


def run_cohorts(
    source: CohortSource,
    store: Store,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    *,
    settings: Sequence[TrialSettings] = (),
    at_once: int | None = None,
    metric: str | None = None,
    make_training: TrainingFactory = Training.begin,
) -> list[str]:
    """Run all cohorts of a source on Ray.

    Return one error for each cohort that has lost too many workers. With a metric, each epoch is reported to
    the source, which may prune the cohort. If at most `at_once` trials can train at the same time, they are
    spread over all GPUs. A stop while Ray starts ends the run at once. Raise NodeError if the cluster at the
    machine's address has nodes that cannot train trials with these settings.
    """
    run, code = uuid.uuid4().hex, look_at_code()
    with ExitStack() as opened:
        try:
            with stopped_by_signals():
                head = opened.enter_context(connected(machine, listener))
                place = opened.enter_context(located(store, machine))
                if machine.address is None:
                    check_workers_here(code)
                if machine.address is not None:
                    machine = fit_to_cluster(place, machine, settings, listener, at_once)
                else:
                    machine = fit_here(machine, settings, at_once)
        except StartAborted:
            return []
        options = {"num_cpus": machine.cpus, "num_gpus": _gpus(machine)}
        make_actor = partial(
            ray.remote(CohortActor).options(**options).remote,
            place,
            machine,
            make_training,
            metric=metric,
            plugins=loaded_files(),
            run=run,
            code=code,
        )
        handouts = Handouts(source, store, stop, listener)
        head.run(_Pool(handouts, make_actor, partial(_count_workers, machine), run).train)
        return handouts.errors


def fit_here(machine: Machine, settings: Sequence[TrialSettings], at_once: int | None) -> Machine:
    """Return the machine with each trial's share of a GPU. Raise MachineError if no trial has room here."""
    cpus = ray.cluster_resources().get("CPU", 1.0)
    if machine.gpus == "auto":
        found = gpu_here()
        here = ClusterNode(
            host="here", cpus=cpus, gpus=count_gpus_of_processes(), gpu_bytes=found[0].bytes if found else 0
        )
        machine = replace(machine, gpus=share_of_gpu(machine, [here], settings, at_once) if found else 0.0)
    for name, asked in (("CPU", machine.cpus), ("GPU", _gpus(machine))):
        if asked > (found := ray.cluster_resources().get(name, 0.0)):  # no worker would ever start
            raise MachineError(
                f"{name.lower()}s: expected at most {found:g}, the number on this machine, got {asked:g}"
            )
    return machine


def _gpus(machine: Machine) -> float:
    assert machine.gpus != "auto", "`auto` has been replaced by a number"
    return machine.gpus


def _count_workers(machine: Machine) -> int:
    found = ray.cluster_resources()
    rooms = [
        found.get(name, 0.0) / asked
        for name, asked in (("CPU", machine.cpus), ("GPU", _gpus(machine)))
        if asked
    ]
    return max(1, int(min(rooms, default=1.0)))
