"""Tracker for TensorBoard: a folder of event files for each trial, and one for the tables."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..contract import Known, TrackedEnd, TrackedTable, TrackedTrial, Tracker

_OUTCOME = "outcome"
_TABLES = "tables"


def open_tracker(place: str) -> Tracker:
    """Return a tracker that writes event files into a folder."""
    return TensorBoardFiles(place)


class TensorBoardFiles(Tracker):
    """Tracker that writes event files. Each epoch is a step, and every method writes to disk at once."""

    def __init__(self, place: str) -> None:
        self._root = Path(place)
        self._events = import_module("tensorboard.compat.proto.event_pb2")
        self._writer = import_module("tensorboard.summary.writer.event_file_writer").EventFileWriter
        self._loader = import_module("tensorboard.backend.event_processing.event_file_loader").EventFileLoader
        self._array = import_module("tensorboard.util.tensor_util").make_ndarray
        self._scalar = import_module("tensorboard.plugins.scalar.summary_v2").scalar_pb
        self._text = import_module("tensorboard.plugins.text.summary_v2").text_pb
        self._hparams = import_module("tensorboard.plugins.hparams.summary_v2").hparams_pb
        self._open: dict[str, Any] = {}

    def known(self, trial: TrackedTrial) -> Known:
        epochs, status, ended = set[int](), None, None
        paths = sorted(self._folder(trial).glob("events.out.tfevents.*"))
        for event in (event for path in paths for event in self._loader(str(path)).Load()):
            for value in event.summary.value:
                if value.tag == _OUTCOME:
                    status = self._array(value.tensor).item().decode().partition(":")[0]
                    ended = event.wall_time
                # the tags of final metrics have a slash
                elif value.metadata.plugin_data.plugin_name == "scalars" and "/" not in value.tag:
                    epochs.add(event.step)
        return Known(epochs=frozenset(epochs), status=status, ended=ended)

    def remove(self, trial: TrackedTrial) -> None:
        for path in self._folder(trial).glob("events.out.tfevents.*"):
            path.unlink()

    def begin(self, trial: TrackedTrial, at: float) -> None:
        self.pause(trial)
        self._open[trial.id] = self._writer(str(self._folder(trial)))
        self._add(trial, at, 0, self._hparams(dict(trial.settings), trial_id=trial.id, start_time_secs=at))

    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        self._add(trial, at, epoch, *(self._scalar(name, value) for name, value in metrics.items()))

    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        outcome = end.status if end.reason is None else f"{end.status}: {end.reason}"
        final = [self._scalar(f"final/{name}", value) for name, value in end.metrics.items()]
        self._add(trial, end.at, 0, *final, self._text(_OUTCOME, outcome))
        self.pause(trial)

    def pause(self, trial: TrackedTrial) -> None:
        """Close the trial's event file."""
        if (writer := self._open.pop(trial.id, None)) is not None:
            writer.close()

    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Write the tables as texts into one event file. The file replaces the previous one."""
        folder = self._root / study / _TABLES
        old = list(folder.glob("events.out.tfevents.*"))
        writer = self._writer(str(folder))
        for table in tables:
            writer.add_event(self._event(time.time(), 0, self._text(table.name, table.markdown)))
        writer.close()
        for path in old:  # only now, so that a reader always finds tables
            path.unlink()

    def close(self) -> None:
        for writer in self._open.values():
            writer.close()
        self._open.clear()

    def _folder(self, trial: TrackedTrial) -> Path:
        study = self._root / trial.study
        return next(study.glob(f"*-{trial.id}"), study / trial.name)

    def _add(self, trial: TrackedTrial, at: float, step: int, *summaries: object) -> None:
        writer = self._open[trial.id]
        for summary in summaries:
            writer.add_event(self._event(at, step, summary))
        writer.flush()

    def _event(self, at: float, step: int, summary: object) -> object:
        return self._events.Event(wall_time=at, step=step, summary=summary)
