"""Reading of a store's datasets, with a check of each file.

Other processes may write and compact files at the same time. A damaged file is moved to quarantine, with a
warning and a note, and never deleted. The rows in the file then count as missing, and their trials run again.
"""

import contextlib
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import polars as pl

from .checksums import verify_checksum
from .errors import DamagedError, ForeignError, StoreError, UnreadableError
from .files import read_regular
from .place import Layout, data_files, holds_one_attempt, is_compacted
from .rows import SCHEMAS

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A path that could not be read, and the reason.

    Damaged files are moved to quarantine, and `path` is where they were. Other paths are not moved.
    """

    path: Path
    reason: str
    is_damaged: bool


class Quarantine:
    """Record of the files that one session could not read.

    Damaged files are moved to quarantine. `paths` says where the files are now, and `faults` why they were
    not read. A `dry` quarantine neither moves files nor warns.
    """

    def __init__(self, layout: Layout, *, dry: bool = False) -> None:
        self.layout, self.dry = layout, dry
        self.paths: list[Path] = []
        self.faults: list[UnreadFile] = []

    def move(self, path: Path, reason: str, left: str = "its contents count as missing") -> None:
        """Move a damaged file to the quarantine folder, and warn.

        `left` is the end of the warning, which tells the consequence. In a read-only store the file stays,
        but is skipped.
        """
        name = path.relative_to(self.layout.root)
        self.faults.append(UnreadFile(path, f"{reason}; {left}", is_damaged=True))
        if self.dry:
            return
        target = self.layout.quarantine / name
        try:
            # a bucket's copies of quarantined files must be known before a name is chosen
            self.layout.place.list(target.parent)
            target = _unused_path(target)
            self.layout.place.move(path, target)
            self._note(f"{name}: {reason}")
        except FileNotFoundError:  # another process has moved the file
            pass
        except OSError as error:
            target = path
            reason = f"{reason}; it could not be moved ({os.strerror(error.errno or 0)})"
        if target not in self.paths:
            self.paths.append(target)
        _log.warning("%s is quarantined: %s; %s", name, reason, left)

    def leave(self, path: Path, reason: str) -> None:
        """Skip a path that cannot be read, and warn about it once.

        Files that no store wrote are also skipped.
        """
        if path in self.paths:
            return
        self.paths.append(path)
        self.faults.append(UnreadFile(path, reason, is_damaged=False))
        if not self.dry:
            _log.warning("%s is skipped: %s", path.relative_to(self.layout.root), reason)

    def _note(self, line: str) -> None:
        notes = self.layout.quarantine / "notes.txt"
        with contextlib.suppress(OSError):
            self.layout.place.fetch(notes)
            with notes.open("a", encoding="utf-8") as page:
                page.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}  {line}\n")
            self.layout.place.put(notes)


def _unused_path(path: Path) -> Path:
    """Return this path or, if something exists there, this path with a number added."""
    target, count = path, 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.{count}")
    return target


RANK: Final = "_rank"  # of several copies of an attempt, the one with the highest rank is valid
_MAX_TRIES: Final = 100


def read(
    quarantine: Quarantine,
    dataset: str,
    columns: Sequence[str],
    studies: Collection[str] | None = None,
) -> pl.LazyFrame:
    """Return these columns of a dataset's rows, in no particular order.

    `studies` are by default all studies. The column `RANK` is added. An attempt may have several copies; the
    one with the highest rank is valid. Raise `StoreError` for a file of an unknown schema version.
    """
    file_batches = [
        batch
        for partition in quarantine.layout.partitions(dataset, studies)
        for batch in batches(load_partition(partition, quarantine))
    ]
    return scan(dataset, file_batches, columns)


def scan(dataset: str, file_batches: Sequence[Sequence[bytes]], columns: Sequence[str]) -> pl.LazyFrame:
    """Return these columns of a dataset's rows, and the column `RANK`.

    `RANK` is the index of the batch that has the row. The files must be intact. A column that did not exist
    when a file was written is null in its rows.
    """
    schema = SCHEMAS[dataset]  # files of earlier versions lack its last columns
    empty = pl.LazyFrame(schema={**schema, RANK: pl.Int32()}).select(*columns, RANK)
    frames = [
        pl.scan_parquet(list(batch), schema=schema, missing_columns="insert").select(
            *columns, pl.lit(rank, dtype=pl.Int32).alias(RANK)
        )
        for rank, batch in enumerate(file_batches)
    ]
    return pl.concat([empty, *frames])


def batches(contents: Mapping[Path, bytes]) -> list[list[bytes]]:
    """Group the contents of a partition's files into batches.

    Batches with the oldest rows come first. No batch has two copies of one attempt.
    """
    several = [[data] for path, data in contents.items() if not holds_one_attempt(path)]
    loose = [data for path, data in contents.items() if holds_one_attempt(path)]
    return [*several, loose] if loose else several


def load_partition(partition: Path, quarantine: Quarantine) -> dict[Path, bytes]:
    """Return the contents of a partition's intact files, merged files first.

    They are as of one moment. A partition is the folder of one study in a dataset. A compaction adds the
    merged file before it removes the files that it merged. A listing during this time may have neither. So
    the partition is read again if a file has vanished or a merged one has appeared.
    """
    for _ in range(_MAX_TRIES):
        paths = data_files(partition)
        try:
            contents = {path: data for path in paths if (data := read_verified(path, quarantine)) is not None}
        except FileNotFoundError:
            continue
        if all(path in paths for path in data_files(partition) if is_compacted(path)):
            return contents
    raise StoreError(
        f"{partition}: compactions have interrupted {_MAX_TRIES} attempts to read: try again later"
    )


def read_verified(path: Path, quarantine: Quarantine) -> bytes | None:
    """Return a file's bytes, or None for a file that is damaged or that no store wrote.

    A damaged file is quarantined, and a foreign one is skipped. Raise `FileNotFoundError`, and `StoreError`
    for an unknown schema version.
    """
    try:
        data = read_regular(path)
        verify_checksum(data)
    except DamagedError as error:
        quarantine.move(path, str(error))
        return None
    except (UnreadableError, ForeignError) as error:
        quarantine.leave(path, str(error))
        return None
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error
    return data


def latest_copies(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return only the latest copy of each attempt's row.

    It has the highest rank. A crash may have left older ones.
    """
    return frame.filter(pl.col(RANK) == pl.col(RANK).max().over("trial", "attempt"))
