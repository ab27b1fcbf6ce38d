"""Trials on a Ray cluster: Tune runs cohorts in reused actors, which write their own results.

Nothing here is needed to go on after a crash: what is missing from the store is asked for again.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",  # the old output has no header when it is not asked for
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # 13 to 30 ms a trial
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # the driver stops in its own way
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # the store is the truth; Tune's snapshots are never read
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # a dead head ends the run soon, instead of after a minute
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
for _name, _value in _QUIET.items():
    os.environ.setdefault(_name, _value)

import ray  # noqa: E402 -- reads the environment above while it is imported
from ray import tune  # noqa: E402
from ray.tune.schedulers import (  # noqa: E402
    AsyncHyperBandScheduler,
    FIFOScheduler,
    MedianStoppingRule,
    TrialScheduler,
)
from ray.tune.search import Searcher  # noqa: E402

from ..storage import Store  # noqa: E402
from ..studies.settings import SearchSettings  # noqa: E402
from .attempt import Begin  # noqa: E402
from .cohorts import InStep, Worker, collect, in_turn  # noqa: E402
from .events import Listener  # noqa: E402
from .machine import Machine  # noqa: E402
from .sources import Source  # noqa: E402
from .stopping import Stop  # noqa: E402
from .training import Training  # noqa: E402

REPORT_S = 0.5
"""About so often a worker reports; more often only when the epochs of a search must be judged."""

WORKER_DEATHS = 12
"""So many deaths of its workers may a cohort survive; its trials count their own (`attempt.DEATHS`)."""


WHOLE = "whole"
"""The key of a result after which nothing of the cohort is left; Tune sets "done" for those it stops, too."""

AGAIN = "again"
"""The key that marks a cohort whose worker has died before."""


class CohortActor(tune.Trainable):
    """The Ray actor of a worker; one Tune trial is one cohort."""

    def setup(
        self, config: dict[str, Any], *, root: str, machine: Machine, begin: Begin, metric: str | None
    ) -> None:
        """Begin a first cohort; with a metric, its trials advance in step and report each epoch."""
        logging.getLogger("ray").setLevel(logging.ERROR)
        self._worker, self._metric = Worker(Store(Path(root)), machine, begin), metric
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Begin another cohort in the same process."""
        attempts = self._worker.attempts(new_config["tasks"], again=new_config.get(AGAIN, False))
        self._events = in_turn(attempts)
        self._in_step = InStep(attempts)
        return True

    def step(self) -> dict[str, Any]:
        """Work for a while, or an epoch; the events of it."""
        if self._metric is None:
            events = collect(self._events, REPORT_S)
            return {"events": events, "done": not events, WHOLE: not events}
        events = self._in_step.advance()
        return {
            "events": events,
            "done": self._in_step.ended,
            WHOLE: self._in_step.ended,
            "epoch": self._in_step.epoch,
            self._metric: self._in_step.value(self._metric),
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing: trials keep their own checkpoints in the store."""


class _Feed(Searcher):
    """Hands a source's cohorts to Tune and tells the source how they ended."""

    def __init__(self, source: Source, stop: Stop, listener: Listener) -> None:
        super().__init__()
        self._source, self._stop, self._listener = source, stop, listener
        self._names: dict[str, str] = {}

    def suggest(self, trial_id: str) -> dict[str, Any] | str:
        """The next cohort as a configuration, or Tune's mark for the end."""
        cohort = None if self._stop.requested else self._source.next_cohort()
        if cohort is None:
            return Searcher.FINISHED
        self._names[trial_id], tasks = cohort
        return {"tasks": tasks}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Pass the end of a cohort on, unless the study is being stopped."""
        name = self._names.pop(trial_id)
        if self._stop.requested:
            return
        whole = error or bool((result or {}).get(WHOLE))
        for event in self._source.cohort_ended(name, whole=whole):
            self._listener.hear(event)

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the source is rebuilt from the store."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: the source is rebuilt from the store."""


class _Relay(tune.Callback):
    """Hands the workers' events to the listener."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        for event in result.get("events", ()):
            self._listener.hear(event)

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:  # noqa: ANN401 -- Ray's signature
        trial.config[AGAIN] = True


class _OnRequest(tune.Stopper):
    """Stops all of Tune when a stop is requested."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return self._stop.requested

    def stop_all(self) -> bool:
        return self._stop.requested


def run_cohorts(
    source: Source,
    store: Store,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    *,
    search: SearchSettings | None = None,
    epochs: int = 1,
    begin: Begin = Training,
) -> list[str]:
    """Run a source's cohorts to their end; why some were given up, if any.

    In a search every epoch, of so many, is reported, and its scheduler may stop a cohort early.
    """
    metric = search.metric if search else None
    actor = tune.with_resources(
        tune.with_parameters(
            CohortActor, root=str(store.root.resolve()), machine=machine, begin=begin, metric=metric
        ),
        {"cpu": machine.cpus, "gpu": machine.gpus},
    )
    with _cluster(machine), tempfile.TemporaryDirectory(prefix="activemem-") as scratch:
        results = tune.Tuner(
            actor,
            tune_config=tune.TuneConfig(
                search_alg=_Feed(source, stop, listener),
                scheduler=_scheduler(search, epochs) if search else None,
                num_samples=-1,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                storage_path=scratch,
                callbacks=[_Relay(listener)],
                stop=_OnRequest(stop),
                failure_config=tune.FailureConfig(max_failures=WORKER_DEATHS),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                verbose=0,
            ),
        ).fit()
        return [str(error).strip().splitlines()[-1] for error in results.errors]


def _scheduler(search: SearchSettings, epochs: int) -> TrialScheduler:
    """Tune's scheduler for a search, counting epochs."""
    mode = {"max": "max", "min": "min"}[search.direction]
    match search.scheduler:
        case "asha":
            return AsyncHyperBandScheduler(time_attr="epoch", metric=search.metric, mode=mode, max_t=epochs)
        case "hyperband":
            return AsyncHyperBandScheduler(
                time_attr="epoch", metric=search.metric, mode=mode, max_t=epochs, brackets=3
            )
        case "median":
            return MedianStoppingRule(time_attr="epoch", metric=search.metric, mode=mode)
        case "none":
            return FIFOScheduler()


@contextmanager
def _cluster(machine: Machine) -> Iterator[None]:
    """A connection to the machine's cluster, or to one that lives as long as the run."""
    logging.getLogger("ray").setLevel(logging.ERROR)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # a worker's death is told by us
    mine = not ray.is_initialized()
    if mine:
        ray.init(
            address=machine.address or "local",
            include_dashboard=None if machine.address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    try:
        yield
    finally:
        if mine:
            ray.shutdown()
