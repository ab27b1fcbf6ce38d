"""The worker's side of a Ray cluster: one actor, which is handed one cohort after the other."""

from __future__ import annotations

import faulthandler
import logging
import pickle
import socket
from math import nan
from typing import Any

from ray import tune

from ...plugins import PluginFile, load_plugin_files
from ...storage import Store
from ..core.events import MachineFailed
from ..core.resources import Machine
from ..trial.resumable_attempt import Attempt, TrainingFactory
from .cohorts import Lockstep, Worker, collect, sequentially
from .memory_guard import MemoryGuard
from .remote_store import RemoteWorker, StorePlace

REPORT_S = 0.5
"""About so often a worker reports; more often only when the epochs of a search must be judged."""

COMPLETED = "whole"
"""The key of a result after which nothing of the cohort is left; Tune sets "done" for those it stops, too."""


class CohortActor(tune.Trainable):
    """The Ray actor of a worker; one Tune trial is one cohort."""

    def setup(  # pyright: ignore[reportIncompatibleMethodOverride] -- with_parameters adds what `run_cohorts` gives
        self,
        config: dict[str, Any],
        *,
        place: StorePlace,
        machine: Machine,
        make_training: TrainingFactory,
        metric: str | None,
        plugins: tuple[PluginFile, ...],
    ) -> None:
        """Begin a first cohort; with a metric, its trials advance in step and report each epoch.

        What goes wrong is the first result: raised here, Tune would try it again for minutes.
        """
        logging.getLogger("ray").setLevel(logging.ERROR)
        faulthandler.disable()  # each trial has its own file for that
        self._metric = metric
        self._attempts: list[Attempt] = []
        self._broken: str | None = None
        try:
            load_plugin_files(plugins)
            self._worker = _make_worker(place, machine, make_training)
            self.reset_config(config)
        except Exception as error:  # noqa: BLE001 -- whatever it is, no trial has begun
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self._broken = f"a worker on {socket.gethostname()} cannot begin: {what}"

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Begin another cohort in the same process."""
        self.cleanup()
        self._attempts = self._worker.attempts(pickle.loads(new_config["tasks"]))
        self._events = sequentially(self._attempts)
        self._in_step = Lockstep(self._attempts)
        return True

    def cleanup(self) -> None:
        """Give trials back that are stopped early; Tune calls it when the actor is no longer wanted."""
        for attempt in self._attempts:
            attempt.release()

    def step(self) -> dict[str, Any]:
        """Work for a while, or an epoch; the events of it."""
        if self._broken is not None:
            failed = {"events": [MachineFailed(reason=self._broken)], "done": True, COMPLETED: False}
            return failed | ({} if self._metric is None else {"epoch": 0, self._metric: nan})
        if self._metric is None:
            events = collect(self._events, REPORT_S)
            return {"events": events, "done": not events, COMPLETED: not events}
        events = self._in_step.advance()
        return {
            "events": events,
            "done": self._in_step.ended,
            COMPLETED: self._in_step.ended,
            "epoch": self._in_step.epoch,
            self._metric: self._in_step.mean_metric(self._metric),
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing: trials keep their own checkpoints in the store."""


def _make_worker(place: StorePlace, machine: Machine, make_training: TrainingFactory) -> Worker:
    """What trains in this process, whose memory is watched if it has a limit."""
    guard = None if machine.memory_limit is None else MemoryGuard(machine.memory_limit)
    if place.is_seen():
        return Worker(Store(place.root), machine, make_training, guard)
    return RemoteWorker(place, machine, make_training, guard)
