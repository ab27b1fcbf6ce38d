"""Check of a store, which reads every file to its end, and removal of leftover files."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Final

from .checksums import read_model, verify_seal
from .errors import DamagedError, StoreError, UnreadableError
from .files import open_regular, writer_runs
from .latest_attempts import INCOMPLETE, read_latest
from .paths import Layout, data_files, entries
from .read import Quarantine, read_verified
from .rows import SCHEMAS
from .study_records import read_page
from .trial_files import NOTE_FILE, STARTS_FILE, read_begun, verify_note


class FindingKind(StrEnum):
    """Kinds of findings, the most serious first."""

    DAMAGED = "damaged"  # its bytes are not those that were written
    UNREADABLE = "unreadable"  # it has a name of the store's and cannot be read
    INCOMPLETE = "incomplete"  # a trial's row is there and its metrics are not
    FOREIGN = "foreign"  # no store wrote it
    UNSEALED = "unsealed"  # written before there were seals: damage would not be noticed
    LEFTOVER = "leftover"  # nothing reads it any more

    @property
    def is_fault(self) -> bool:
        """Return whether data are lost until the store is repaired."""
        return self in {FindingKind.DAMAGED, FindingKind.UNREADABLE, FindingKind.INCOMPLETE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem; `size` is in bytes, 0 without a file."""

    kind: FindingKind
    path: Path
    reason: str
    size: int


def size_bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    try:
        if path.is_dir() and not path.is_symlink():
            return sum(size_bytes(inner) for inner in path.iterdir())
        return path.lstat().st_size
    except OSError:  # removed meanwhile, or not to be looked into
        return 0


STALE_AFTER_S: Final = 24 * 3600
"""The age after which files of an unobservable writer count as leftovers."""

QUIET_S: Final = 3600.0
"""The time without change after which an ended trial's checkpoint counts as a leftover."""

RESUMED_REASON: Final = "time limit"
"""The beginning of a failure's reason after which a trial can resume from its checkpoint."""


def find_leftovers(quarantine: Quarantine, now: float | None = None) -> list[Finding]:
    """Find leftover files at the time `now`, by default the time of this machine's clock.

    Raises `StoreError` for an unknown schema version.
    """
    now, layout = time.time() if now is None else now, quarantine.layout
    layout.place.list_names(layout.weights_folder, layout.final_checkpoints_folder, layout.checkpoints_folder)
    ended = list(_ended_checkpoints(quarantine, now))
    folders = {leftover.path for leftover in ended}
    return [*(each for each in _unfinished_files(layout, now) if each.path.parent not in folders), *ended]


def remove_leftovers(layout: Layout, *, dry: bool = False) -> list[Finding]:
    """Remove leftover files and return them; a `dry` run removes nothing.

    Ages are measured by the clock that sets file times. This machine's clock may be days ahead of it, and
    would make new files of others look old.
    """
    now = None
    if not dry and layout.unfinished.is_dir():  # else nothing was written yet
        with suppress(OSError):
            now = layout.place.now()
    found = find_leftovers(Quarantine(layout, dry=True), now)
    for leftover in () if dry else found:
        layout.place.delete(leftover.path)
    return found


def _unfinished_files(layout: Layout, now: float) -> Iterator[Finding]:
    """Yield files of dead writers, and damaged checkpoints that were set aside.

    If the writer cannot be observed from here, its files count after a day.
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


def _ended_checkpoints(quarantine: Quarantine, now: float) -> Iterator[Finding]:
    """Yield the checkpoints of finally ended trials that nobody has resumed since.

    Only a failed trial is ever retried. The time of its end is from the clock of its trainer.
    """
    columns = ["trial", "status", "reason", "finished"]
    rows = {row["trial"]: row for row in read_latest(quarantine, columns).iter_rows(named=True)}
    for folder in entries(quarantine.layout.checkpoints_folder):
        row = rows.get(folder.name)
        if row is None or not folder.is_dir() or row["status"] == INCOMPLETE:
            continue
        changed = max((_last_change(path, now) for path in folder.iterdir()), default=0.0)
        resumes = (row["reason"] or "").startswith(RESUMED_REASON)
        went_on = row["status"] == "failed" and changed > row["finished"].timestamp()
        if not resumes and not went_on and changed < now - QUIET_S:
            yield _leftover(folder, f"its trial is {row['status']}")


def _last_change(path: Path, now: float) -> float:
    """Return the time of a file; `now` if it was just removed."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return now


def _leftover(path: Path, reason: str) -> Finding:
    return Finding(kind=FindingKind.LEFTOVER, path=path, reason=reason, size=size_bytes(path))


_CHECKPOINTS: Final = ("state.pt", "previous.pt", STARTS_FILE, NOTE_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """All problems of a store, the most serious first; the number of files read, and their bytes.

    `quarantined` is the number of files in quarantine, and their bytes.
    """

    findings: tuple[Finding, ...]
    files: int
    size: int
    quarantined: tuple[int, int]

    @property
    def is_empty(self) -> bool:
        """Return whether the store has no file at all."""
        return not (self.files or self.findings or self.quarantined[0])

    @property
    def has_faults(self) -> bool:
        """Return whether data are lost until the store is repaired."""
        return any(finding.kind.is_fault for finding in self.findings)


def check_store(layout: Layout) -> StoreCheck:
    """Read all files of a store and return its problems."""
    kept = (layout.weights_folder, layout.final_checkpoints_folder, layout.checkpoints_folder)
    for folder in (layout.studies, *kept):
        layout.place.fetch(folder)
    layout.place.list_names(layout.quarantine)
    partitions = (path for dataset in SCHEMAS for path in layout.partitions(dataset))
    read = [path for partition in partitions for path in data_files(partition)]
    read += [*entries(layout.studies, ".json"), *_sealed_paths(layout)]
    quarantine = Quarantine(layout, dry=True)
    found = [finding for path in read if (finding := _check(path, quarantine)) is not None]
    found += _foreign(layout)
    with suppress(StoreError):  # of a file of another version, which is among the findings
        found += [*_incomplete(quarantine), *find_leftovers(quarantine)]
    kinds = list(FindingKind)
    away = [path for path in layout.quarantine.rglob("*") if path.is_file() and path.name != "notes.txt"]
    return StoreCheck(
        findings=tuple(sorted(found, key=lambda each: (kinds.index(each.kind), each.path))),
        files=len(read),
        size=sum(map(size_bytes, read)),
        quarantined=(len(away), sum(map(size_bytes, away))),
    )


def _sealed_paths(layout: Layout) -> Iterator[Path]:
    """Yield the files of weights and checkpoints, and their records."""
    kept = entries(layout.weights_folder, ".safetensors"), entries(layout.final_checkpoints_folder, ".pt")
    yield from (path for path in chain(*kept) if not path.name.startswith("."))
    for folder in entries(layout.checkpoints_folder):
        if folder.is_dir():
            yield from (path for path in entries(folder) if path.name in _CHECKPOINTS)


def _check(path: Path, quarantine: Quarantine) -> Finding | None:
    """Read one file like its readers do, and return its problem, if any."""
    fault = None
    try:
        if path.suffix == ".pt":
            with open_regular(path) as file:
                if not verify_seal(file):
                    fault = FindingKind.UNSEALED, "damage to it would not be noticed"
        elif path.suffix == ".safetensors":
            read_model(path)
        elif path.name == STARTS_FILE:
            read_begun(path.parent)
        elif path.name == NOTE_FILE:
            verify_note(path.parent)
        elif path.suffix == ".json":
            read_page(path)
        else:
            fault = _rows_fault(path, quarantine)
    except FileNotFoundError:  # removed meanwhile
        return None
    except DamagedError as error:
        fault = FindingKind.DAMAGED, str(error).removeprefix(f"{path}: ")
    except UnreadableError as error:
        fault = FindingKind.UNREADABLE, str(error).removeprefix(f"{path}: ")
    except StoreError as error:
        fault = FindingKind.FOREIGN, str(error).removeprefix(f"{path}: ")
    if fault is None:
        return None
    return Finding(kind=fault[0], path=path, reason=fault[1], size=size_bytes(path))


def _rows_fault(path: Path, quarantine: Quarantine) -> tuple[FindingKind, str] | None:
    known = len(quarantine.faults)
    read_verified(path, quarantine)
    if len(quarantine.faults) == known:
        return None
    fault = quarantine.faults[known]
    if fault.is_damaged:
        return FindingKind.DAMAGED, fault.reason.removesuffix("; its contents count as missing")
    return FindingKind.FOREIGN if fault.path.is_file() else FindingKind.UNREADABLE, fault.reason


def _foreign(layout: Layout) -> Iterator[Finding]:
    """Yield entries in folders of the store that are not its files."""
    strangers = list[Path]()
    for dataset in SCHEMAS:
        for path in entries(layout.root / dataset):
            inside = entries(path) if path.is_dir() else [path]
            strangers += [each for each in inside if path == each or each.suffix != ".parquet"]
    for path in strangers:
        reason = "no store has a file of this name"
        yield Finding(kind=FindingKind.FOREIGN, path=path, reason=reason, size=size_bytes(path))


def _incomplete(quarantine: Quarantine) -> Iterator[Finding]:
    """Yield the trials whose metrics are lost, each at the place where they were written."""
    columns = ["trial", "attempt", "study", "status"]
    rows = read_latest(quarantine, columns).filter(status=INCOMPLETE)
    for trial, attempt, study, _ in rows.iter_rows():
        path = quarantine.layout.attempt_file("metrics", study, trial, attempt)
        reason = "the metrics of a trial that has its row; study run trains it again"
        yield Finding(kind=FindingKind.INCOMPLETE, path=path, reason=reason, size=0)
