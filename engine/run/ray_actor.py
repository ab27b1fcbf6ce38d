"""The worker's side of a Ray cluster: one actor, which is handed one cohort after the other."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

from ray import tune

from ...plugins import PluginFile, load_plugin_files
from ...storage import Store
from ..core.resources import Machine
from ..trial.resumable_attempt import Attempt, TrainingFactory
from .cohorts import Lockstep, Worker, collect, sequentially
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
        """Begin a first cohort; with a metric, its trials advance in step and report each epoch."""
        load_plugin_files(plugins)
        logging.getLogger("ray").setLevel(logging.ERROR)
        if place.is_seen():
            self._worker = Worker(Store(Path(place.root)), machine, make_training)
        else:
            self._worker = RemoteWorker(place, machine, make_training)
        self._metric = metric
        self._attempts: list[Attempt] = []
        self.reset_config(config)

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
