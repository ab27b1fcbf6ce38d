"""The layout of a store: the only module that knows its folders and the names of its files.

trials/STUDY/TRIAL-ATTEMPT.parquet      one row, written by the worker that ran it
trials/STUDY/group-TIME-CHANCE.parquet  the rows of short trials that ended one soon after the other
trials/STUDY/compacted-TIME-CHANCE.parquet
metrics/STUDY/...                       the same names, the rows of their metrics
probes/STUDY/...                        the same again, what was measured in their models later
tuning/STUDY/...                        the same again, which search for outputs was chosen later
outputs/STUDY/...                       the same again, what models wrote for the test split, if kept
tuned_outputs/STUDY/...                 the same again, what they wrote later with the chosen search
taken/STUDY/...                         the same again, trials that others have trained and a search counts
weights/TRIAL.safetensors               the engine's: a trained model, if its study keeps it
final_checkpoints/TRIAL.pt              the engine's: the last state of a training, if its study keeps it
studies/STUDY.json                      what each study was when it last ran
checkpoints/TRIAL/                      the engine's, with a note of how far the trial has come
quarantine/                             damaged files under their paths, and notes.txt
leases/TRIAL-ATTEMPT                    who trains it
unfinished/                             files that are being written
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import ActivememError
from .processes import temporary_name

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_TRIAL: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_COMPACTED: Final = "compacted-"
DATA_ENDING: Final = ".parquet"
_GROUP: Final = "group-"
_TIME_OF_MERGE: Final = re.compile(rf"{_COMPACTED}([0-9a-f]{{16}})-")


class StoreError(ActivememError):
    """A store cannot do what was asked; the message says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of a store under its root.

    Datasets hold nothing but Parquet files, since some readers take every file of a folder for data;
    so files being written wait in `unfinished`, on the same file system. What a store elsewhere, of which the
    root is a copy, does besides are `pull` to `file_time`. A study's folder is not called
    `study=NAME`: the column is in the files, and pandas refuses it when it comes from both.
    """

    root: Path

    def __post_init__(self) -> None:
        if os.path.exists(self.root) and not os.path.isdir(self.root):  # noqa: PTH110, PTH112 -- never raise
            raise StoreError(f"{self.root}: expected the folder of a store, got a file")

    @property
    def unfinished(self) -> Path:
        """The folder of files that are being written, or whose writer died."""
        return self.root / "unfinished"

    @property
    def quarantine(self) -> Path:
        """The folder of damaged files, which keep their path within the store below it."""
        return self.root / "quarantine"

    @property
    def leases(self) -> Path:
        """The folder of who trains what."""
        return self.root / "leases"

    def lease(self, trial: str, attempt: int) -> Path:
        """Return the file of who has claimed an attempt at a trial."""
        return self.leases / f"{validate_trial_id(trial)}-{attempt}"

    @property
    def studies(self) -> Path:
        """The folder of study records."""
        return self.root / "studies"

    def study(self, name: str) -> Path:
        """Return the file of a study's record; raises `StoreError` for an invalid name."""
        return self.studies / f"{validate_study_name(name)}.json"

    @property
    def checkpoints_folder(self) -> Path:
        """The folder of the folders of checkpoints."""
        return self.root / "checkpoints"

    @property
    def weights_folder(self) -> Path:
        """The folder of trained weights."""
        return self.root / "weights"

    @property
    def final_checkpoints_folder(self) -> Path:
        """The folder of the last states of trainings."""
        return self.root / "final_checkpoints"

    def final_checkpoint(self, trial: str) -> Path:
        """Return the file of the last state of a training."""
        return self.final_checkpoints_folder / f"{validate_trial_id(trial)}.pt"

    def checkpoints(self, trial: str) -> Path:
        """Return the folder of a trial's checkpoints."""
        return self.checkpoints_folder / validate_trial_id(trial)

    def weights(self, trial: str) -> Path:
        """Return the file of a trial's trained weights."""
        return self.weights_folder / f"{validate_trial_id(trial)}.safetensors"

    def partitions(self, dataset: str, studies: Collection[str] | None = None) -> tuple[Path, ...]:
        """Return the folders of a dataset, one per study, sorted; of all studies or of these."""
        try:
            with os.scandir(self.root / dataset) as found:
                names = sorted(each.name for each in found if each.is_dir())
        except FileNotFoundError:
            return ()
        return tuple(self.root / dataset / name for name in names if studies is None or name in studies)

    def partitions_with_strangers(self, dataset: str) -> tuple[Path, ...]:
        """Return the folders of a dataset in which something has a data file's name and is no file."""
        return tuple(path for path in self.partitions(dataset) if has_strangers(path))

    def attempt_file(self, dataset: str, study: str, trial: str, attempt: int) -> Path:
        """Return the file of one attempt at a trial."""
        return (
            self.root / dataset / validate_study_name(study) / f"{validate_trial_id(trial)}-{attempt}.parquet"
        )

    def group_file(self, dataset: str, study: str, name: str) -> Path:
        """Return the file of attempts that are written together; all datasets share its name."""
        return self.root / dataset / validate_study_name(study) / name

    def pull(self, *folders: Path) -> None:
        """Bring folders up to date with the store; those of this machine are the store."""

    def pull_names(self, *folders: Path) -> None:
        """Bring the names in folders up to date, with sizes and times, whatever the files hold."""

    def pull_file(self, path: Path) -> None:
        """Bring one file up to date."""

    def pull_named(self, folder: Path, name: str) -> None:
        """Bring all files of one name below a folder up to date, and the names of others."""

    def publish(self, path: Path) -> None:
        """Make a file that is durable here as durable in the store."""

    def publish_new(self, path: Path, data: bytes) -> None:
        """Write a file where the store is, if elsewhere; raises `FileExistsError` if it has another."""

    def remove(self, *paths: Path) -> None:
        """Remove files and folders with their contents, as far as they are there."""
        for path in paths:
            try:
                path.unlink(missing_ok=True)  # a search merges many files, and looking at each takes as long
            except (IsADirectoryError, PermissionError):  # the latter of a folder on macOS
                if not path.is_dir():
                    raise
                shutil.rmtree(path, ignore_errors=True)

    def move_aside(self, path: Path, target: Path) -> Path:
        """Rename a file to a path that no file has, this one or one with a number; return which.

        Raises `FileNotFoundError` if another process has moved it.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        return path.rename(unused_path(target))

    def file_time(self) -> float:
        """The time that a file gets which is written now: a server's where there is one."""
        self.unfinished.mkdir(parents=True, exist_ok=True)
        probe = self.unfinished / temporary_name("now")
        probe.touch()
        try:
            return probe.stat().st_mtime
        finally:
            probe.unlink()


def unused_path(path: Path) -> Path:
    """Return a path that no file has, this one or one with a number."""
    target, count = path, 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.{count}")
    return target


def new_compacted_path(partition: Path) -> Path:
    """Return a new file for a partition's merged data.

    Its name is unique, so that two compactions at once can never delete each other's result, and it sorts
    behind those of earlier ones, though a clock may have been put back since.
    """
    earlier = [int(found[1], 16) for path in entries(partition) if (found := _TIME_OF_MERGE.match(path.name))]
    now = max(time.time_ns(), 1 + max(earlier, default=0))
    return partition / f"{_COMPACTED}{now:016x}-{secrets.token_hex(4)}.parquet"


def new_group_name() -> str:
    """Return a unique name for files of attempts that are written together; later ones sort behind it."""
    return f"{_GROUP}{time.time_ns():016x}-{secrets.token_hex(4)}.parquet"


def new_salvaged_path(compacted: Path) -> Path:
    """Return a new file for what is intact of a merged file; it has its time, and so its rank."""
    time_of_merge = compacted.stem.split("-")[1]
    return compacted.with_name(f"{_COMPACTED}{time_of_merge}-{secrets.token_hex(4)}.parquet")


def data_files(partition: Path) -> tuple[Path, ...]:
    """List the data files of a partition, merged ones first, then by name; a missing folder has none."""
    return tuple(
        sorted(entries(partition, DATA_ENDING), key=lambda path: (not is_compacted(path), path.name))
    )


def data_names(partition: Path) -> set[str]:
    """The names of the data files of a partition; a missing folder has none."""
    return {name for name in all_names(partition) if name.endswith(DATA_ENDING)}


def all_names(folder: Path) -> set[str]:
    """The names of all that is in a folder; a missing one has none."""
    try:
        return set(os.listdir(folder))  # noqa: PTH208 -- a search asks at every point, and paths take longer
    except FileNotFoundError:
        return set()


def entries(folder: Path, ending: str = "") -> list[Path]:
    """List the contents of a folder, sorted; nothing if there is no such folder.

    Unlike `Path.glob` it raises all other errors: rows that cannot be listed must not look missing.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(ending))
    except FileNotFoundError:
        return []


def has_strangers(partition: Path) -> bool:
    """Say whether something in a partition has a data file's name and is no file."""
    try:
        with os.scandir(partition) as found:  # which mostly knows without looking at each
            return any(each.name.endswith(DATA_ENDING) and not each.is_file() for each in found)
    except FileNotFoundError:
        return False


def is_compacted(path: Path) -> bool:
    """Say whether a data file was merged by a compaction."""
    return path.name.startswith(_COMPACTED)


def is_of_one(path: Path) -> bool:
    """Say whether a data file was written for one attempt alone."""
    return not path.name.startswith((_COMPACTED, _GROUP))


def validate_study_name(study: str) -> str:
    """Return a study's name; raises `StoreError` if it cannot name a folder."""
    if fault := study_name_fault(study):
        raise StoreError(fault)
    return study


def validate_trial_id(trial: str) -> str:
    """Return a trial's id; raises `StoreError` for a text that may lead out of the store's folders."""
    if fault := trial_id_fault(trial):
        raise StoreError(fault)
    return trial


def study_name_fault(study: str) -> str | None:
    """Say what is wrong with a study's name, which also names folders."""
    if _NAME.fullmatch(study):
        return None
    return f"study: expected a letter or digit, then up to 99 letters, digits, '-', '_' or '.', got {study!r}"


def trial_id_fault(trial: str) -> str | None:
    """Say what is wrong with a trial's id."""
    return None if _TRIAL.fullmatch(trial) else f"trial: expected 16 hexadecimal digits, got {trial!r}"
