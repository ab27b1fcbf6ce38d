"""Leftovers: files that nothing reads any more, of writers that have died and of trials that have ended."""

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ..latest_attempts import INCOMPLETE, read_latest
from ..paths import Layout, entries
from ..processes import writer_runs
from ..quarantine import Quarantine
from .findings import Finding, FindingKind, size_bytes

STALE_AFTER_S: Final = 24 * 3600
"""Files of a writer that nobody can see from here are left over after this time."""

QUIET_S: Final = 3600.0
"""The checkpoint of an ended trial is left over once it has not changed for this time."""

RESUMED_REASON: Final = "time limit"
"""The start of the reason of a failure after which a trial resumes from its checkpoint."""


def find_leftovers(layout: Layout, quarantine: Quarantine, now: float | None = None) -> list[Finding]:
    """Find what is left over at a time, by default that of this machine's clock.

    Raises `StoreError` for an unknown schema version.
    """
    now = time.time() if now is None else now
    layout.place.list_names(layout.weights_folder, layout.final_checkpoints_folder, layout.checkpoints_folder)
    ended = list(_ended_checkpoints(layout, quarantine, now))
    folders = {leftover.path for leftover in ended}
    return [*(each for each in _unfinished_files(layout, now) if each.path.parent not in folders), *ended]


def remove_leftovers(layout: Layout, *, dry: bool = False) -> list[Finding]:
    """Remove what is left over, and return it; a `dry` run removes nothing.

    Ages are measured by the clock that gives files their times. This machine's clock may be days ahead of it,
    and what others write now would seem old.
    """
    now = None if dry else _time_of_files(layout)
    found = find_leftovers(layout, Quarantine(layout, dry=True), now)
    for leftover in () if dry else found:
        layout.place.delete(leftover.path)
    return found


def _unfinished_files(layout: Layout, now: float) -> Iterator[Finding]:
    """Yield files whose writers have died, and damaged checkpoints that were set aside.

    Where nobody can see the writer from here, its files are left over after a day.
    """
    oldest = now - STALE_AFTER_S
    kept = [layout.weights_folder, layout.final_checkpoints_folder]
    folders = [*kept, *entries(layout.checkpoints_folder)]
    begun = [path for folder in folders if folder.is_dir() for path in entries(folder)]
    temporary = [path for path in begun if path.name.startswith(".") or path.name.endswith(".tmp")]
    for path in (*entries(layout.unfinished), *temporary):
        runs = writer_runs(path.name)
        if runs is False or (runs is None and _last_change(path, now) < oldest):
            yield _leftover(path, "its writer has died")
    for path in begun:
        if path.name.endswith(".damaged"):
            yield _leftover(path, "a damaged checkpoint that its trial did without")


def _ended_checkpoints(layout: Layout, quarantine: Quarantine, now: float) -> Iterator[Finding]:
    """Yield the checkpoints of trials that have ended and do not go on from them."""
    columns = ["trial", "status", "reason", "finished"]
    rows = {row["trial"]: row for row in read_latest(layout, quarantine, columns).iter_rows(named=True)}
    for folder in entries(layout.checkpoints_folder):
        row = rows.get(folder.name)
        if row is not None and folder.is_dir() and _is_over(row, folder, now):
            yield _leftover(folder, f"its trial is {row['status']}")


def _is_over(row: Mapping[str, Any], folder: Path, now: float) -> bool:
    """Say whether a trial has ended for good, and nobody has gone on from its checkpoint since.

    Only a failed trial is ever tried again. The time of its end is by the clock of whoever trained it.
    """
    if row["status"] == INCOMPLETE or (row["reason"] or "").startswith(RESUMED_REASON):
        return False
    finished: datetime = row["finished"]
    changed = max((_last_change(path, now) for path in folder.iterdir()), default=0.0)
    return (row["status"] != "failed" or changed <= finished.timestamp()) and changed < now - QUIET_S


def _time_of_files(layout: Layout) -> float | None:
    """Return the time by the clock of the files; None if nothing was written yet, or can be."""
    try:
        return layout.place.now() if layout.unfinished.is_dir() else None
    except OSError:
        return None


def _last_change(path: Path, now: float) -> float:
    """Return the time of a file; `now` if it was just removed."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return now


def _leftover(path: Path, reason: str) -> Finding:
    return Finding(kind=FindingKind.LEFTOVER, path=path, reason=reason, size=size_bytes(path))
