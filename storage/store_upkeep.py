"""Upkeep of a store, such as compaction, checks and repair.

A check reads every file to its end. Leftovers are files that nothing reads any more.
"""

import io
import json
import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import product
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType
from typing import Final

import polars as pl

from .checksums import encode, read_model, verify_checksum, verify_seal
from .errors import DamagedError, StoreError, UnreadableError
from .files import open_regular, read_regular, sync
from .leases import Lease, Leases, remove_leases, this_process
from .mark import check_links, holds_store
from .own_files import FOLDERS, MARK, is_own_file, linked_folder, writer_mark
from .place import (
    Layout,
    Place,
    all_names,
    data_files,
    entries,
    holds_one_attempt,
    is_compacted,
    new_compacted_path,
    store_time,
    trial_id_fault,
)
from .processes import has_ended
from .read import (
    DONE,
    INCOMPLETE,
    RANK,
    Quarantine,
    batches,
    check_readable,
    last_numbers,
    latest_copies,
    load_partition,
    read,
    read_latest,
    read_verified,
    scan,
)
from .rows import MEASURED_LATER, SCHEMAS, SORT_KEYS, content_fault
from .study_records import read_page
from .trial_files import NOTE_FILE, STARTS_FILE, read_begun, verify_note

_log = logging.getLogger(__name__)

_OF_ENDED: Final = ("metrics", "outputs")
"""Datasets that are written before an attempt's row, and never changed."""

_WRITTEN_AGAIN: Final = (*MEASURED_LATER, "tuned_outputs")
"""Datasets whose files may be replaced after an attempt's row is written."""


def _replace(place: Place, dataset: str, partition: Path, contents: Mapping[Path, bytes]) -> int:
    """Merge files of a partition; warn of done trials of which copies of the store have different values."""
    merged = merge(dataset, contents)
    if dataset == "trials":
        found = scan(dataset, batches(contents), SCHEMAS[dataset].names())
        for trial, attempt, commits in _conflicts(found, "trial", "attempt").iter_rows():
            (kept,) = merged.filter(trial=trial, attempt=attempt).iter_rows(named=True)
            told = "trial %s was trained twice, by %s, with different values; only that of %s is kept, by %s"
            ended = f"{kept['finished']:%Y-%m-%d %H:%M:%S} UTC"
            _log.warning(told, trial, _listed_commits(commits), ended, kept["commit"] or "an unknown commit")
    write_merged(place, dataset, partition, merged, contents)
    remove_merged(place, dataset, partition, contents)
    return len(contents)


def merge(dataset: str, contents: Mapping[Path, bytes]) -> pl.DataFrame:
    """Merge the rows of several files of a partition into one sorted frame.

    Outdated copies are left out. The rows are in one chunk, because many small chunks are slow.
    """
    found = scan(dataset, batches(contents), SCHEMAS[dataset].names()).collect().rechunk()
    frame = latest_copies(found.lazy()).drop(RANK)
    return frame.sort(SORT_KEYS[dataset], maintain_order=True).collect()


def remove_merged(place: Place, dataset: str, partition: Path, contents: Mapping[Path, bytes]) -> None:
    """Remove the files of a partition whose rows are now in a merged file.

    Files that were rewritten after they were read stay. A new file of probes takes precedence over the merged
    rows of the previous file.
    """
    unchanged = list[Path]()
    for path, data in contents.items():
        with suppress(FileNotFoundError, UnreadableError):
            may_change = dataset in _WRITTEN_AGAIN and holds_one_attempt(path)
            if not may_change or place.get(path) == data:
                unchanged.append(path)
    place.delete(*unchanged)
    sync(partition)


def write_merged(
    place: Place, dataset: str, partition: Path, merged: pl.DataFrame, replaced: Iterable[Path]
) -> None:
    """Write rows of a partition as a new merged file for all who may read one of the files `replaced`."""
    data = encode(merged)
    assert scan(dataset, [[data]], SCHEMAS[dataset].names()).drop(RANK).collect().equals(merged), (
        "expected to read all merged rows"
    )
    place.put(new_compacted_path(partition), data, replaced=replaced)


class FindingKind(StrEnum):
    """Kinds of problems that a check finds, the most serious first."""

    DAMAGED = "damaged"  # its bytes are not those that were written
    UNREADABLE = "unreadable"  # it has the name of a store's file, but cannot be read
    INCOMPLETE = "incomplete"  # a trial has lost its row or its metrics
    CONFLICTING = "conflicting"  # a trial was trained twice, with different values
    FOREIGN = "foreign"  # no store wrote it
    UNFINISHED = "unfinished"  # the checkpoint of a trial without a row
    LEFTOVER = "leftover"  # nothing reads it any more


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem with a file of the store.

    `bytes` is the file's size, or 0 if the file does not exist. `path` is relative to the store in the
    results of StoreUpkeep's methods.
    """

    kind: FindingKind
    path: Path
    reason: str
    bytes: int


def _size_bytes(path: Path) -> int:
    try:
        if path.is_dir() and not path.is_symlink():
            return sum(_size_bytes(inner) for inner in path.iterdir())
        return path.lstat().st_size
    except OSError:  # it was removed meanwhile, or the folder cannot be read
        return 0


def _sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Return the number of "files" and their "bytes"."""
    sizes = list(map(_size_bytes, paths))
    return {"files": len(sizes), "bytes": sum(sizes)}


STALE_AFTER_S: Final = 24 * 3600
"""The age after which unfinished files count as leftovers."""

QUIET_S: Final = 3600.0
"""The time without change after which an ended trial's checkpoint counts as a leftover.

That of a done trial counts at once, unless a process has changed it after the trial's end.
"""

RESUMED_REASON: Final = "time limit"
"""The beginning of a failure's reason after which a trial can resume from its checkpoint."""


def _finding(kind: FindingKind, path: Path, reason: str) -> Finding:
    return Finding(kind, path, reason, _size_bytes(path))


def find_leftovers(quarantine: Quarantine, now: float | None = None) -> list[Finding]:
    """Return the files in a store that nothing uses any more.

    Checkpoints of ended trials are such files. `now` is the current time, by default by the clock of this
    machine. Raise `StoreError` for an unknown schema version.
    """
    now, layout = time.time() if now is None else now, quarantine.layout
    layout.place.list(*layout.folders_of_files)
    ended = [*_ended_checkpoints(quarantine, now), *_unneeded_states(quarantine)]
    folders = {leftover.path for leftover in ended}
    return [*(each for each in _unfinished_files(layout, now) if each.path.parent not in folders), *ended]


def _unfinished_files(layout: Layout, now: float) -> Iterator[Finding]:
    oldest = now - STALE_AFTER_S
    kept = [layout.unfinished, layout.weights_folder, layout.final_checkpoints_folder]
    folders = [folder for folder in (*kept, *entries(layout.checkpoints_folder)) if folder.is_dir()]
    for path in (path for folder in folders for path in entries(folder)):
        if not is_own_file(layout.root, path):
            continue
        if path.name.endswith(".damaged"):
            yield _finding(FindingKind.LEFTOVER, path, "a damaged checkpoint that its trial no longer needs")
        elif (mark := writer_mark(path.name)) is not None:
            if has_ended(mark):
                yield _finding(FindingKind.LEFTOVER, path, "the process that wrote it has ended")
            elif _last_change(path, now) < oldest:
                yield _finding(FindingKind.LEFTOVER, path, "it was left unfinished a day ago")


def _ended_checkpoints(quarantine: Quarantine, now: float) -> Iterator[Finding]:
    """Yield the checkpoints of trials that have ended for good.

    A process that was killed after it stored the row has left them. The time of the end is from the clock of
    the machine that trained the trial.
    """
    columns = ["trial", "status", "reason", "finished"]
    rows = {row["trial"]: row for row in read_latest(quarantine, columns).iter_rows(named=True)}
    for folder in entries(quarantine.layout.checkpoints_folder):
        row = rows.get(folder.name)
        if row is None or not folder.is_dir() or row["status"] == INCOMPLETE:
            continue
        files = [path for path in folder.iterdir() if is_own_file(quarantine.layout.root, path)]
        if not files and any(folder.iterdir()):  # only files of the user's are left in it
            continue
        changed = max((_last_change(path, now) for path in files), default=0.0)
        resumes = (row["reason"] or "").startswith(RESUMED_REASON)
        went_on = changed > row["finished"].timestamp()
        if row["status"] == DONE:
            is_over = not went_on or changed < now - QUIET_S
        else:
            is_over = not went_on and not resumes and changed < now - QUIET_S
        if is_over:
            yield _finding(FindingKind.LEFTOVER, folder, f"its trial is {row['status']}")


_REPLACED: Final = "a trial that resumed from it has a last state of its own"


def _unneeded_states(quarantine: Quarantine) -> Iterator[Finding]:
    """Yield the last states of trainings that nothing resumes from.

    Either a trial that resumed from it has a last state of its own, or its trial has failed or was pruned.
    """
    layout = quarantine.layout
    states = {
        path.stem: path for path in layout.kept_files() if path.parent == layout.final_checkpoints_folder
    }
    begun = {path.name for path in entries(layout.checkpoints_folder)}
    if not states:
        return
    # read last: a trial that is trained again has a checkpoint until it has a row
    rows = read_latest(quarantine, ["trial", "status", "continued_from"]).iter_rows()
    for trial, status, earlier in rows:
        if trial in states and status not in (DONE, INCOMPLETE) and trial not in begun:
            yield _finding(FindingKind.LEFTOVER, states[trial], f"its trial is {status}")
        if trial in states and status == DONE and earlier != trial and earlier in states:
            yield _finding(FindingKind.LEFTOVER, states[earlier], _REPLACED)


def _last_change(path: Path, now: float) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return now


_NUM_TOLD: Final = 10
"""The number of removed leftovers that a run names."""

_CHECKPOINTS: Final = ("state.pt", "previous.pt", STARTS_FILE, NOTE_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """Result of a check of the store's files.

    - `files` is the number of files that were read, and `bytes` their total size.
    - `findings` are the faults, the most serious first.
    - `last_states` has the number of "files" with the last state of a training, and their "bytes".
    - `quarantine` has the number of "files" in quarantine, and their "bytes".
    - `moved` are the files that a repair has just moved there.
    """

    files: int
    bytes: int
    findings: tuple[Finding, ...]
    last_states: Mapping[str, int]
    quarantine: Mapping[str, int]
    moved: tuple[Finding, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether the store has no file at all."""
        return not (self.files or self.findings or self.quarantine["files"])

    @property
    def has_faults(self) -> bool:
        """Return whether some problem hides data until a repair."""
        faults = {FindingKind.DAMAGED, FindingKind.UNREADABLE, FindingKind.INCOMPLETE}
        return any(finding.kind in faults for finding in self.findings)


def _sealed_paths(layout: Layout) -> Iterator[Path]:
    yield from layout.kept_files()
    for folder in entries(layout.checkpoints_folder):
        if folder.is_dir():
            yield from (path for path in entries(folder) if path.name in _CHECKPOINTS)


def _check(path: Path) -> Finding | None:
    try:
        if path.suffix == ".pt":
            with open_regular(path) as file:
                verify_seal(file)
        elif path.suffix == ".safetensors":
            read_model(path)
        elif path.name == STARTS_FILE:
            read_begun(path.parent)
        elif path.name == NOTE_FILE:
            verify_note(path.parent)
        elif path.suffix == ".json":
            read_page(path)
        else:
            data = read_regular(path)
            verify_checksum(data)
            if (fault := content_fault(path.parent.parent.name, data)) is not None:
                raise UnreadableError(fault)
    except FileNotFoundError:  # removed meanwhile
        return None
    except StoreError as error:
        kinds = {DamagedError: FindingKind.DAMAGED, UnreadableError: FindingKind.UNREADABLE}
        kind = kinds.get(type(error), FindingKind.FOREIGN)
        return _finding(kind, path, str(error).removeprefix(f"{path}: "))
    return None


def _foreign(layout: Layout) -> Iterator[Finding]:
    for folder in (layout.root / name for name in FOLDERS):
        if folder.is_symlink():
            yield _finding(FindingKind.FOREIGN, folder, "it is a link; nothing that it leads to is removed")
    for dataset in SCHEMAS:
        for path in entries(layout.root / dataset):
            for each in entries(path) if path.is_dir() else [path]:
                if path == each or each.suffix != ".parquet":
                    yield _finding(FindingKind.FOREIGN, each, "a store has no file of this name")


def _incomplete(quarantine: Quarantine) -> Iterator[Finding]:
    """Yield a finding, at the path of the lost metrics, for each trial that has a row but no metrics."""
    columns = ["trial", "attempt", "study", "status"]
    trained_again = set(read_latest(quarantine, columns).filter(status=INCOMPLETE)["trial"])
    rows = read_latest(quarantine, columns, checks_all=True).filter(status=INCOMPLETE)
    for trial, attempt, study, _ in rows.iter_rows():
        path = quarantine.layout.attempt_file("metrics", study, trial, attempt)
        reason = "metrics of this trial are lost; study run trains the trial again"
        if trial not in trained_again:
            reason = (
                "metrics of this trial are lost, or were not copied with its row: copy them, or forget it"
            )
        yield _finding(FindingKind.INCOMPLETE, path, reason)


def _conflicting(quarantine: Quarantine) -> Iterator[Finding]:
    """Yield a finding for each trial with done rows of different values, at the row that counts."""
    conflicts = _conflicts(read(quarantine, "trials", ["trial", "status", "metrics", "commit"]), "trial")
    used = read_latest(quarantine, ["trial", "attempt", "study", "factors", "commit", "host", "finished"])
    for row in used.join(conflicts, on="trial", maintain_order="left").iter_rows(named=True):
        path = quarantine.layout.attempt_file("trials", row["study"], row["trial"], row["attempt"])
        cell = ", ".join(f"{name}={level}" for name, level in json.loads(row["factors"]).items())
        commits = _listed_commits(row["commits"])
        ended = f"{row['finished']:%Y-%m-%d %H:%M:%S} UTC on {row['host']}"
        counted = f"that of {row['commit'] or 'an unknown commit'} counts, which ended {ended}"
        reason = f"{cell}: done rows of {commits} have different values; {counted}"
        yield _finding(FindingKind.CONFLICTING, path, reason)


def _conflicts(rows: pl.LazyFrame, *keys: str) -> pl.DataFrame:
    """Return the keys of done trials with rows of different values, and the `commits` of these rows."""
    values = rows.filter(status=DONE).explode("metrics").unnest("metrics")
    several = values.filter(pl.col("name") != "tokens_per_s").group_by(*keys, "name")
    found = several.agg(pl.col("value").n_unique(), pl.col("commit").unique()).filter(pl.col("value") > 1)
    return found.select(*keys, commits="commit").unique(keys).collect()


def _listed_commits(commits: Iterable[str | None]) -> str:
    return " and ".join(sorted(each or "an unknown commit" for each in commits))


def _without_rows(quarantine: Quarantine, damaged: Iterable[Path]) -> Iterator[Finding]:
    """Yield a finding for each trial that has no row, but metrics, a model or a checkpoint.

    A trial with a checkpoint is unfinished. Studies with `damaged` rows are left out: that is a finding
    itself.
    """
    layout, folders = quarantine.layout, {path.parent for path in damaged}
    known = set(read_latest(quarantine, ["trial"])["trial"])
    unfinished = {path.name: path for path in entries(layout.checkpoints_folder) if path.is_dir()}
    lost = {path.stem: path for path in layout.kept_files() if trial_id_fault(path.stem) is None}
    keys = ["trial", "attempt", "study"]
    measured = read(quarantine, "metrics", keys).select(keys).unique().collect()
    for trial, attempt, study in measured.iter_rows():
        lost[trial] = layout.attempt_file("trials", study, trial, attempt)
    for trial in lost.keys() - known - unfinished.keys():
        if lost[trial].parent not in folders:
            reason = "the row of this trial is lost; study run trains the trial again"
            yield _finding(FindingKind.INCOMPLETE, lost[trial], reason)
    for trial in unfinished.keys() - known:
        resumes = "study run resumes it if a study still has it, with the same settings and code"
        reason = f"its trial has no row; unless a run is training it, {resumes}"
        yield _finding(FindingKind.UNFINISHED, unfinished[trial], reason)


_ORDER: Final = ("trials", *(dataset for dataset in SCHEMAS if dataset != "trials"))
"""The order of removal: rows go first, so that a crash leaves nothing that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The trials, rows and files that were removed from a study.

    If `removed` is false, they would be removed. `rows` counts the rows of each dataset. `files` are weights,
    checkpoints and last states, relative to the store, and `bytes` is their total size. `passed_on` counts
    the trials that were handed over to other studies, which need them.
    """

    removed: bool
    study: str
    trials: tuple[str, ...]
    rows: Mapping[str, int]
    files: tuple[Path, ...]
    bytes: int
    passed_on: Mapping[str, int]


class StoreUpkeep:
    """Maintenance of a store: checks, merges and removals."""

    def __init__(self, quarantine: Quarantine) -> None:
        self._layout, self._quarantine = quarantine.layout, quarantine

    def compact(self) -> int:
        """Merge small files and remove leftovers; return how many files were merged.

        This method may run while others write, read and compact, and may be killed at any moment. Rows that
        are then in several files count once, and the next compaction merges them. A merged file of an earlier
        release is written again if it lacks columns, so that any program can read all files together.
        """
        if not holds_store(self._layout):
            _log.warning("%s is not a store: nothing in it is removed or merged", self._layout.place.name)
            return 0
        # last states that longer trainings replace are as expected
        removed = [each for each in self.clean() if each.reason != _REPLACED]
        for finding in removed[:_NUM_TOLD]:
            _log.warning("removed %s: %s", finding.path, finding.reason)
        if (more := len(removed) - _NUM_TOLD) > 0:
            _log.warning("removed %d more leftovers", more)
        remove_leases(self._layout, last_numbers(self._quarantine))
        merged = 0
        for dataset, partition in (
            (each, path) for each in SCHEMAS for path in self._layout.partitions(each)
        ):
            read = load_partition(partition, self._quarantine)
            contents = {path: data for path, data in read.items() if is_own_file(self._layout.root, path)}
            found = [list(pl.read_parquet_schema(io.BytesIO(data))) for data in contents.values()]
            has_all_columns = all(names == SCHEMAS[dataset].names() for names in found)
            if len(contents) > 1 or not has_all_columns or not all(map(is_compacted, contents)):
                merged += _replace(self._layout.place, dataset, partition, contents)
        return merged

    def merge_ended(self, study: str, *, at_least: int) -> int:
        """Merge the data files of a study's ended attempts.

        Do nothing if there are fewer than `at_least` of them. Return how many files were merged. A run calls
        this method while it trains, because merged files are not read again. An attempt has ended once its
        row exists; only probes are written later. So rows are merged last, and a crash before that leaves
        work for the next merge. Other processes may compact at the same time.
        """
        layout, merged = self._layout, 0
        ended = {
            path.name
            for partition in layout.partitions("trials", [study])
            for path in data_files(partition)
            if not is_compacted(path)
        }
        if len(ended) < at_least:
            return 0
        for dataset in (*_OF_ENDED, "trials"):
            for partition in layout.partitions(dataset, [study]):
                contents: dict[Path, bytes] = {}
                own = [path for path in data_files(partition) if is_own_file(layout.root, path)]
                for path in [path for path in own if path.name in ended]:
                    with suppress(FileNotFoundError):  # merged by another process
                        if (data := read_verified(path, self._quarantine)) is not None:
                            contents[path] = data
                merged += _replace(layout.place, dataset, partition, contents) if contents else 0
        return merged

    def check(self) -> StoreCheck:
        """Read all files completely, and return the problems.

        Nothing is changed. Files written meanwhile may be reported as incomplete.
        """
        findings, read = self._find_faults()
        quarantine = self._layout.quarantine
        away = [path for path in quarantine.rglob("*") if path.is_file() and path.name != "notes.txt"]
        return StoreCheck(
            files=len(read),
            bytes=sum(map(_size_bytes, read)),
            findings=self._relative(findings),
            last_states=_sizes(path for path in read if path.parent == self._layout.final_checkpoints_folder),
            quarantine=_sizes(away),
        )

    def _find_faults(self) -> tuple[list[Finding], list[Path]]:
        """Return the problems, the most serious first, and all files that were read."""
        layout = self._layout
        layout.place.list(layout.studies, *layout.folders_of_files, contents=True)
        layout.place.list(layout.quarantine)
        partitions = (path for dataset in SCHEMAS for path in layout.partitions(dataset))
        read = [path for partition in partitions for path in data_files(partition)]
        read += [*entries(layout.studies, ".json"), *_sealed_paths(layout)]
        quarantine = Quarantine(layout, dry=True)
        found = [finding for path in read if (finding := _check(path)) is not None]
        damaged = [each.path for each in found if each.kind is FindingKind.DAMAGED]
        quarantine.unread += damaged
        found += _foreign(layout)
        with suppress(StoreError):  # raised for a file of another version, which is a finding already
            found += [
                *_incomplete(quarantine),
                *_conflicting(quarantine),
                *_without_rows(quarantine, damaged),
                *find_leftovers(quarantine),
            ]
        kinds = list(FindingKind)
        return sorted(found, key=lambda each: (kinds.index(each.kind), each.path)), read

    def _relative(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(replace(each, path=each.path.relative_to(self._layout.root)) for each in findings)

    def has_lost_rows(self, study: str) -> bool:
        """Return whether a study has lost all its rows: only its metrics are left."""
        left = self._quarantine.layout.partitions("metrics", [study])
        own = self._quarantine.layout.partitions("trials", [study])
        return not any(map(data_files, own)) and any(map(data_files, left))

    def repair(self) -> tuple[Finding, ...]:
        """Move every damaged file to quarantine, and return a finding for each.

        Trials that have lost their row or their metrics run again. A trial with a damaged checkpoint resumes
        from the previous one.
        """
        quarantine = Quarantine(self._layout)
        damaged = [each for each in self._find_faults()[0] if each.kind is FindingKind.DAMAGED]
        folders = {finding.path.parent for finding in damaged}
        self._layout.place.check_removable(folders, "nothing is repaired")
        for finding in damaged:
            quarantine.move(finding.path, finding.reason)
        return self._relative(damaged)

    def clean(self, *, dry: bool = False) -> tuple[Finding, ...]:
        """Remove and return the files that nothing uses any more.

        A `dry` run removes nothing. Such files are checkpoints of trials that have ended for good, and files
        left unfinished: by a process of this machine that has ended, or a day ago. Files of other names stay,
        and so does whatever only a link leads to.
        Raise `StoreError` for a folder that is not a store.

        The age of a file is measured by the clock that sets file times. The clock of this machine may be days
        ahead, and new files of other machines would then look old.
        """
        layout, now = self._layout, None
        if not holds_store(layout):
            if not all_names(layout.root):  # nothing has been stored yet
                return ()
            raise StoreError(
                f"{self._layout.place.name}: nothing is removed, because this is not a store: "
                f"it has neither the file {MARK} nor rows of trials"
            )
        # without this folder, nothing has been written yet
        if not dry and layout.unfinished.is_dir() and not layout.unfinished.is_symlink():
            with suppress(OSError):
                now = store_time(layout.place)
        found = find_leftovers(Quarantine(layout, dry=True), now)
        if not dry:
            folders = {folder for leftover in found for folder in (leftover.path, leftover.path.parent)}
            layout.place.check_removable(folders, "nothing is removed")
            layout.place.delete(*(leftover.path for leftover in found))
        return self._relative(found)

    def forget(
        self,
        study: str,
        trials: Collection[str],
        needed: Mapping[str, str] = MappingProxyType({}),
        *,
        dry: bool = False,
    ) -> Forgotten:
        """Remove these trials of a study with all their files.

        A `dry` run removes nothing. If another study has run a trial, too, the files of this trial are kept.
        The trials in `needed`, which maps them to studies that use their results, become trials of those
        studies. A second call after a crash finishes the removal. While one of the trials is in training,
        nothing is removed, and `StoreError` is raised; likewise if this process may not read a file of the
        study.
        """
        layout, wanted = self._layout, pl.col("trial").is_in(list(trials))
        check_readable(layout, study)
        self._check_removable(study)
        if not dry:
            layout.check_writable(study, otherwise="nothing is removed")
        stored = {dataset: self._rows(dataset, study).filter(wanted) for dataset in _ORDER}
        others = [each.name for each in layout.partitions("trials") if each.name != study]
        elsewhere = {trial for other in others for trial in self._rows("trials", other)["trial"]}
        own = {*stored["trials"]["trial"]} - elsewhere
        passed_on = {trial: other for trial, other in needed.items() if trial in own}
        elsewhere |= passed_on.keys()
        layout.place.list(*layout.folders_of_files)
        paths = (layout.weights, layout.final_checkpoint, layout.checkpoints)
        named = [path(trial) for trial in sorted(set(trials) - elsewhere) for path in paths]
        files = tuple(path for path in named if path.exists() and linked_folder(layout.root, path) is None)
        there = {trial for rows in stored.values() for trial in rows["trial"]}
        there |= {path.name.partition(".")[0] for path in files}
        is_passed_on = pl.col("trial").is_in(list(passed_on))
        found = Forgotten(
            removed=not dry and bool(there),
            study=study,
            trials=tuple(sorted(there - passed_on.keys())),
            rows={
                dataset: count
                for dataset, rows in stored.items()
                if (count := len(rows.filter(~is_passed_on)))
            },
            files=tuple(path.relative_to(layout.root) for path in files),
            bytes=sum(map(_size_bytes, files)),
            passed_on=dict(Counter(passed_on.values())),
        )
        if not dry:
            with self._claimed("forget", there | self._with_leases(trials)):
                # a trial's row is written last, as in a run, so that a trial with a row has everything
                for dataset, other in product(reversed(_ORDER), found.passed_on):
                    ids = [trial for trial, name in passed_on.items() if name == other]
                    if len(rows := stored[dataset].filter(pl.col("trial").is_in(ids))):
                        rows = rows.with_columns(study=pl.lit(other))
                        earlier = data_files(layout.root / dataset / study)
                        write_merged(layout.place, dataset, layout.root / dataset / other, rows, earlier)
                for dataset in _ORDER:
                    if len(stored[dataset]):
                        self._rewrite(dataset, study, wanted)
                layout.place.delete(*files)
                # the leases say that attempts have ended, but the next attempt is number 0 again
                layout.place.list(layout.leases)
                gone = there - elsewhere
                leases = (path for path in entries(layout.leases) if path.name.rpartition("-")[0] in gone)
                layout.place.delete(*leases)
        return found

    def copy_outcome(self, trial: str, to: str) -> bool:
        """Copy the outcome of a trial, with metrics, outputs and weights, to another trial.

        The copied row keeps the settings and the code version of the training. If the other trial is in
        training or has been trained, nothing is copied, and False is returned. Raise KeyError for an unknown
        trial. The row is written last, so a second call after a crash finishes the copy.
        """
        if to in last_numbers(self._quarantine):
            return False
        rows = read_latest(self._quarantine, ["trial", "attempt", "study"]).filter(trial=trial)
        if not len(rows):
            raise KeyError(trial)
        ((_, attempt, study),) = rows.iter_rows()
        claimed, place = self._claims("copy").claim(to, 0), self._layout.place
        if not isinstance(claimed, Lease):
            return False
        weights = self._layout.weights(trial)
        place.fetch(weights)
        if weights.is_file():
            place.put(self._layout.weights(to), read_regular(weights))
        for dataset in reversed(_ORDER):
            found = self._rows(dataset, study).filter(trial=trial, attempt=attempt)
            if len(found):
                number = pl.lit(claimed.attempt, found["attempt"].dtype)
                data = encode(found.with_columns(trial=pl.lit(to), attempt=number))
                path = self._layout.attempt_file(dataset, study, to, claimed.attempt)
                place.put(path, data)
        claimed.end()
        return True

    def copy_to_search(self, attempts: pl.DataFrame, search: str) -> None:
        """Copy attempts of other studies to a search, with their metrics and outputs.

        `attempts` has the columns trial, attempt, study and factors: the levels, as JSON, of the trial in the
        search. A copied row continues from the trial itself, so that its cost counts only once, and it ends
        now. A row of the search itself only gets the new factors. Rows are written last, so a second call
        after a crash finishes the copy.
        """
        keys, now = ["trial", "attempt"], datetime.now(UTC)
        origin = {"continued_from": pl.col("trial"), "continued_after": pl.col("epochs")}
        for study in attempts["study"].unique().sort():
            chosen, is_own = attempts.filter(study=study), study == search
            for dataset in ("trials",) if is_own else reversed(_ORDER):
                rows = self._rows(dataset, study).join(chosen, on=keys, how="semi")
                rows = rows.with_columns(study=pl.lit(search))
                if dataset == "trials":
                    rows = rows.update(chosen.select(*keys, "factors"), on=keys)
                    if not is_own:
                        rows = rows.with_columns(**origin, started=pl.lit(now), finished=pl.lit(now))
                for trial, attempt in chosen.select(keys).iter_rows():
                    if len(found := rows.filter(trial=trial, attempt=attempt)):
                        path = self._layout.attempt_file(dataset, search, trial, attempt)
                        self._layout.place.put(path, encode(found))

    def _check_removable(self, study: str) -> None:
        """Raise StoreError if rows of a study are in files of other names, or that only a link leads to."""
        layout = self._layout
        partitions = (partition for each in SCHEMAS for partition in layout.partitions(each, [study]))
        files = (path for partition in partitions for path in data_files(partition))
        if foreign := [path for path in files if not is_own_file(layout.root, path)]:
            raise StoreError(
                f"{foreign[0]}: expected a file of this store, in a folder that is no link, got rows of "
                f"{study}; nothing is removed. Move this file away, and try again"
            )

    def _claims(self, purpose: str) -> Leases:
        self._layout.place.check_claims()
        check_links(self._layout.root)
        return Leases(self._layout, this_process(f"{purpose} {token_hex(8)}"))

    @contextmanager
    def _claimed(self, purpose: str, trials: Iterable[str]) -> Iterator[None]:
        """Hold the leases of these trials; raise StoreError if a process trains one of them."""
        leases, last = self._claims(purpose), last_numbers(self._quarantine)
        held: list[Lease] = []
        try:
            for trial in sorted(trials):
                claimed = leases.claim(trial, last.get(trial, -1) + 1)
                while not isinstance(claimed, Lease) and claimed.ended:
                    claimed = leases.claim(trial, claimed.attempt + 1)
                if not isinstance(claimed, Lease):
                    owner = claimed.owner
                    who = f"process {owner.pid} of {owner.host} trains it"
                    raise StoreError(
                        f"trial {trial} is still training: {who}. Stop that run, or wait for its end. "
                        f"The lease of a lost process expires after {leases.lease_s:g} s"
                    )
                held.append(claimed)
            yield
        finally:
            for lease in held:
                lease.release()

    def _with_leases(self, trials: Collection[str]) -> set[str]:
        self._layout.place.list(self._layout.leases)
        return {path.name.rpartition("-")[0] for path in entries(self._layout.leases)} & set(trials)

    def _rows(self, dataset: str, study: str) -> pl.DataFrame:
        parts = self._layout.partitions(dataset, [study])
        return merge(dataset, load_partition(parts[0], self._quarantine) if parts else {})

    def _rewrite(self, dataset: str, study: str, removed: pl.Expr) -> None:
        """Remove the rows that `removed` selects.

        Another process that compacts the files may keep such rows; then rewrite again.
        """
        for partition in self._layout.partitions(dataset, [study]):
            while contents := load_partition(partition, self._quarantine):
                rows = merge(dataset, contents)
                kept = rows.filter(~removed)
                if len(kept) == len(rows):
                    break
                if len(kept):
                    write_merged(self._layout.place, dataset, partition, kept, contents)
                remove_merged(self._layout.place, dataset, partition, contents)
