"""Files of trials besides their rows: checkpoints, notes on progress, trained weights and last states."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from .checksums import Record, decode_record, encode_record
from .errors import DamagedError, StoreError, UnreadableError
from .files import read_regular, temporary_name
from .place import Layout, Place, entries
from .rows import MetricRow

NOTE_FILE: Final = "reached.json"

STARTS_FILE: Final = "begun"
"""The file with the trial in its first line, and a line for each start: the run, and where it resumes.

The engine adds a line after a start that stopped cleanly before its trial's end.
"""

MAX_COURSE: Final = 200
"""The maximum number of epochs of a metric in a note, as many as a page can show."""


class StartRecord(Record):
    """The first record in a checkpoint folder: its trial's study, factor levels, and settings as JSON."""

    study: str
    levels: dict[str, Any]
    settings: str


class CheckpointNote(Record):
    """A trial's progress at its last checkpoint, as a record next to the checkpoint.

    It has the epoch with its metrics, and the metrics of earlier epochs. `saved_at` is the time of the
    checkpoint. `seconds` is the training time up to this epoch. Notes of earlier releases have neither
    `seconds` nor `course`.
    """

    epoch: int
    metrics: dict[str, float]
    course: dict[str, list[tuple[int, float]]] = Field(default_factory=dict[str, list[tuple[int, float]]])
    seconds: float | None = None
    saved_at: datetime = datetime.fromtimestamp(0, UTC)


def write_note(
    folder: Path,
    epoch: int,
    metrics: Mapping[str, float],
    rows: Iterable[MetricRow] = (),
    seconds: float | None = None,
) -> None:
    """Write a trial's progress to the note in its folder.

    Errors of the file system are ignored. A crash of the machine may lose the note. `rows` are the metrics of
    all epochs; indexed metrics are left out of the history.
    """
    note = {"epoch": epoch, "metrics": dict(metrics), "course": course_of(rows), "seconds": seconds}
    temporary = folder / temporary_name(NOTE_FILE)
    with suppress(OSError):  # a trial must not fail because of its note
        temporary.write_bytes(encode_record(note))
        temporary.replace(folder / NOTE_FILE)


def encode_begun(trial: str) -> str:
    """Encode a trial, JSON with the keys of `StartRecord`, as the first line of its file of starts."""
    return encode_record(json.loads(trial)).decode()


def read_begun(folder: Path) -> tuple[StartRecord, list[str]] | None:
    """Read the record of a trial's starts in a folder.

    Return the trial, and one line of text for each start. Return None if the record is incomplete. Raise
    `DamagedError` and `UnreadableError`, which name the file, and OSError.
    """
    path = folder / STARTS_FILE
    try:
        line, ended, starts = read_regular(path).partition(b"\n")
        if not ended:  # its writer was killed
            return None
        return decode_record(line + ended, StartRecord), starts.decode(errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DamagedError as error:
        raise DamagedError(f"{path}: expected a trial: {error}") from error
    except UnreadableError as error:
        raise UnreadableError(f"{path}: {error}") from error


def begun_trials(root: Path, study: str) -> set[str]:
    """Return the ids of a study's unfinished trials whose folders are in `root`."""
    folders = (path.parent for path in root.glob(f"*/{STARTS_FILE}"))
    begun = ((folder.name, _begun_or_none(folder)) for folder in folders)
    return {name for name, trial in begun if trial is not None and trial.study == study}


def is_begun(folder: Path) -> bool:
    """Return whether a checkpoint folder says which trial it belongs to.

    It does not if the process was killed while it created the folder.
    """
    return _begun_or_none(folder) is not None


def _begun_or_none(folder: Path) -> StartRecord | None:
    try:
        found = read_begun(folder)
    except (OSError, StoreError):
        return None
    return None if found is None else found[0]


def course_of(rows: Iterable[MetricRow]) -> dict[str, list[tuple[int, float]]]:
    """Return the history of each metric, as pairs of epoch and value.

    Of many epochs, only every n-th and the last are returned. Metrics with an index, such as `bleu[10-20]`,
    are left out.
    """
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if "[" not in row.name:
            found.setdefault(row.name, {})[row.epoch] = row.value
    return {name: thinned(list(values.items())) for name, values in found.items()}


def thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return at most `MAX_COURSE` evenly spaced points of a curve. The last point is included."""
    step = -(-len(points) // MAX_COURSE) or 1
    return [*points[len(points) - 1 :: -step]][::-1]


def read_note(folder: Path) -> CheckpointNote | None:
    """Return the note on a trial's progress, or None. Return None as well if the note cannot be read."""
    path = folder / NOTE_FILE
    try:
        saved_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        note = decode_record(read_regular(path), CheckpointNote)
    # OverflowError if the time of the file is impossible
    except (OSError, StoreError, ValueError, OverflowError):
        return None
    return note.model_copy(update={"saved_at": saved_at})


def verify_note(folder: Path) -> None:
    """Raise an error if a note on a trial's progress is damaged.

    A note that cannot be read is an error as well. Raise the errors of `decode_record` and `read_regular`.
    """
    if data := read_regular(folder / NOTE_FILE):  # a crash of the machine may leave an empty file
        decode_record(data, CheckpointNote)


class TrialFiles:
    """The files of trials in a store, besides their rows."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    @property
    def place(self) -> Place:
        """Return the location of the store. Its `put` stores a file that was written locally."""
        return self._layout.place

    def checkpoint_dir(self, trial: str) -> Path:
        """Return the folder for a trial's checkpoints. It may not exist."""
        return self._layout.checkpoints(trial)

    def checkpoints_folder(self) -> Path:
        """Return the folder of all checkpoints. The local copies of the files of starts are updated."""
        self.place.list(self._layout.checkpoints_folder, contents=STARTS_FILE)
        return self._layout.checkpoints_folder

    def trials_with_checkpoint(self, trials: Iterable[str]) -> set[str]:
        """Return the given trials that have a checkpoint to resume from."""
        self.place.list(self._layout.checkpoints_folder)
        folders = [each for each in entries(self._layout.checkpoints_folder) if each.is_dir()]
        return {each.name for each in folders if any(each.iterdir())}.intersection(trials)

    def checkpoint_note(self, trial: str) -> CheckpointNote | None:
        """Return the progress of an unfinished trial; None before the end of its first epoch."""
        folder = self.checkpoint_dir(trial)
        self.place.fetch(folder / NOTE_FILE)
        return read_note(folder)

    def weights_file(self, trial: str) -> Path:
        """Return the file for a trial's trained weights. It may not exist."""
        path = self._layout.weights(trial)
        self.place.fetch(path)
        return path

    def trials_with_weights(self, trials: Iterable[str]) -> set[str]:
        """Return the given trials whose trained weights are stored."""
        self.place.list(self._layout.weights_folder)
        return {trial for trial in trials if self._layout.weights(trial).is_file()}

    def final_checkpoint_file(self, trial: str) -> Path:
        """Return the file for the last state of a trial's training. It may not exist."""
        return self._layout.final_checkpoint(trial)

    def trials_with_final_checkpoint(self) -> frozenset[str]:
        """Return the trials whose last state is stored."""
        self.place.list(self._layout.final_checkpoints_folder)
        files = entries(self._layout.final_checkpoints_folder, ".pt")
        return frozenset(path.stem for path in files if not path.name.startswith("."))
