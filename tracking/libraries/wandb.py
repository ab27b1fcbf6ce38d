"""Tracker for Weights & Biases in offline mode: a study is a project, with a run for each trial.

One more run has the tables of the study. Nothing is sent anywhere: the library writes a folder for each run,
which its own `wandb sync` uploads. A run is written when its trial ends, since its steps must be in one file
and in order. A trial that another process has begun is left to the export, which has all of its epochs.
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
"""The file beside a whole run with its study, its status, and the metrics of each epoch."""

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
        """Collect the epochs of a trial, following those of an earlier failed run."""
        notes = self._notes(trial.study, trial.id)
        self._epochs[trial.id] = {
            int(epoch): items for _, note in notes for epoch, items in note["epochs"].items()
        }

    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        """Keep the metrics of an epoch until the trial ends."""
        self._epochs[trial.id][epoch] = {**metrics, "_timestamp": at}

    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        """Write the run of a trial if all of its epochs are known. A failed trial becomes a failed run."""
        epochs = self._epochs.pop(trial.id)
        if set(epochs) != set(range(1, len(epochs) + 1)):
            return  # it has begun in another process
        summary: dict[str, Any] = {f"final/{name}": value for name, value in end.metrics.items()}
        summary |= {"status": end.status} | ({"reason": end.reason} if end.reason is not None else {})
        earlier = [folder for folder, _ in self._notes(trial.study, trial.id)]
        run = self._begin(trial.study, trial.id, trial.name, trial.settings)
        for epoch, items in sorted(epochs.items()):
            run.log(items, step=epoch, commit=True)
        run.summary.update(summary)
        run.finish(exit_code=int(end.status == "failed"))
        note = {"study": trial.study, "status": end.status, "ended": end.at, "epochs": epochs}
        Path(run.dir).with_name(_NOTE).write_text(json.dumps(note), encoding="utf-8")
        for folder in earlier:
            shutil.rmtree(folder, ignore_errors=True)

    def pause(self, trial: TrackedTrial) -> None:
        self._epochs.pop(trial.id, None)

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
        """Return the folders of this study's whole runs of an id, each with its note."""
        paths = self._place.glob(f"wandb/offline-run-*-{run}/{_NOTE}")
        notes = [(path.parent, json.loads(path.read_text(encoding="utf-8"))) for path in paths]
        return [(folder, note) for folder, note in notes if note["study"] == study]
