"""Locations of a store, and the names of its files.

A location is a folder or a bucket. It has these files:

trials/STUDY/TRIAL-ATTEMPT.parquet      one row, written by the worker that ran the attempt
trials/STUDY/group-TIME-CHANCE.parquet  the rows of short trials that ended together
trials/STUDY/compacted-TIME-CHANCE.parquet  the rows of files that a compaction has merged
metrics/STUDY/...                       files of the same names, with the metrics of each epoch
probes/STUDY/...                        the same for metrics that were measured later in trained models
tuning/STUDY/...                        the same for the metrics of decoding settings that were tuned later
outputs/STUDY/...                       the same for the outputs of models on the test split, if kept
tuned_outputs/STUDY/...                 the same for the outputs under tuned decoding settings
weights/TRIAL.safetensors               a trained model, if its study keeps weights
final_checkpoints/TRIAL.pt              the last state of a training, if its study keeps these states
studies/STUDY.json                      the record of a study's last run
checkpoints/TRIAL/                      the checkpoint of an unfinished trial, and a note of its progress
quarantine/                             damaged files under their paths, and notes.txt
leases/TRIAL-ATTEMPT                    the process that trains an attempt
unfinished/                             files that are being written
"""

from __future__ import annotations

import os
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, ELOOP
from pathlib import Path, PurePath
from typing import ClassVar, Final, final

from .errors import StoreError
from .files import keep_readers, make_folder, read_regular, replacing, sync, temporary_name, write_all
from .own_files import DATASETS, linked_folder, remove_own


class Place(ABC):
    """The location of a store: a folder or a bucket.

    On this machine, its files are below `root`. For a bucket, `root` is a copy: `list` and `fetch` update it,
    and writes reach the bucket before a method returns. A write that has returned survives a crash.
    """

    root: Path
    name: str
    """The path of the folder, or the address of the bucket."""

    poll_s: ClassVar[float]
    """The polling interval in seconds while waiting for a lease."""

    lists_are_current: ClassVar[bool]
    """Whether every machine sees at once what another machine has stored."""

    look_s: ClassVar[float]
    """The interval in seconds at which a view that shows the store looks for changes."""

    def list(self, *folders: Path, contents: bool | str = False) -> None:  # noqa: B027 -- nothing to do in a folder
        """Update the names, sizes and times of the local copies of files in these folders.

        With `contents`, also update what the files contain; if it is a name, only the files with this name.
        """

    def fetch(self, *files: Path) -> None:  # noqa: B027 -- nothing to do in a folder
        """Update the local copies of these files."""

    @property
    @abstractmethod
    def absolute_name(self) -> str:
        """The name by which processes with other working directories find the same location."""

    @abstractmethod
    def get(self, path: Path) -> bytes:
        """Return the current bytes of a file; raise `FileNotFoundError` or `UnreadableError`."""

    @abstractmethod
    def put(self, path: Path, data: bytes | None = None, *, replaced: Iterable[Path] = ()) -> None:
        """Write or replace a file durably. If `data` is None, store the file that is already at `path`.

        Whoever may read the old file, or one of the files `replaced`, may read the new file.
        """

    @abstractmethod
    def put_if_absent(self, path: Path, data: bytes) -> bool:
        """Create a small file atomically; return False if another process has created it.

        The file is not flushed: a crash of the machine may lose it.
        """

    def check_writable(  # noqa: B027 -- claims are checked in a bucket
        self, folders: Iterable[Path] = (), *, otherwise: str = ""
    ) -> None:
        """Raise `StoreError` if this process cannot write a file at this location, or in these folders."""

    def check_removable(self, folders: Iterable[Path], otherwise: str) -> None:  # noqa: B027 -- as above
        """Raise `StoreError`, beginning with `otherwise`, if files in a folder cannot be removed."""

    def check_claims(self) -> None:  # noqa: B027 -- nothing to do in a folder
        """Raise `StoreError` if two processes could both create the same file at this location."""

    @abstractmethod
    def touch(self, path: Path, mark: bytes) -> None:
        """Add a mark to a file that this process created by `put_if_absent`, unless another owns it now."""

    @abstractmethod
    def move(self, path: Path, target: Path) -> None:
        """Rename a file of the store's own to `target` durably, and replace any existing file.

        Raise `FileNotFoundError` if the file is missing, and OSError if a link leads to one of the paths.
        """

    @abstractmethod
    def delete(self, *paths: Path) -> None:
        """Delete files of the store's own, and its files in checkpoint folders, as `remove_own` does.

        Missing paths are ignored.
        """


def _owner(folder: Path) -> str:
    """Return a comma and the name of the user who owns a folder, or "" if it is unknown."""
    try:
        return f", {folder.owner()},"
    except (OSError, KeyError, NotImplementedError):
        return ""


@final
class FolderPlace(Place):
    """The location of a store in a folder, which all machines of a run can see."""

    poll_s, look_s = 0.5, 1.0
    # NFS may show an outdated folder for a short time
    lists_are_current = False

    def __init__(self, root: Path) -> None:
        if os.path.exists(root) and not os.path.isdir(root):  # noqa: PTH110, PTH112 -- never raise
            raise StoreError(f"{root}: expected the folder of a store, got a file")
        self.root, self.name, self._unfinished = root, str(root), root / "unfinished"

    @property
    def absolute_name(self) -> str:
        return str(self.root.resolve())

    def check_writable(self, folders: Iterable[Path] = (), *, otherwise: str = "") -> None:
        """Raise `StoreError` if no file can be written in the folder, or in the nearest one that exists.

        The same holds for each of `folders` that exists. `otherwise` says what is not done then, for
        other work than storing results.
        """
        within = (self._unfinished, *self._unfinished.parents)
        folder = next(each for each in within if os.path.lexists(each)).absolute()
        probe = folder / temporary_name("probe")
        try:
            probe.write_bytes(b"0" * 4096)  # a full disk has room for an empty file
            refused = (each for each in folders if each.is_dir() and not os.access(each, os.W_OK | os.X_OK))
            if (closed := next(refused, None)) is not None:
                folder = closed
                raise PermissionError(EACCES, os.strerror(EACCES))
        except OSError as error:
            is_file = os.path.isfile(folder)  # noqa: PTH113 -- never raise
            why = "is a file" if is_file else f"takes no new file ({error.strerror})"
            ways = [f"Its owner{_owner(folder)} can grant it (chmod g+rwx)"] if error.errno == EACCES else []
            if not otherwise:
                ways.append(
                    "choose another folder: --results DIR" if ways else "Choose another folder: --results DIR"
                )
            what = otherwise or "results cannot be stored here"
            raise StoreError(
                f"{self.root}: {what}, because {folder} {why}. {', or '.join(ways)}".rstrip()
            ) from None
        finally:
            with suppress(OSError):
                probe.unlink()

    def check_removable(self, folders: Iterable[Path], otherwise: str) -> None:
        for each in sorted(folders):
            if each.is_dir() and not os.access(each, os.W_OK | os.X_OK):
                raise StoreError(
                    f"{self.root}: {otherwise}, because this user may not remove files from {each}; "
                    f"its owner{_owner(each)} can grant it (chmod g+rwx)"
                )

    def get(self, path: Path) -> bytes:
        return read_regular(path)

    def put(self, path: Path, data: bytes | None = None, *, replaced: Iterable[Path] = ()) -> None:
        """Write or replace a file durably.

        The file is written in `unfinished/` and renamed to `path`. Then the file and its new name are flushed
        to disk.
        """
        if data is not None:
            with replacing(path, self._unfinished) as temporary:
                temporary.write_bytes(data)
                keep_readers(temporary, (path, *replaced))

    def put_if_absent(self, path: Path, data: bytes) -> bool:
        make_folder(path.parent)
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        try:
            write_all(descriptor, data)
        except OSError:  # an empty file would keep others from the trial until it expires
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return True

    def touch(self, path: Path, mark: bytes) -> None:
        # never follow a link, and never wait for a pipe
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            write_all(descriptor, mark)
        finally:
            os.close(descriptor)

    def move(self, path: Path, target: Path) -> None:
        for each in (path, target):
            if (link := linked_folder(self.root, each)) is not None:
                raise OSError(ELOOP, "a link leads to it", str(link))
        make_folder(target.parent)
        path.replace(target)
        for folder in {path.parent, target.parent}:
            sync(folder)

    def delete(self, *paths: Path) -> None:
        for path in paths:
            remove_own(self.root, path)


def store_time(place: Place) -> float:
    """Return the current time by the clock that sets the times of files.

    It is the time of a new file. The time is from the clock of a file server, a bucket or this machine.
    """
    probe = place.root / "unfinished" / temporary_name("now")
    place.put(probe, b"")
    place.fetch(probe)
    try:
        return probe.stat().st_mtime
    finally:
        place.delete(probe)


@contextmanager
def keeping_marker(place: Place) -> Iterator[str]:
    """Keep an empty file at a location within this context, and yield its name for `has_marker`."""
    marker = place.root / "unfinished" / temporary_name("seen")
    place.put(marker, b"")
    try:
        yield marker.name
    finally:
        place.delete(marker)


def has_marker(place: Place, name: str) -> bool:
    """Return whether this process sees the file that another one keeps at a location."""
    marker = place.root / "unfinished" / name
    place.fetch(marker)
    return marker.exists()


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_BUCKET: Final = re.compile(r"(?:s3|gs|az)://[^/?#\s]+((?:/[^/?#\s]+)*)/?")
_EXPECTED: Final = "expected a folder, or s3://, gs:// or az:// with a bucket"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_TRIAL: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_COMPACTED: Final = "compacted-"
DATA_ENDING: Final = ".parquet"
_GROUP: Final = "group-"
_TIME_OF_MERGE: Final = re.compile(rf"{_COMPACTED}([0-9a-f]{{16}})-")


class Layout:
    """The paths of all files and folders of a store.

    Datasets contain only Parquet files, since some readers take every file of a folder for data. So
    unfinished files are in `unfinished`, on the same file system. A study's folder is not called
    `study=NAME`, because the files have a column `study`, and pandas rejects a column that also comes from
    the folder.
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
        self.folders_of_files = (self.weights_folder, self.final_checkpoints_folder, self.checkpoints_folder)
        """The folders with the files of trials besides their rows."""

    def __reduce__(self) -> tuple[type[Layout], tuple[Place]]:
        return Layout, (self.place,)

    def lease(self, trial: str, attempt: int) -> Path:
        """Return the lease file of an attempt at a trial."""
        return self.leases / f"{validate_trial_id(trial)}-{attempt}"

    def study(self, name: str) -> Path:
        """Return the file of a study's record; raise `StoreError` for an invalid name."""
        return self.studies / f"{validate_study_name(name)}.json"

    def final_checkpoint(self, trial: str) -> Path:
        """Return the file with the last state of a trial's training."""
        return self.final_checkpoints_folder / f"{validate_trial_id(trial)}.pt"

    def checkpoints(self, trial: str) -> Path:
        """Return the folder of a trial's checkpoints."""
        return self.checkpoints_folder / validate_trial_id(trial)

    def weights(self, trial: str) -> Path:
        """Return the file of a trial's trained weights."""
        return self.weights_folder / f"{validate_trial_id(trial)}.safetensors"

    def kept_files(self) -> list[Path]:
        """Return the weights and the last states that are stored, without unfinished files."""
        weights = entries(self.weights_folder, ".safetensors")
        found = [*weights, *entries(self.final_checkpoints_folder, ".pt")]
        return [path for path in found if not path.name.startswith(".")]

    def partitions(self, dataset: str, studies: Collection[str] | None = None) -> tuple[Path, ...]:
        """Return a dataset's folders, one for each study, sorted by name.

        By default, these are all studies. A dataset holds rows of one kind, such as `trials` or `metrics`.
        """
        for folder in [dataset] if studies is None else [f"{dataset}/{study}" for study in studies]:
            self.place.list(self.root / folder, contents=True)
        found = [path for path in entries(self.root / dataset) if path.is_dir()]
        return tuple(path for path in found if studies is None or path.name in studies)

    def check_writable(self, study: str, *, otherwise: str = "") -> None:
        """Raise `StoreError` if this process cannot write into one of the folders that a study uses.

        `otherwise` says what is not done then, for other work than storing results.
        """
        self.place.check_writable(otherwise=otherwise)  # before its folders are listed
        own = [partition for each in DATASETS for partition in self.partitions(each, [study])]
        kept = (self.studies, self.leases, self.checkpoints_folder, self.weights_folder)
        folders = [*own, *(self.root / each for each in DATASETS), *kept]
        self.place.check_writable(folders, otherwise=otherwise)

    def attempt_file(self, dataset: str, study: str, trial: str, attempt: int) -> Path:
        """Return the file with the rows of one attempt in a dataset."""
        return self.group_file(dataset, study, f"{validate_trial_id(trial)}-{attempt}.parquet")

    def group_file(self, dataset: str, study: str, name: str) -> Path:
        """Return the file called `name` in a study's folder of a dataset.

        It holds attempts that the study wrote together. This file has the same name in all datasets.
        """
        return self.root / dataset / validate_study_name(study) / name


def is_address(text: str) -> bool:
    """Return whether a text is an address and not a folder. An address begins with a scheme such as `s3:`."""
    return _SCHEME.match(text) is not None


def place_fault(text: str) -> str | None:
    """Return an error message if a text is neither a folder nor a valid address of a store, else None."""
    if not is_address(text):
        return None
    if (found := _BUCKET.fullmatch(text)) is None:
        return f"{_EXPECTED}, got {text!r}"
    if any(part in (".", "..") for part in found[1].split("/")):
        return f"{_EXPECTED}, without . or .. in its path, got {text!r}"
    return None


def place_within(folder: Path, text: str) -> str:
    """Return an address unchanged, and a path relative to `folder`."""
    return text if is_address(text) else str(folder / Path(text).expanduser())


def absolute_place(text: str) -> str:
    """Return an address unchanged, and the absolute path of a folder."""
    return text if is_address(text) else str(Path(text).resolve())


def new_compacted_path(partition: Path) -> Path:
    """Return a new path for the merged data of a partition.

    A partition is the folder of one study in a dataset. The name is unique, so two simultaneous compactions
    never delete each other's result. The name sorts after those of earlier compactions, even if the clock was
    set back in between.
    """
    earlier = [int(found[1], 16) for path in entries(partition) if (found := _TIME_OF_MERGE.match(path.name))]
    now = max(time.time_ns(), 1 + max(earlier, default=0))
    return partition / f"{_COMPACTED}{now:016x}-{secrets.token_hex(4)}.parquet"


def new_group_name() -> str:
    """Return a unique name for a file of attempts that are written together. Later names sort last."""
    return f"{_GROUP}{time.time_ns():016x}-{secrets.token_hex(4)}.parquet"


def data_files(partition: Path) -> tuple[Path, ...]:
    """Return a partition's data files, merged ones first, each sorted by name; none without the folder."""
    return tuple(
        sorted(entries(partition, DATA_ENDING), key=lambda path: (not is_compacted(path), path.name))
    )


def all_names(folder: Path) -> set[str]:
    """Return the names of all files and folders in a folder; empty if there is no such folder."""
    try:
        return set(os.listdir(folder))  # noqa: PTH208 -- called for every search point, and faster than paths
    except FileNotFoundError:
        return set()


def entries(folder: Path, ending: str = "") -> list[Path]:
    """Return the paths in a folder that end in `ending`, sorted.

    There are none if the folder does not exist. Unlike `Path.glob`, this function raises all other errors:
    rows that cannot be listed must not look as if they were missing.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(ending))
    except FileNotFoundError:
        return []


def is_compacted(path: PurePath) -> bool:
    """Return whether a data file was written by a compaction."""
    return path.name.startswith(_COMPACTED)


def holds_one_attempt(path: Path) -> bool:
    """Return whether a data file was written for a single attempt."""
    return not path.name.startswith((_COMPACTED, _GROUP))


def validate_study_name(study: str) -> str:
    """Return a study's name, or raise `StoreError` if it cannot name a folder."""
    if fault := study_name_fault(study):
        raise StoreError(fault)
    return study


def validate_trial_id(trial: str) -> str:
    """Return the id of a trial. Raise `StoreError` if it could lead out of the store's folders."""
    if fault := trial_id_fault(trial):
        raise StoreError(fault)
    return trial


def study_name_fault(study: str) -> str | None:
    """Return an error message if this is not a valid name of a study, else None."""
    if _NAME.fullmatch(study):
        return None
    return f"study: expected a letter or digit, then up to 99 letters, digits, '-', '_' or '.', got {study!r}"


def trial_id_fault(trial: str) -> str | None:
    """Return an error message if a trial's id is invalid, else None."""
    return None if _TRIAL.fullmatch(trial) else f"trial: expected 16 hexadecimal digits, got {trial!r}"
