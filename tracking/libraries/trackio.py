"""Tracker for Trackio: a study is a project, with a run for each trial and one for its tables.

Trackio stores projects in SQLite files. Trackio's own storage classes write the files without its server, so
all data are on disk at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from ..contract import Known, TrackedEnd, TrackedTable, TrackedTrial, Tracker, TrackingError, make_folder

_FINAL, _TABLES = "final/", "tables"
_NO_METRICS = ("step", "timestamp")


def open_tracker(place: str) -> Tracker:
    """Return a tracker that writes Trackio projects into a folder.

    A process can use only one folder, since Trackio reads its setting when it is imported.
    """
    folder = make_folder(place).absolute()
    os.environ["TRACKIO_DIR"] = str(folder)
    module = import_module("trackio.sqlite_storage")
    if folder != module.TRACKIO_DIR:
        raise TrackingError(
            f"expected {module.TRACKIO_DIR}, the folder that this process already uses, got {folder}"
        )
    return TrackioProjects(module.SQLiteStorage)


class TrackioProjects(Tracker):
    """Tracker that writes runs to files of Trackio projects. An epoch is a step; final metrics are step 0."""

    def __init__(self, storage: Any) -> None:  # noqa: ANN401 -- of a library that may not be here
        self._storage = storage
        self._markdown = import_module("trackio").Markdown
        self._shown: dict[str, dict[str, Any]] = {}

    def known(self, trial: TrackedTrial) -> Known:
        rows = self._storage.get_logs(trial.study, run_id=trial.id)
        epochs = {
            row["step"]
            for row in rows
            if any((name not in _NO_METRICS and not name.startswith(_FINAL)) for name in row)
        }
        config = self._storage.get_run_config(trial.study, run_id=trial.id) or {}
        ends = [datetime.fromisoformat(row["timestamp"]).timestamp() for row in rows if row["step"] == 0]
        return Known(epochs=frozenset(epochs), status=config.get("status"), ended=max(ends, default=None))

    def remove(self, trial: TrackedTrial) -> None:
        self._storage.delete_run(trial.study, trial.name, run_id=trial.id)

    def begin(self, trial: TrackedTrial, at: float) -> None:
        """Keep the settings in memory until the first metrics are written."""
        self._shown[trial.id] = dict(trial.settings)

    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        self._write(trial, epoch, metrics, at, f"{trial.id}-{epoch}")

    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        """Write the final metrics as step 0, and add the status and its reason to the settings."""
        self._shown[trial.id] |= {"status": end.status, **({"reason": end.reason} if end.reason else {})}
        final = {f"{_FINAL}{name}": value for name, value in end.metrics.items()}
        self._write(trial, 0, final, end.at, f"{trial.id}-{end.status}-{end.at}")
        del self._shown[trial.id]

    def pause(self, trial: TrackedTrial) -> None:
        """Drop the settings from memory. Each step is already on disk."""
        self._shown.pop(trial.id, None)

    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Write the tables as reports of a separate run. They replace earlier reports."""
        self._storage.delete_run(study, _TABLES, run_id=_TABLES)
        # of public calls only a run's `log` converts reports, and it writes in the background
        reports = {table.name: self._markdown(table.markdown)._to_dict() for table in tables}
        self._storage.bulk_log(study, _TABLES, [reports], steps=[0], run_id=_TABLES)

    def _write(
        self, trial: TrackedTrial, step: int, metrics: Mapping[str, float], at: float, once: str
    ) -> None:
        """Write the metrics of one step, unless a row with the id `once` has been written already."""
        self._storage.bulk_log(
            trial.study,
            trial.name,
            [dict(metrics)],
            steps=[step],
            timestamps=[datetime.fromtimestamp(at, UTC).isoformat()],
            config=self._shown[trial.id],
            log_ids=[once],
            run_id=trial.id,
        )
