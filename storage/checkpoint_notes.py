"""How far an unfinished trial has come: a note for people beside the checkpoint that it resumes from."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from .integrity.regular_file import UnreadableError, read_regular

NOTE_FILE: Final = "reached.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNote:
    """The last epoch with a checkpoint, its metrics, and when it was saved."""

    epoch: int
    metrics: Mapping[str, float]
    saved_at: datetime


def write_note(folder: Path, epoch: int, metrics: Mapping[str, float]) -> None:
    """Replace the note in a trial's folder if possible; a crash of the machine may lose it."""
    temporary = folder / f"reached.{os.getpid()}.tmp"
    with suppress(OSError):  # no trial fails for a note
        temporary.write_text(json.dumps({"epoch": epoch, "metrics": dict(metrics)}), encoding="utf-8")
        temporary.replace(folder / NOTE_FILE)


def read_note(folder: Path) -> CheckpointNote | None:
    """The note in a trial's folder; None if there is none that can be read."""
    try:
        saved_at = datetime.fromtimestamp((folder / NOTE_FILE).stat().st_mtime, UTC)
        note = json.loads(read_regular(folder / NOTE_FILE))
    except (OSError, UnreadableError, ValueError):
        return None
    match note:
        case {"epoch": int(epoch), "metrics": dict(metrics)} if _are_numbers(metrics.values()):
            return CheckpointNote(epoch=epoch, metrics=metrics, saved_at=saved_at)
        case _:
            return None


def _are_numbers(values: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) for value in values)
