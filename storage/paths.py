"""Names of all folders and files of a store.

trials/STUDY/TRIAL-ATTEMPT.parquet      one row, written by the worker that ran it
trials/STUDY/group-TIME-CHANCE.parquet  the rows of short trials that ended together
trials/STUDY/compacted-TIME-CHANCE.parquet
metrics/STUDY/...                       the same names, the rows of their metrics
probes/STUDY/...                        the same again, measured in their models later
tuning/STUDY/...                        the same again, the search for outputs that was chosen later
outputs/STUDY/...                       the same again, what models wrote for the test split, if kept
tuned_outputs/STUDY/...                 the same again, what they wrote later with the chosen search
taken/STUDY/...                         the same again, trials of other studies that a search counts
weights/TRIAL.safetensors               a trained model, if its study keeps it
final_checkpoints/TRIAL.pt              the last state of a training, if its study keeps it
studies/STUDY.json                      the record of a study's last run
checkpoints/TRIAL/                      the checkpoint of an unfinished trial, and a note of its progress
quarantine/                             damaged files under their paths, and notes.txt
leases/TRIAL-ATTEMPT                    who trains it
unfinished/                             files that are being written
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from .errors import StoreError
from .place import FolderPlace, Place

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_TRIAL: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_COMPACTED: Final = "compacted-"
DATA_ENDING: Final = ".parquet"
_GROUP: Final = "group-"
_TIME_OF_MERGE: Final = re.compile(rf"{_COMPACTED}([0-9a-f]{{16}})-")


class Layout:
    """The paths of a store in its place.

    Datasets only contain Parquet files, since some readers take every file of a folder for data. So
    unfinished files are in `unfinished`, on the same file system. A study's folder is not called
    `study=NAME`: the column is in the files, and pandas rejects it when it comes from both.
    """

    def __init__(self, place: Place) -> None:
        self.place, self.root = place, place.root
        self.quarantine = self.root / "quarantine"
        self.unfinished = self.root / "unfinished"
        self.leases = self.root / "leases"
        self.studies = self.root / "studies"
        self.checkpoints_folder = self.root / "checkpoints"
        self.weights_folder = self.root / "weights"
        self.final_checkpoints_folder = self.root / "final_checkpoints"

    def __reduce__(self) -> tuple[type[Layout], tuple[Place]]:
        """Pickle only the place: another process gets the paths of its own copy."""
        return Layout, (self.place,)

    def lease(self, trial: str, attempt: int) -> Path:
        """Return the file of the lease of an attempt at a trial."""
        return self.leases / f"{validate_trial_id(trial)}-{attempt}"

    def study(self, name: str) -> Path:
        """Return the file of a study's record; raises `StoreError` for an invalid name."""
        return self.studies / f"{validate_study_name(name)}.json"

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
        for folder in [dataset] if studies is None else [f"{dataset}/{study}" for study in studies]:
            self.place.fetch(self.root / folder)
        found = [path for path in entries(self.root / dataset) if path.is_dir()]
        return tuple(path for path in found if studies is None or path.name in studies)

    def attempt_file(self, dataset: str, study: str, trial: str, attempt: int) -> Path:
        """Return the file of one attempt at a trial."""
        return self.group_file(dataset, study, f"{validate_trial_id(trial)}-{attempt}.parquet")

    def group_file(self, dataset: str, study: str, name: str) -> Path:
        """Return the file of attempts that are written together; its name is the same in all datasets."""
        return self.root / dataset / validate_study_name(study) / name


def is_address(text: str) -> bool:
    """Return whether a text begins with a scheme, so that it cannot be a folder."""
    return _SCHEME.match(text) is not None


def open_layout(root: Path | str) -> Layout:
    """Return the layout of the store in a folder or at an address; raises `StoreError` for an unfit one."""
    if is_address(str(root)):
        from .bucket_place import BucketPlace  # noqa: PLC0415  folders do without

        return Layout(BucketPlace(str(root)))
    return Layout(FolderPlace(Path(root)))


def new_compacted_path(partition: Path) -> Path:
    """Return a new path for a partition's merged data.

    The name is unique, so that two simultaneous compactions never delete each other's result. It sorts after
    the names of earlier compactions, even if the clock was set back since.
    """
    earlier = [int(found[1], 16) for path in entries(partition) if (found := _TIME_OF_MERGE.match(path.name))]
    now = max(time.time_ns(), 1 + max(earlier, default=0))
    return partition / f"{_COMPACTED}{now:016x}-{secrets.token_hex(4)}.parquet"


def new_group_name() -> str:
    """Return a unique name for files of attempts that are written together; later names sort last."""
    return f"{_GROUP}{time.time_ns():016x}-{secrets.token_hex(4)}.parquet"


def data_files(partition: Path) -> tuple[Path, ...]:
    """List the data files of a partition, merged ones first, then by name; a missing folder has none."""
    return tuple(
        sorted(entries(partition, DATA_ENDING), key=lambda path: (not is_compacted(path), path.name))
    )


def data_names(partition: Path) -> set[str]:
    """Return the names of the data files of a partition; a missing folder has none."""
    return {name for name in all_names(partition) if name.endswith(DATA_ENDING)}


def all_names(folder: Path) -> set[str]:
    """Return all names in a folder; a missing folder has none."""
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


def is_compacted(path: Path) -> bool:
    """Return whether a compaction wrote a data file."""
    return path.name.startswith(_COMPACTED)


def is_of_one(path: Path) -> bool:
    """Return whether a data file was written for one attempt alone."""
    return not path.name.startswith((_COMPACTED, _GROUP))


def validate_study_name(study: str) -> str:
    """Return a study's name; raises `StoreError` if it cannot name a folder."""
    if fault := study_name_fault(study):
        raise StoreError(fault)
    return study


def validate_trial_id(trial: str) -> str:
    """Return a trial's id; raise `StoreError` for a text that could lead out of the store's folders."""
    if fault := trial_id_fault(trial):
        raise StoreError(fault)
    return trial


def study_name_fault(study: str) -> str | None:
    """Return the fault of a study's name, which also names folders, or None."""
    if _NAME.fullmatch(study):
        return None
    return f"study: expected a letter or digit, then up to 99 letters, digits, '-', '_' or '.', got {study!r}"


def trial_id_fault(trial: str) -> str | None:
    """Return the fault of a trial's id, or None."""
    return None if _TRIAL.fullmatch(trial) else f"trial: expected 16 hexadecimal digits, got {trial!r}"
