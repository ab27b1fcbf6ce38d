"""Where everything lies: the only place that knows the folders and the names of files."""

import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}", re.ASCII)
_TRIAL: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_COMPACTED: Final = "compacted-"


class StoreError(ValueError):
    """A store cannot do what was asked; the message says what was expected and what was found."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of a store under its root.

    Datasets hold nothing but Parquet files, since some readers take every file of a folder for data;
    so files being written wait in `unfinished`, on the same file system.
    """

    root: Path

    @property
    def unfinished(self) -> Path:
        """The folder of files that are being written, or whose writer died."""
        return self.root / "unfinished"

    @property
    def aside(self) -> Path:
        """The folder of damaged files; below it they keep their path within the store."""
        return self.root / "set-aside"

    @property
    def studies(self) -> Path:
        """The folder of study records."""
        return self.root / "studies"

    def study(self, name: str) -> Path:
        """Return the file of a study's record; raises `StoreError` if the name is no study's."""
        return self.studies / f"{checked_name(name)}.json"

    def checkpoints(self, trial: str) -> Path:
        """Return the folder of a trial's checkpoints; raises `StoreError` if the id is no trial's."""
        if fault := trial_fault(trial):
            raise StoreError(fault)
        return self.root / "checkpoints" / trial

    def partitions(self, dataset: str) -> tuple[Path, ...]:
        """Return the folders of a dataset, one a study, sorted."""
        return tuple(sorted((self.root / dataset).glob("study=*/")))

    def loose(self, dataset: str, study: str, trial: str, attempt: int) -> Path:
        """Return the file that one attempt at a trial is written to."""
        return self.root / dataset / f"study={checked_name(study)}" / f"{trial}-{attempt}.parquet"


def compacted(partition: Path) -> Path:
    """Return a new file for a partition's merged data.

    Its name has never been used, so that two compactions at once can never delete each other's result,
    and names sort by time.
    """
    return partition / f"{_COMPACTED}{time.time_ns():016x}-{secrets.token_hex(4)}.parquet"


def files(partition: Path) -> tuple[Path, ...]:
    """List the data files of a partition, merged ones first, then by name; a missing folder has none."""
    found = (path for path in partition.glob("*.parquet") if not path.name.startswith("."))
    return tuple(sorted(found, key=lambda path: (not is_compacted(path), path.name)))


def is_compacted(path: Path) -> bool:
    """Say whether a data file is a merged one."""
    return path.name.startswith(_COMPACTED)


def checked_name(study: str) -> str:
    """Return a study's name; raises `StoreError` if it cannot be a folder's."""
    if fault := name_fault(study):
        raise StoreError(fault)
    return study


def name_fault(study: str) -> str | None:
    """Say what is wrong with a study's name, which becomes a folder that no reader may take for a number."""
    if _NAME.fullmatch(study):
        return None
    return f"study: expected a letter, then up to 99 letters, digits, '-', '_' or '.', got {study!r}"


def trial_fault(trial: str) -> str | None:
    """Say what is wrong with a trial's id."""
    return None if _TRIAL.fullmatch(trial) else f"trial: expected 16 hexadecimal digits, got {trial!r}"
