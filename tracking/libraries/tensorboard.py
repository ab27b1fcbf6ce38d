"""Tracker for TensorBoard: a folder of event files for each trial, and one for the tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...reporting.tables.render.markdown import escape
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
        loaders = import_module("tensorboard.backend.event_processing.event_file_loader")
        self._loader = loaders.LegacyEventFileLoader  # the other one turns scalars into tensors
        self._summary = import_module("tensorboard.compat.proto.summary_pb2").Summary
        self._array = import_module("tensorboard.util.tensor_util").make_ndarray
        self._text = import_module("tensorboard.plugins.text.summary_v2").text_pb
        self._hparams = import_module("tensorboard.plugins.hparams.summary_v2").hparams_pb
        self._hparams_data = import_module("tensorboard.plugins.hparams.plugin_data_pb2")
        self._hparams_metadata = import_module("tensorboard.plugins.hparams.metadata")
        self._end_tag = self._hparams_metadata.SESSION_END_INFO_TAG
        self._statuses = import_module("tensorboard.plugins.hparams.api_pb2")
        self._open: dict[str, Any] = {}

    def known(self, trial: TrackedTrial) -> Known:
        epochs, status, ended = set[int](), None, None
        for event in self._events_of(trial):
            for value in event.summary.value:
                if value.tag == _OUTCOME:
                    status = self._array(value.tensor).item().decode().partition(":")[0]
                    ended = event.wall_time
                # the tags of final metrics have a slash
                elif value.HasField("simple_value") and "/" not in value.tag:
                    epochs.add(event.step)
        return Known(epochs=frozenset(epochs), status=status, ended=ended)

    def remove(self, trial: TrackedTrial) -> None:
        for path in self._files(trial):
            path.unlink()

    def begin(self, trial: TrackedTrial, at: float) -> None:
        self.pause(trial)
        events, earlier = list(self._events_of(trial)), self._files(trial)
        kept = [event for event in events if self._end_tag not in {each.tag for each in event.summary.value}]
        self._open[trial.id] = self._writer(str(self._folder(trial)))
        self._add(trial, at, 0, self._hparams(dict(trial.settings), trial_id=trial.id, start_time_secs=at))
        if len(kept) < len(events):  # TensorBoard would show the status of its first end
            for event in kept:
                self._open[trial.id].add_event(event)
            self._open[trial.id].flush()
            for path in earlier:
                path.unlink()

    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        self._add(trial, at, epoch, *(self._scalar(name, value) for name, value in metrics.items()))

    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        outcome = end.status if end.reason is None else f"{end.status}: {end.reason}"
        final = [self._scalar(f"final/{name}", value) for name, value in end.metrics.items()]
        self._add(trial, end.at, 0, *final, self._text(_OUTCOME, escape(outcome)), self._end_of_session(end))
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

    def _scalar(self, name: str, value: float) -> object:
        return self._summary(value=[self._summary.Value(tag=name, simple_value=value)])

    def _end_of_session(self, end: TrackedEnd) -> object:
        name = "STATUS_FAILURE" if end.status == "failed" else "STATUS_SUCCESS"
        info = self._hparams_data.SessionEndInfo(
            status=self._statuses.Status.Value(name), end_time_secs=end.at
        )
        data = self._hparams_data.HParamsPluginData(session_end_info=info)
        metadata, nothing = (
            self._hparams_metadata.create_summary_metadata(data),
            self._hparams_metadata.NULL_TENSOR,
        )
        value = self._summary.Value(tag=self._end_tag, metadata=metadata, tensor=nothing)
        return self._summary(value=[value])

    def _files(self, trial: TrackedTrial) -> list[Path]:
        return sorted(self._folder(trial).glob("events.out.tfevents.*"))

    def _events_of(self, trial: TrackedTrial) -> Iterator[Any]:
        for path in self._files(trial):
            yield from self._loader(str(path)).Load()

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
