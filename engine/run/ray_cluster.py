"""Training of cohorts (groups of trials) on Ray.

Ray Tune gives cohorts to actors, and each actor trains many. The actors write results to the store
themselves. No state of this module is needed after a crash: the next driver finds the missing trials in the
store.
"""

from __future__ import annotations

import logging
import pickle
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import ray
import ray.exceptions
from ray import tune
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.search import Searcher

from ...plugins import loaded_files
from ...storage import Store
from ...storage.rows import KEY_COLUMNS, has_trial, row_values
from ...studies.schema.settings import TrialSettings
from ...studies.text.units import plural
from ..core.events import ClaimedElsewhere, Ended, Event, Listener
from ..core.process import StartAborted, Stop, stopped_by_signals
from ..core.resources import Machine, has_gpu
from ..trial.checkpoints import record_stops
from ..trial.failures import MachineError
from ..trial.outcome import Job
from ..trial.resumable_attempt import TrainingFactory
from ..trial.training import Training
from .cluster_nodes import fit_to_cluster, located
from .cohorts import CohortSource
from .ray_actor import COMPLETED, CohortActor, request_stop
from .ray_connection import check_workers_here, connected, look_at_code

_log = logging.getLogger(__name__)

MAX_COHORT_LOSSES = 12
"""How often a cohort that has lost its worker gets another one; each trial counts its own deaths, too."""

COUNTED_S = 2.0
"""The interval at which the workers that fit the cluster are counted, in seconds."""

_FINISHED: Any = Searcher.FINISHED
"""Tune's mark for the end, a text."""


class _NeverPickled:
    """Base class of objects whose state Tune must not pickle for its snapshots, which are never read."""

    def __getstate__(self) -> dict[str, Any]:
        return {}


@dataclass(slots=True)
class _Cohort:
    """A cohort that Tune has received. `losses` counts how often it has lost its worker."""

    name: str
    jobs: list[Job]
    losses: int = 0


class CohortSearcher(_NeverPickled, Searcher):
    """Search algorithm for Ray Tune that proposes cohorts: trials that train together.

    The cohorts come from a grid or a search. The searcher also reports the end of each cohort to the source.
    A cohort that has lost its worker is handed out again, as another trial of Tune: Tune's own retries give
    up a cohort whose reused worker is lost before it begins the cohort. `errors` has one line for each cohort
    that has lost too many workers.
    """

    def __init__(
        self,
        source: CohortSource,
        stop: Stop,
        listener: Listener,
        count_workers: Callable[[], int] = lambda: 1,
    ) -> None:
        super().__init__()
        self._count_workers, self._workers, self._counted_at = count_workers, 1, -COUNTED_S
        self._source, self._stop, self._listener = source, stop, listener
        self._cohorts: dict[str, _Cohort] = {}
        self._lost = deque[_Cohort]()
        self._is_dry = False  # the source has had no cohort since the last end of one
        self.errors: list[str] = []
        self.handed_out: dict[str, Job] = {}  # jobs that have not been reported as ended, by trial

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """Return the configuration of the next cohort, or Tune's end marker.

        Return None if Tune must ask again later. One cohort more than there are workers is always ready, for
        the first worker that is free.
        """
        if self._stop.requested:
            return _FINISHED
        if (now := time.monotonic()) - self._counted_at >= COUNTED_S:
            self._workers, self._counted_at = self._count_workers(), now
        if self._lost:
            cohort = self._lost.popleft()
        elif len(self._cohorts) > self._workers:
            return None
        elif (found := self._next_of_source()) is not None:
            cohort = _Cohort(*found)
        else:
            # a cohort that still runs may lose its worker, and Tune does not ask again after the end marker
            return None if self._cohorts or self._source.may_have_more() else _FINISHED
        self._cohorts[trial_id] = cohort
        self.handed_out |= {job.trial.id: job for job in cohort.jobs}
        return {"tasks": pickle.dumps(cohort.jobs)}  # workers load them after the plug-ins that they need

    def _next_of_source(self) -> tuple[str, list[Job]] | None:
        # Tune asks often, so do not ask a source without more cohorts
        if self._is_dry and not self._source.may_have_more():
            return None
        found = self._source.next_cohort(self._workers)
        self._is_dry = found is None
        return found

    def should_prune(self, trial_id: str, epoch: int, value: float) -> bool:
        """Return whether to prune a cohort after this epoch. `trial_id` is the cohort's id in Ray Tune."""
        return self._source.should_prune(self._cohorts[trial_id].name, epoch, value)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Report to the source that a cohort has ended, unless it has lost its worker."""
        if not error:  # otherwise Tune calls `on_trial_error` of its callbacks next
            self._end(self._cohorts.pop(trial_id), completed=bool((result or {}).get(COMPLETED)))

    def trials_of(self, trial_id: str) -> list[str]:
        """Return the ids of the trials in a cohort. `trial_id` is the cohort's id in Ray Tune."""
        return [job.trial.id for job in self._cohorts[trial_id].jobs]

    def worker_lost(self, trial_id: str, reason: str) -> None:
        """Hand out a cohort again after it has lost its worker. After too many losses, give it up."""
        cohort = self._cohorts.pop(trial_id)
        cohort.losses += 1
        if cohort.losses <= MAX_COHORT_LOSSES:
            self._lost.append(cohort)
            return
        self.errors.append(reason)
        self._end(cohort, completed=True)  # otherwise it would be stored as pruned

    def _end(self, cohort: _Cohort, *, completed: bool) -> None:
        self._is_dry = False
        if not self._stop.requested:
            for event in self._source.cohort_ended(cohort.name, completed=completed):
                self.tell(event)

    def tell(self, event: Event) -> None:
        """Pass an event on to the listener, and note if its trial has ended."""
        if isinstance(event, Ended | ClaimedElsewhere):
            self.handed_out.pop(event.trial, None)
        self._listener.on_event(event)

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: the source is rebuilt from the store."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing: the source is rebuilt from the store."""


class EventCallback(_NeverPickled, tune.Callback):
    """Callback of Ray Tune that passes the events of workers on to the searcher's listener."""

    def __init__(self, searcher: CohortSearcher, store: Store) -> None:
        self._searcher, self._store = searcher, store

    def on_trial_result(
        self,
        iteration: int,
        trials: list[TuneTrial],
        trial: TuneTrial,
        result: dict[str, Any],
        **info: object,
    ) -> None:
        """Forward the events in a worker's new result."""
        for event in result.get("events", ()):
            self._searcher.tell(event)

    def tell_unheard_ends(self) -> None:
        """Report the stored trials that ended after Tune had stopped reading results."""
        jobs = dict(self._searcher.handed_out)
        rows = self._store.trials(columns=(*KEY_COLUMNS, "status", "reason", "metrics"))
        for row in rows.filter(has_trial(jobs), pl.col("status") != "incomplete").iter_rows(named=True):
            if row["attempt"] >= jobs[row["trial"]].attempt:  # otherwise it is of an earlier run
                trial, status, reason = row["trial"], row["status"], row["reason"]
                self._searcher.tell(Ended(trial=trial, status=status, reason=reason, metrics=row_values(row)))

    def on_trial_error(
        self, iteration: int, trials: list[TuneTrial], trial: TuneTrial, **info: object
    ) -> None:
        """Let another worker continue a cohort whose worker was lost.

        Its trials do not count the loss of a node as a death.
        """
        assert trial.pickled_error_file is not None, "Tune has just written it"
        error = pickle.loads(Path(trial.pickled_error_file).read_bytes())
        if _is_loss_of_node(error):
            lost = self._searcher.trials_of(trial.trial_id)
            record_stops(self._store, lost)
            _log.warning("a node is lost; another worker continues %s", plural(len(lost), "trial"))
        self._searcher.worker_lost(trial.trial_id, (str(error).strip() or repr(error)).splitlines()[-1])


def _is_loss_of_node(error: BaseException) -> bool:
    """Return whether an error means that a node or its connection was lost.

    When a node vanishes, Ray first calls its actors temporarily unavailable. Such a worker may still train:
    the run has dropped it, so that Ray ends it once it is reachable. Until then the leases of the store keep
    it from storing anything for a trial that another worker has taken over.
    """
    if isinstance(error, ray.exceptions.ActorDiedError):
        return error.preempted or "its node has died" in str(error)
    return isinstance(error, ray.exceptions.ActorUnavailableError)


class _Stopper(_NeverPickled, tune.Stopper):
    """Rule by which Ray Tune stops pruned cohorts and, when the run must stop, all cohorts."""

    def __init__(self, searcher: CohortSearcher, stop: Stop, metric: str | None, run: str) -> None:
        self._searcher, self._stop, self._metric = searcher, stop, metric
        self._run, self._has_signalled = run, False

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        if self._metric is None or result[COMPLETED]:
            return self._stop.requested
        prune = self._searcher.should_prune(trial_id, result["epoch"], result[self._metric])
        return prune or self._stop.requested

    def stop_all(self) -> bool:
        if self._stop.interrupted and not self._has_signalled:
            self._has_signalled = True
            request_stop(self._run)
        return self._stop.requested


def run_cohorts(
    source: CohortSource,
    store: Store,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    *,
    settings: Sequence[TrialSettings] = (),
    metric: str | None = None,
    make_training: TrainingFactory = Training.begin,
) -> list[str]:
    """Run all cohorts of a source on Ray.

    Return one error for each cohort that has lost too many workers. With a metric, each epoch is reported to
    the source, which may prune the cohort. A stop while Ray starts ends the run at once. Raise NodeError if
    the cluster at the machine's address has nodes that cannot train trials with these settings.
    """
    run, code = uuid.uuid4().hex, look_at_code()
    with ExitStack() as opened:
        try:
            with stopped_by_signals():
                head = opened.enter_context(connected(machine, listener))
                place = opened.enter_context(located(store, machine))
                if machine.address is None:
                    check_workers_here(code)
                    machine = fit_here(machine)
                else:
                    machine = fit_to_cluster(place, machine, settings, listener)
        except StartAborted:
            return []
        scratch = opened.enter_context(tempfile.TemporaryDirectory(prefix="activemem-"))
        actor = tune.with_parameters(
            CohortActor,
            place=place,
            machine=machine,
            make_training=make_training,
            metric=metric,
            plugins=loaded_files(),
            run=run,
            code=code,
        )
        searcher = CohortSearcher(source, stop, listener, partial(_count_workers, machine))
        events = EventCallback(searcher, store)
        run_config = tune.RunConfig(
            # Tune's own files are not needed after the run
            storage_path=scratch,
            callbacks=[events],
            stop=_Stopper(searcher, stop, metric, run),
            # the searcher hands out a cohort again
            failure_config=tune.FailureConfig(max_failures=0),
            # trials keep their own checkpoints in the store
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            verbose=0,
        )
        bundle = {"CPU": machine.cpus, "GPU": _gpus(machine)}
        tuner = tune.Tuner(
            tune.with_resources(actor, tune.PlacementGroupFactory([bundle])),
            # -1, because the searcher says when no cohort is left
            tune_config=tune.TuneConfig(search_alg=searcher, num_samples=-1, reuse_actors=True),
            run_config=run_config,
        )
        head.run(tuner.fit)
        if stop.requested:
            events.tell_unheard_ends()
        return searcher.errors


def fit_here(machine: Machine) -> Machine:
    """Return the machine with a number for `gpus = "auto"`: 1 if there is a GPU here, else 0.

    Raise MachineError if no trial has room here.
    """
    if machine.gpus == "auto":
        machine = replace(machine, gpus=1.0 if has_gpu() else 0.0)
    for name, asked in (("CPU", machine.cpus), ("GPU", _gpus(machine))):
        if asked > (found := ray.cluster_resources().get(name, 0.0)):  # Tune would wait for ever
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
