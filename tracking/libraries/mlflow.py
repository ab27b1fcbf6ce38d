"""Tracker for MLflow: a study is an experiment, with a run for each trial and one for its tables."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ...storage.place import is_address
from ..contract import Known, TrackedEnd, TrackedTable, TrackedTrial, Tracker, TrackingError

_TRIAL, _STATUS, _REASON = "activemem.trial", "activemem.status", "activemem.reason"
_TABLES = "tables"
_RUN_STATUS = {"done": "FINISHED", "failed": "FAILED", "pruned": "KILLED"}
_MAX_PARAMETERS = 100
"""The largest number of parameters in one request."""

_MAX_TEXT_LENGTH = 5000
"""The largest number of characters of a parameter or a tag."""

_NOT_IN_NAMES = re.compile(r"[^\w\-. :/]", re.ASCII)

_VARIABLES = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Environment variables for MLflow: no telemetry, short waits for an unreachable server, no output."""


def open_tracker(place: str) -> Tracker:
    """Return a tracker for a server or a database, without connecting to it."""
    if not is_address(place):
        text = "an address such as http://127.0.0.1:5000 or sqlite:///mlflow.db"
        raise TrackingError(f"expected {text}, got {place!r}")
    # before the import of MLflow, which reads some of them then
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)
    try:
        return MlflowRuns(import_module("mlflow").MlflowClient(tracking_uri=place))
    except Exception as error:  # MLflow raises many kinds for unknown addresses
        raise TrackingError(
            f"expected the address of an MLflow server or database, got {place!r}: {error}"
        ) from error


class MlflowRuns(Tracker):
    """Tracker that writes runs to an MLflow server. Each epoch is a step of a run."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 -- of a library that may not be here
        self._client, self._entities = client, import_module("mlflow.entities")
        self._experiments: dict[str, str] = {}
        self._runs: dict[str, str] = {}

    def known(self, trial: TrackedTrial) -> Known:
        if (run := self._find(trial.study, trial.id)) is None:
            return Known()
        id_, names = run.info.run_id, [name for name in run.data.metrics if not name.startswith("final/")]
        ended = run.info.end_time / 1000 if run.info.end_time else None
        steps = (each.step for name in names for each in self._client.get_metric_history(id_, name))
        return Known(epochs=frozenset(steps), status=run.data.tags.get(_STATUS), ended=ended)

    def remove(self, trial: TrackedTrial) -> None:
        if (run := self._find(trial.study, trial.id)) is not None:
            self._client.delete_run(run.info.run_id)

    def begin(self, trial: TrackedTrial, at: float) -> None:
        if (run := self._find(trial.study, trial.id)) is not None:
            self._runs[trial.id] = run.info.run_id
            self._client.update_run(run.info.run_id, status="RUNNING")
            return
        id_ = self._runs[trial.id] = self._create(trial.study, trial.id, trial.name, at)
        given = [
            self._entities.Param(_name(name), str(value)[:_MAX_TEXT_LENGTH])
            for name, value in trial.settings.items()
        ]
        for start in range(0, len(given), _MAX_PARAMETERS):
            self._client.log_batch(id_, params=given[start : start + _MAX_PARAMETERS])

    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        self._log(self._runs[trial.id], epoch, metrics, at)

    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        """Record the final metrics, the status and the reason. A pruned trial is "killed" in MLflow."""
        id_ = self._runs.pop(trial.id)
        self._log(id_, 0, {f"final/{name}": value for name, value in end.metrics.items()}, end.at)
        if end.reason is not None:
            self._client.set_tag(id_, _REASON, end.reason[:_MAX_TEXT_LENGTH])
        self._client.set_tag(id_, _STATUS, end.status)
        self._client.set_terminated(id_, _RUN_STATUS.get(end.status, "FAILED"), end_time=_ms(end.at))

    def pause(self, trial: TrackedTrial) -> None:
        if id_ := self._runs.pop(trial.id, None):
            self._client.update_run(id_, status="SCHEDULED")

    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Write the tables as Markdown and CSV artifacts of a separate run."""
        run = self._find(study, _TABLES)
        id_ = run.info.run_id if run else self._create(study, _TABLES, _TABLES, time.time())
        for table in tables:
            self._client.log_text(id_, table.markdown, f"{table.name}.md")
            self._client.log_text(id_, table.csv, f"{table.name}.csv")
        self._client.set_terminated(id_, "FINISHED")

    def _experiment(self, study: str) -> str:
        if study not in self._experiments:
            found = self._client.get_experiment_by_name(study)
            self._experiments[study] = found.experiment_id if found else self._client.create_experiment(study)
        return self._experiments[study]

    def _find(self, study: str, trial: str) -> Any:  # noqa: ANN401 -- of a library that may not be here
        wanted = f"tags.`{_TRIAL}` = '{trial}'"
        return next(iter(self._client.search_runs([self._experiment(study)], wanted, max_results=1)), None)

    def _create(self, study: str, trial: str, name: str, at: float) -> str:
        run = self._client.create_run(
            self._experiment(study), start_time=_ms(at), tags={_TRIAL: trial}, run_name=name
        )
        return run.info.run_id

    def _log(self, id_: str, step: int, metrics: Mapping[str, float], at: float) -> None:
        values = [self._entities.Metric(_name(name), value, _ms(at), step) for name, value in metrics.items()]
        self._client.log_batch(id_, metrics=values)


def _name(name: str) -> str:
    """Replace what MLflow rejects in names: `bleu[10-20]` becomes `bleu.10-20`."""
    return _NOT_IN_NAMES.sub("_", name.replace("[", ".").replace("]", ""))


def _ms(at: float) -> int:
    return int(at * 1000)
