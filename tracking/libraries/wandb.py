"""Tracker for Weights & Biases in offline mode: a study is a project, with a run for each trial.

One more run has the tables of the study. Nothing is sent anywhere: the library writes a folder for each run,
which its own `wandb sync` uploads. Each epoch is written as it ends. The steps of a run must be in one file
and in order, so a trial that another process resumes becomes a new run, which begins with its earlier epochs.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..contract import Known, TrackedEnd, TrackedTable, TrackedTrial, Tracker, make_folder

_TABLES = "tables"
_NOTE = "activemem.json"
"""The file beside a run with its study, its status, and the metrics of each epoch."""

_SECOND = "%Y%m%d_%H%M%S"
"""The format of the start time in the name of a run's folder."""


def open_tracker(place: str) -> Tracker:
    """Return a tracker that writes offline runs into a folder."""
    folder = make_folder(place, " for `wandb sync`")
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # sends no error reports to its makers
    return OfflineRuns(folder)


class OfflineRuns(Tracker):
    """Tracker that writes offline runs of W&B into folders. Each epoch is a step of a run."""

    def __init__(self, place: Path) -> None:
        self._place, self._wandb = place, import_module("wandb")
        self._settings = self._wandb.Settings(
            mode="offline",
            root_dir=str(place),
            reinit="create_new",
            silent=True,
            console="off",
            disable_git=True,
            save_code=False,
            disable_job_creation=True,
            x_disable_meta=True,
            x_disable_stats=True,
            x_save_requirements=False,
        )
        self._epochs: dict[str, dict[int, Mapping[str, float]]] = {}
        self._runs: dict[str, Any] = {}

    def known(self, trial: TrackedTrial) -> Known:
        for _, note in self._notes(trial.study, trial.id):
            epochs = frozenset(map(int, note["epochs"]))
            return Known(epochs=epochs, status=note["status"], ended=note.get("ended"))
        return Known()

    def remove(self, trial: TrackedTrial) -> None:
        """Empty the note of its run. The run itself is removed when the new one is written."""
        for folder, note in self._notes(trial.study, trial.id):
            emptied = {**note, "status": None, "ended": None, "epochs": {}}
            (folder / _NOTE).write_text(json.dumps(emptied), encoding="utf-8")

    def begin(self, trial: TrackedTrial, at: float) -> None:
        """Begin a run with the epochs that an earlier run of the trial has, which it replaces."""
        self.pause(trial)
        earlier = self._notes(trial.study, trial.id)
        epochs = {int(epoch): items for _, note in earlier for epoch, items in note["epochs"].items()}
        self._write(trial, epochs)
        for folder, _ in earlier:
            shutil.rmtree(folder, ignore_errors=True)

    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        epochs, items = self._epochs[trial.id], {**metrics, "_timestamp": at}
        if epochs and epoch < max(epochs):  # the file of a run has its steps in order
            self.pause(trial)
            ((folder, _),) = self._notes(trial.study, trial.id)
            self._write(trial, epochs | {epoch: items})
            shutil.rmtree(folder, ignore_errors=True)
            return
        epochs[epoch] = items
        self._runs[trial.id].log(items, step=epoch, commit=True)
        self._note(trial)

    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        """Finish the run of a trial. A failed trial becomes a failed run."""
        run = self._runs[trial.id]
        summary: dict[str, Any] = {f"final/{name}": value for name, value in end.metrics.items()}
        run.summary.update(summary | {"status": end.status} | ({"reason": end.reason} if end.reason else {}))
        run.finish(exit_code=int(end.status == "failed"))
        self._note(trial, end.status, end.at)
        del self._runs[trial.id], self._epochs[trial.id]

    def pause(self, trial: TrackedTrial) -> None:
        if (run := self._runs.pop(trial.id, None)) is not None:
            run.finish()
            self._epochs.pop(trial.id)

    def close(self) -> None:
        for run in self._runs.values():
            run.finish()
        self._runs.clear()
        self._epochs.clear()

    def _write(self, trial: TrackedTrial, epochs: Mapping[int, Mapping[str, float]]) -> None:
        """Begin a run of a trial with these epochs, and leave it open."""
        run = self._runs[trial.id] = self._begin(trial.study, trial.id, trial.name, trial.settings)
        self._epochs[trial.id] = dict(sorted(epochs.items()))
        for epoch, items in self._epochs[trial.id].items():
            run.log(items, step=epoch, commit=True)
        self._note(trial)

    def _note(self, trial: TrackedTrial, status: str | None = None, ended: float | None = None) -> None:
        """Write beside a run what it has, for other processes."""
        note = {"study": trial.study, "status": status, "ended": ended, "epochs": self._epochs[trial.id]}
        path = Path(self._runs[trial.id].dir).with_name(_NOTE)
        path.write_text(json.dumps(note), encoding="utf-8")

    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        earlier = [folder for folder, _ in self._notes(study, _TABLES)]
        run = self._begin(study, _TABLES, _TABLES, {})
        folder = Path(run.dir)
        for table in tables:
            for suffix, text in (("md", table.markdown), ("csv", table.csv)):
                path = folder / f"{table.name}.{suffix}"
                path.write_text(text, encoding="utf-8")
                run.save(str(path), base_path=str(folder), policy="now")
        run.finish()
        folder.with_name(_NOTE).write_text(json.dumps({"study": study}), encoding="utf-8")
        for each in earlier:
            shutil.rmtree(each, ignore_errors=True)

    def _begin(self, study: str, run: str, name: str, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- of a library that may not be here
        while any(self._place.glob(f"wandb/offline-run-{time.strftime(_SECOND)}-{run}")):
            time.sleep(0.05)  # folders are named by the second, so it would reuse that folder
        return self._wandb.init(
            project=study, id=run, name=name, config=dict(settings), settings=self._settings
        )

    def _notes(self, study: str, run: str) -> list[tuple[Path, dict[str, Any]]]:
        """Return the folders of this study's runs of an id, each with its note."""
        paths = self._place.glob(f"wandb/offline-run-*-{run}/{_NOTE}")
        notes = [(path.parent, json.loads(path.read_text(encoding="utf-8"))) for path in paths]
        return [(folder, note) for folder, note in notes if note["study"] == study]
