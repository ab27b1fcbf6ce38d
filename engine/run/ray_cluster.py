"""Training on Ray: each trial is a trial of Ray Tune.

Tune gives trials to actors, and each actor trains many. The actors write results to the store themselves. No
state of this module is needed after a crash: the next driver finds the missing trials in the store.
"""

from __future__ import annotations

import logging
import pickle
import re
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
from ..core.events import Event, Listener
from ..core.process import StartAborted, Stop, stopped_by_signals
from ..core.resources import Machine, has_gpu
from ..core.run import Run
from ..trial.checkpoints import record_stops
from ..trial.failures import MachineError
from ..trial.outcome import Job
from ..trial.resumable_attempt import TrainingFactory
from ..trial.training import Training
from .cluster_nodes import fit_to_cluster, located
from .ray_actor import JOB, request_stop, worker_class
from .ray_connection import check_workers_here, connected, look_at_code
from .trial_source import TrialSource

_log = logging.getLogger(__name__)

MAX_WORKER_LOSSES = 12
"""How often a trial that has lost its worker gets another one; a trial fails after fewer deaths."""

READY = 2
"""The number of trials that are handed to Tune before a worker is free."""

MAX_NAME = 60
"""The number of characters of a trial's levels in its name in Tune."""

_NOT_IN_NAMES = re.compile(r"[^\w.,=+-]+", re.ASCII)

COUNTED_S = 2.0
"""The interval at which the workers that fit the cluster are counted, in seconds."""

_FINISHED: Any = Searcher.FINISHED
"""Tune's mark for the end, a text."""


class _NeverPickled:
    """Base class of objects whose state Tune must not pickle for its snapshots, which are never read."""

    def __getstate__(self) -> dict[str, Any]:
        return {}


@dataclass(slots=True)
class _HandedOut:
    """A trial that Tune has received. `losses` counts how often it has lost its worker."""

    job: Job
    losses: int = 0


class TrialSearcher(_NeverPickled, Searcher):
    """Search algorithm for Ray Tune that suggests the trials of a grid or a search, one by one.

    Tune's configuration of a trial has the levels of its factors. The searcher also tells the source which
    trials have ended. A trial that has lost its worker is suggested again, as another trial of Tune: Tune's
    own retries give up a trial whose reused worker is lost before it begins the trial. `errors` has one line
    for each trial that has lost too many workers.
    """

    def __init__(
        self,
        source: TrialSource,
        stop: Stop,
        listener: Listener,
        count_workers: Callable[[], int] = lambda: 1,
    ) -> None:
        super().__init__()
        self._count_workers, self._workers, self._counted_at = count_workers, 1, -COUNTED_S
        self._source, self._stop, self._listener = source, stop, listener
        self._running: dict[str, _HandedOut] = {}  # by their ids in Ray Tune
        self._lost = deque[_HandedOut]()
        self._is_dry = False  # the source has had no trial since the last end of one
        self.errors: list[str] = []
        self.handed_out: dict[str, Job] = {}  # jobs that have not been reported as ended, by trial

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """Return the configuration of the next trial, or Tune's end marker.

        Return None if Tune must ask again later. A worker that becomes free finds a trial that is ready:
        there are always `READY` more than there are workers.
        """
        if self._stop.requested:
            return _FINISHED
        if (now := time.monotonic()) - self._counted_at >= COUNTED_S:
            self._workers, self._counted_at = self._count_workers(), now
        if self._lost:
            handed_out = self._lost.popleft()
        elif len(self._running) >= self._workers + READY:
            return None
        elif (job := self._next_of_source()) is not None:
            handed_out = _HandedOut(job)
        else:
            # a trial that still runs may lose its worker, and Tune does not ask again after the end marker
            return None if self._running or self._source.may_have_more() else _FINISHED
        self._running[trial_id] = handed_out
        trial = handed_out.job.trial
        self.handed_out[trial.id] = handed_out.job
        return {**trial.levels, "seed": trial.settings.seed, JOB: handed_out.job.to_json()}

    def _next_of_source(self) -> Job | None:
        # Tune asks often, so do not ask a source without more trials
        if self._is_dry and not self._source.may_have_more():
            return None
        found = self._source.next_job(self._workers)
        self._is_dry = found is None
        return found

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tell the source that a trial has ended or paused, unless it has lost its worker."""
        if not error:  # otherwise Tune calls `on_trial_error` of its callbacks next
            events: Sequence[Event] = (result or {}).get("events", ())
            paused = [event.run.epoch for event in events if event.kind == "paused"]
            self._end(self._running.pop(trial_id).job, paused_at=paused[0] if paused else None)

    def job_of(self, trial_id: str) -> Job:
        """Return the job of a running trial, given its id in Ray Tune."""
        return self._running[trial_id].job

    def worker_lost(self, trial_id: str, reason: str) -> None:
        """Suggest a trial again after it has lost its worker. After too many losses, give it up."""
        lost = self._running.pop(trial_id)
        lost.losses += 1
        if lost.losses <= MAX_WORKER_LOSSES:
            self._lost.append(lost)
            return
        self.errors.append(reason)
        self._end(lost.job, paused_at=None)

    def _end(self, job: Job, *, paused_at: int | None) -> None:
        self._is_dry = False
        if not self._stop.requested:
            for event in self._source.job_ended(job, paused_at=paused_at):
                self.tell(event)

    def tell(self, event: Event) -> None:
        """Pass an event on to the listener, and note if its trial has ended."""
        if event.kind in ("ended", "elsewhere"):
            self.handed_out.pop(event.run.trial, None)
        self._listener(event)

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: the source is rebuilt from the store."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing: the source is rebuilt from the store."""


class EventCallback(_NeverPickled, tune.Callback):
    """Callback of Ray Tune that passes the events of workers on to the searcher's listener."""

    def __init__(self, searcher: TrialSearcher, store: Store) -> None:
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
                known = {name: row[name] for name in ("trial", "attempt", "status", "reason")}
                self._searcher.tell(Event(kind="ended", run=Run(**known, metrics=row_values(row))))

    def on_trial_error(
        self, iteration: int, trials: list[TuneTrial], trial: TuneTrial, **info: object
    ) -> None:
        """Let another worker continue a trial whose worker was lost.

        The loss of a node does not count as a death.
        """
        assert trial.pickled_error_file is not None, "Tune has just written it"
        error = pickle.loads(Path(trial.pickled_error_file).read_bytes())
        if _is_loss_of_node(error):
            job = self._searcher.job_of(trial.trial_id)
            record_stops(self._store, [job.trial.id])
            _log.warning("a node is lost; another worker continues trial %s", job.trial.id)
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
    """Rule by which Ray Tune stops all trials when the run must stop."""

    def __init__(self, stop: Stop, run: str) -> None:
        self._stop, self._run, self._has_signalled = stop, run, False

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return self._stop.requested

    def stop_all(self) -> bool:
        if self._stop.interrupted and not self._has_signalled:
            self._has_signalled = True
            request_stop(self._run)
        return self._stop.requested


class GuardedCallback(_NeverPickled, tune.Callback):
    """A callback of the user, whose first exception stops the run.

    The running trials are saved first. The exception is then raised in the driver.
    """

    def __init__(self, callback: tune.Callback, stop: Stop) -> None:
        self._callback, self._stop = callback, stop
        self.error: Exception | None = None

    def _call(self, hook: str, *given: object, **more: object) -> None:
        if self.error is None:
            try:
                getattr(self._callback, hook)(*given, **more)
            except Exception as error:  # noqa: BLE001 -- any code of the user
                self.error, self._stop.requested = error, True


def _guarded(hook: str) -> Callable[..., None]:
    def call(self: GuardedCallback, *given: object, **more: object) -> None:
        self._call(hook, *given, **more)  # pyright: ignore[reportPrivateUsage] -- a method of this class

    return call


for _hook in vars(tune.Callback):
    if _hook == "setup" or _hook.startswith("on_"):
        setattr(GuardedCallback, _hook, _guarded(_hook))


def train_on_ray(
    source: TrialSource,
    store: Store,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    *,
    study: str = "study",
    settings: Sequence[TrialSettings] = (),
    callbacks: Sequence[tune.Callback] = (),
    make_training: TrainingFactory = Training.begin,
) -> list[str]:
    """Train all trials of a source on Ray, where each is a trial of Ray Tune.

    Return one error for each trial that has lost too many workers. `study` names the experiment. `callbacks`
    are called by Tune in this process; an exception of one stops the run, and is raised once all trials are
    saved. A stop while Ray starts ends the run at once. Raise NodeError if the cluster at the machine's
    address has nodes that cannot train trials with these `settings`.
    """
    run, code = uuid.uuid4().hex, look_at_code()
    with ExitStack() as opened:
        try:
            with stopped_by_signals():
                head = opened.enter_context(connected(machine, listener, study))
                place = opened.enter_context(located(store, machine))
                if machine.address is None:
                    check_workers_here(code)
                    machine = fit_here(machine)
                else:
                    machine = fit_to_cluster(place, machine, settings, listener)
        except StartAborted:
            return []
        searcher = TrialSearcher(source, stop, listener, partial(_count_workers, machine))
        events = EventCallback(searcher, store)
        guarded = [GuardedCallback(each, stop) for each in callbacks]
        tuner = tune.Tuner(
            worker_class(
                f"activemem_{study}",
                place=place,
                machine=machine,
                make_training=make_training,
                plugins=loaded_files(),
                run=run,
                code=code,
            ),
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                num_samples=-1,  # the searcher says when no trial is left
                reuse_actors=True,
                trial_name_creator=_trial_name,
                trial_dirname_creator=_trial_name,
            ),
            run_config=tune.RunConfig(
                name=study,
                # Tune's own files are not needed after the run
                storage_path=opened.enter_context(tempfile.TemporaryDirectory(prefix="activemem-")),
                callbacks=[events, *guarded],
                stop=_Stopper(stop, run),
                # the searcher suggests a lost trial again
                failure_config=tune.FailureConfig(max_failures=0),
                # trials keep their own checkpoints in the store
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                verbose=0,
            ),
        )
        head.run(tuner.fit)
        if stop.requested:
            events.tell_unheard_ends()
        for each in guarded:
            if each.error is not None:
                raise each.error
        return searcher.errors


def _trial_name(trial: TuneTrial) -> str:
    """Return a trial's name in Tune's tables and folders: its levels, and its id in Tune."""
    levels = ",".join(f"{name}={level}" for name, level in trial.config.items() if name != JOB)
    return f"{_NOT_IN_NAMES.sub('_', levels)[:MAX_NAME]}_{trial.trial_id}"


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
