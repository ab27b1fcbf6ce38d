"""Check of a store: every file is read to its end, and nothing is changed."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from ..checkpoint_notes import NOTE_FILE, STARTS_FILE, read_begun, verify_note
from ..errors import DamagedError, StoreError, UnreadableError
from ..integrity.model_checksum import read_model
from ..integrity.regular_file import open_regular
from ..integrity.seal import verify_seal
from ..latest_attempts import INCOMPLETE, read_latest
from ..paths import Layout, data_files, entries
from ..quarantine import Quarantine, UnreadFile
from ..read import read_verified
from ..schema import SCHEMAS
from ..study_records import read_page
from .findings import Finding, FindingKind, size_bytes
from .leftovers import find_leftovers

_CHECKPOINTS: Final = ("state.pt", "previous.pt", STARTS_FILE, NOTE_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """Everything that is wrong with a store, the gravest first; the number of files read, and their bytes.

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
        """Return whether something of the store is lost until it is repaired."""
        return any(finding.kind.is_fault for finding in self.findings)


def check_store(layout: Layout) -> StoreCheck:
    """Read all of a store and say what is wrong with it."""
    kept = (layout.weights_folder, layout.final_checkpoints_folder, layout.checkpoints_folder)
    for folder in (layout.studies, *kept):
        layout.place.fetch(folder)
    layout.place.list_names(layout.quarantine)
    read = [*_data_paths(layout), *entries(layout.studies, ".json"), *_sealed_paths(layout)]
    quarantine = Quarantine(layout, dry=True)
    found = [finding for path in read if (finding := _check(path, quarantine)) is not None]
    found += _foreign(layout)
    with suppress(StoreError):  # of a file of another version, which is among the findings
        found += [*_incomplete(layout, quarantine), *find_leftovers(layout, quarantine)]
    kinds = list(FindingKind)
    away = [path for path in layout.quarantine.rglob("*") if path.is_file() and path.name != "notes.txt"]
    return StoreCheck(
        findings=tuple(sorted(found, key=lambda each: (kinds.index(each.kind), each.path))),
        files=len(read),
        size=sum(map(size_bytes, read)),
        quarantined=(len(away), sum(map(size_bytes, away))),
    )


def _data_paths(layout: Layout) -> Iterator[Path]:
    for dataset in SCHEMAS:
        for partition in layout.partitions(dataset):
            yield from data_files(partition)


def _sealed_paths(layout: Layout) -> Iterator[Path]:
    """Yield the files of weights and checkpoints, and the records beside these."""
    kept = entries(layout.weights_folder, ".safetensors"), entries(layout.final_checkpoints_folder, ".pt")
    yield from (path for path in chain(*kept) if not path.name.startswith("."))
    for folder in entries(layout.checkpoints_folder):
        if folder.is_dir():
            yield from (path for path in entries(folder) if path.name in _CHECKPOINTS)


def _check(path: Path, quarantine: Quarantine) -> Finding | None:
    """Read one file as its readers do, and say what is wrong with it."""
    fault = None
    try:
        if path.suffix == ".pt":
            fault = _unsealed(path)
        elif path.suffix == ".safetensors":
            read_model(path)
        elif path.name == STARTS_FILE:
            read_begun(path.parent)
        elif path.name == NOTE_FILE:
            verify_note(path.parent)
        elif path.suffix == ".json":
            read_page(path)
        else:
            known = len(quarantine.faults)
            read_verified(path, quarantine)
            fault = next(map(_kind_and_reason, quarantine.faults[known:]), None)
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


def _unsealed(path: Path) -> tuple[FindingKind, str] | None:
    with open_regular(path) as file:
        is_sealed = verify_seal(file)
    return None if is_sealed else (FindingKind.UNSEALED, "damage to it would not be noticed")


def _kind_and_reason(fault: UnreadFile) -> tuple[FindingKind, str]:
    if fault.is_damaged:
        return FindingKind.DAMAGED, fault.reason.removesuffix("; its contents count as missing")
    return FindingKind.FOREIGN if fault.path.is_file() else FindingKind.UNREADABLE, fault.reason


def _foreign(layout: Layout) -> Iterator[Finding]:
    """Yield what is in folders of the store and is none of its files."""
    strangers = list[Path]()
    for dataset in SCHEMAS:
        for path in entries(layout.root / dataset):
            inside = entries(path) if path.is_dir() else [path]
            strangers += [each for each in inside if path == each or each.suffix != ".parquet"]
    for path in strangers:
        reason = "no store has a file of this name"
        yield Finding(kind=FindingKind.FOREIGN, path=path, reason=reason, size=size_bytes(path))


def _incomplete(layout: Layout, quarantine: Quarantine) -> Iterator[Finding]:
    """Yield the trials whose metrics are lost, each at the place where they were written."""
    columns = ["trial", "attempt", "study", "status"]
    rows = read_latest(layout, quarantine, columns).filter(status=INCOMPLETE)
    for trial, attempt, study, _ in rows.iter_rows():
        path = layout.attempt_file("metrics", study, trial, attempt)
        reason = "the metrics of a trial that has its row; study run trains it again"
        yield Finding(kind=FindingKind.INCOMPLETE, path=path, reason=reason, size=0)
