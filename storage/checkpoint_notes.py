"""How far an unfinished trial has come, and how: a note for people beside the checkpoint it resumes from."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .integrity.regular_file import UnreadableError, read_regular
from .rows import MetricRow

NOTE_FILE: Final = "reached.json"

STARTS_FILE: Final = "begun"
"""The file with the trial in its first line, then a line for each start: the run, and where it goes on.

A line of the engine's follows a start that ended in order, though not with the trial.
"""

MAX_COURSE: Final = 200
"""So many epochs of a metric at most are in a note: what a line on a page can show."""

Course = Mapping[str, Sequence[tuple[int, float]]]
"""By metric, epochs and the values after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNote:
    """The last epoch with a checkpoint, its metrics, when it was saved, and the course of all epochs so far.

    `seconds` are those of training up to it. Notes of earlier releases have neither these nor a course.
    """

    epoch: int
    metrics: Mapping[str, float]
    saved_at: datetime
    course: Course = field(default_factory=dict[str, Sequence[tuple[int, float]]])
    seconds: float | None = None


def write_note(
    folder: Path,
    epoch: int,
    metrics: Mapping[str, float],
    rows: Iterable[MetricRow] = (),
    seconds: float | None = None,
) -> None:
    """Replace the note in a trial's folder if possible; a crash of the machine may lose it.

    `rows` are the metrics of all epochs; those with an index are left out of the course.
    """
    note = {"epoch": epoch, "metrics": dict(metrics), "course": course_of(rows), "seconds": seconds}
    temporary = folder / f"reached.{os.getpid()}.tmp"
    with suppress(OSError):  # no trial fails for a note
        temporary.write_text(json.dumps(note), encoding="utf-8")
        temporary.replace(folder / NOTE_FILE)


def begun_trials(root: Path, study: str) -> set[str]:
    """Return the unfinished trials of a study below the folder of checkpoints: begun, or wanted for a run."""
    folders = (path.parent for path in root.glob(f"*/{STARTS_FILE}"))
    return {folder.name for folder in folders if (_trial_of(folder) or {}).get("study") == study}


def is_begun(folder: Path) -> bool:
    """Whether the folder of a trial tells which it is: who was killed early has told nothing, or a part."""
    return _trial_of(folder) is not None


def _trial_of(folder: Path) -> dict[str, Any] | None:
    """The trial in the first line of `STARTS_FILE`, if all of it is there."""
    try:
        line, ended, _ = read_regular(folder / STARTS_FILE).partition(b"\n")
        trial = json.loads(line) if ended else None
    except (OSError, UnreadableError, ValueError, RecursionError):
        return None
    return trial if isinstance(trial, dict) else None


def course_of(rows: Iterable[MetricRow]) -> dict[str, list[tuple[int, float]]]:
    """The values of each metric by epoch, of many epochs every n-th and the last."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if "[" not in row.name:
            found.setdefault(row.name, {})[row.epoch] = row.value
    return {name: thinned(list(values.items())) for name, values in found.items()}


def thinned(points: Sequence[tuple[int, float]], most: int = MAX_COURSE) -> list[tuple[int, float]]:
    """At most so many of the points, evenly spread; the last is among them."""
    step = -(-len(points) // most) or 1
    return [*points[len(points) - 1 :: -step]][::-1]


def read_note(folder: Path) -> CheckpointNote | None:
    """The note in a trial's folder; None if there is none that can be read."""
    try:
        saved_at = datetime.fromtimestamp((folder / NOTE_FILE).stat().st_mtime, UTC)
        note = json.loads(read_regular(folder / NOTE_FILE))
    except (OSError, UnreadableError, ValueError):
        return None
    match note:
        case {"epoch": int(epoch), "metrics": dict(metrics)} if _are_numbers(metrics.values()):
            course, seconds = _course(note.get("course")), note.get("seconds")
            return CheckpointNote(
                epoch=epoch,
                metrics=metrics,
                saved_at=saved_at,
                course=course,
                seconds=seconds if isinstance(seconds, int | float) else None,
            )
        case _:
            return None


def _course(told: object) -> Course:
    """The course that a note tells; without what is none."""
    return {
        str(name): [(epoch, value) for epoch, value in points]
        for name, points in (told.items() if isinstance(told, dict) else ())
        if isinstance(points, list) and all(map(_is_point, points))
    }


def _is_point(told: object) -> bool:
    return isinstance(told, list) and len(told) == 2 and isinstance(told[0], int) and _are_numbers(told[1:])


def _are_numbers(values: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) for value in values)
