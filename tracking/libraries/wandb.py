"""Tracker for Weights & Biases in offline mode.

A study is a project, with a run for each trial.

One more run has the tables of the study. Nothing is sent anywhere: the library writes a folder for each run,
which its own `wandb sync` uploads. When a run resumes, it is written again with its earlier steps, and the
new folder replaces the earlier one. This is needed because the steps of a run must be in order, and an upload
expects a run in one file.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from ...storage.place import is_address
from ..contract import Known, TrackedEnd, TrackedTable, TrackedTrial, Tracker, TrackingError

_TABLES = "tables"
_STATUS, _REASON, _UNFINISHED = "status", "reason", "unfinished"
_FLUSH_S = 10.0
"""Seconds to wait for the file of an ended run."""

_SECOND = "%Y%m%d_%H%M%S"
"""The format of the start time in the name of a run's folder."""

_HEADER_SIZE, _BLOCK_SIZE = 7, 2**15
_RECORD_HEAD = struct.Struct("<IHB")
"""The format of a record header in a LevelDB log: checksum, size, and whether the record is whole."""

_WHOLE, _FIRST, _LAST = 1, 2, 4


def open_tracker(place: str) -> Tracker:
    """Return a tracker that writes offline runs into a folder."""
    if is_address(place):
        raise TrackingError(f"expected a folder for `wandb sync`, got {place!r}")
    try:
        Path(place).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrackingError(f"expected a folder that can be written, got: {error}") from error
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # sends no error reports to its makers
    return OfflineRuns(Path(place))


@dataclass(frozen=True, slots=True)
class _StoredRun:
    folders: list[Path] = field(default_factory=list[Path])
    steps: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    summary: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class _OpenRun:
    """A run that is being written.

    At its end it replaces the folders of earlier attempts at this run. `before` has these folders, and the
    steps in them that have not been copied yet.
    """

    run: Any
    before: _StoredRun
    is_whole: Callable[[], bool]
    """Whether the end of the file is on disk, which happens some time after `run.finish`."""

    def log(self, epoch: int, items: Mapping[str, float]) -> None:
        """Copy the stored steps before an epoch into this run, then add the metrics of the epoch."""
        self._copy_steps(epoch)
        self.run.log(dict(items), step=epoch, commit=True)

    def finish(self, summary: Mapping[str, Any], *, failed: bool) -> None:
        """Write the remaining steps and the summary to disk.

        Then remove the folders of earlier versions of this run, whose steps have been copied.
        """
        self._copy_steps(max(self.before.steps, default=0) + 1)
        self.run.summary.update(dict(summary))
        self.run.finish(exit_code=int(failed))
        until = time.monotonic() + _FLUSH_S
        while not self.is_whole():
            if time.monotonic() > until:
                raise TimeoutError(f"the file of a run was not written within {_FLUSH_S:g} s")
            time.sleep(0.01)
        for folder in self.before.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def _copy_steps(self, end: int) -> None:
        """Copy the steps below `end` from the earlier folders into this run."""
        for step in sorted(each for each in self.before.steps if each < end):
            self.run.log(self.before.steps.pop(step), step=step, commit=True)


class OfflineRuns(Tracker):
    """Tracker that writes offline runs of W&B into folders. Each epoch is a step of a run."""

    def __init__(self, place: Path) -> None:
        self._place, self._wandb = place, import_module("wandb")
        self._protocol = import_module("wandb.proto.wandb_internal_pb2")
        self._settings = self._wandb.Settings(
            mode="offline",
            root_dir=str(place),
            reinit="create_new",  # several trials have open runs at the same time
            silent=True,
            console="off",
            disable_git=True,
            save_code=False,
            disable_job_creation=True,
            x_disable_meta=True,
            x_disable_stats=True,
            x_save_requirements=False,
        )
        self._open: dict[str, _OpenRun] = {}

    def known(self, trial: TrackedTrial) -> Known:
        """Return the epochs and the status in the files of a run."""
        stored = self._read(trial.study, trial.id)
        status = stored.summary.get(_STATUS)
        return Known(epochs=frozenset(stored.steps), status=None if status == _UNFINISHED else status)

    def begin(self, trial: TrackedTrial, at: float) -> None:
        """Open a run with the settings as its configuration."""
        self._open[trial.id] = self._begin(trial.study, trial.id, trial.name, trial.settings)

    def log(self, trial: TrackedTrial, epoch: int, metrics: Mapping[str, float], at: float) -> None:
        """Add the metrics of an epoch as a step with the time `at`."""
        self._open[trial.id].log(epoch, {**metrics, "_timestamp": at})

    def end(self, trial: TrackedTrial, end: TrackedEnd) -> None:
        """Add the final metrics, status and reason to the summary. A failed trial becomes a failed run."""
        summary: dict[str, Any] = {f"final/{name}": value for name, value in end.metrics.items()}
        summary |= {_STATUS: end.status} | ({_REASON: end.reason} if end.reason is not None else {})
        self._open.pop(trial.id).finish(summary, failed=end.status == "failed")

    def pause(self, trial: TrackedTrial) -> None:
        """Close the run, and mark it as one that resumes later."""
        if (opened := self._open.pop(trial.id, None)) is not None:
            opened.finish({_STATUS: _UNFINISHED}, failed=False)

    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Write the tables as Markdown and CSV files of a separate run."""
        opened = self._begin(study, _TABLES, _TABLES, {})
        folder = Path(opened.run.dir)
        for table in tables:
            for suffix, text in (("md", table.markdown), ("csv", table.csv)):
                path = folder / f"{table.name}.{suffix}"
                path.write_text(text, encoding="utf-8")
                opened.run.save(str(path), base_path=str(folder), policy="now")
        opened.finish({}, failed=False)

    def close(self) -> None:
        """Close all open runs."""
        while self._open:
            self._open.popitem()[1].finish({_STATUS: _UNFINISHED}, failed=False)

    def _begin(self, study: str, run: str, name: str, settings: Mapping[str, Any]) -> _OpenRun:
        before = self._read(study, run)
        while any(time.strftime(f"offline-run-{_SECOND}-") in each.name for each in before.folders):
            time.sleep(0.05)  # folders are named by the second, so it would reuse that folder
        new = self._wandb.init(
            project=study, id=run, name=name, config=dict(settings), settings=self._settings
        )
        path = Path(new.dir).parent / f"run-{run}.wandb"
        return _OpenRun(new, before, lambda: any(each.HasField("exit") for each in self._records_of(path)))

    def _read(self, study: str, run: str) -> _StoredRun:
        """Return the part of a run that is on disk. After a killed process, this is the readable part."""
        found = _StoredRun()
        for path in sorted(self._place.glob(f"wandb/offline-run-*-{run}/run-{run}.wandb")):
            records = self._records_of(path)
            if not any(each.HasField("run") and each.run.project == study for each in records):
                continue  # of another study that has the trial too
            found.folders.append(path.parent)
            for record in records:
                if record.HasField("history"):
                    found.steps[record.history.step.num] = _items(record.history.item)
                elif record.HasField("summary"):
                    found.summary.update(_items(record.summary.update))
        return found

    def _records_of(self, path: Path) -> list[Any]:
        return [self._protocol.Record.FromString(each) for each in _records(path.read_bytes())]


def _items(items: Any) -> dict[str, Any]:  # noqa: ANN401 -- of a library that may not be here
    """Return the items of a stored record by name.

    W&B's own items are left out, except the time of a step.
    """
    named = {each.key or "/".join(each.nested_key): json.loads(each.value_json) for each in items}
    return {name: value for name, value in named.items() if name == "_timestamp" or not name.startswith("_")}


def _records(data: bytes) -> Iterator[bytes]:
    position, parts = _HEADER_SIZE, b""
    while position + _RECORD_HEAD.size <= len(data):
        # a block ends with zeros if no record header fits into its last bytes
        if (left := _BLOCK_SIZE - position % _BLOCK_SIZE) < _RECORD_HEAD.size:
            position += left
            continue
        checksum, size, kind = _RECORD_HEAD.unpack_from(data, position)
        end = position + _RECORD_HEAD.size + size
        checked = data[position + _RECORD_HEAD.size - 1 : end]
        if end > len(data) or zlib.crc32(checked) != checksum:
            return  # a killed process leaves an incomplete record at the end
        parts = checked[1:] if kind in (_WHOLE, _FIRST) else parts + checked[1:]
        if kind in (_WHOLE, _LAST):
            yield parts
        position = end
