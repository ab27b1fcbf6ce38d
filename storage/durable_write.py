"""Durable writes: a file is there in full or not at all, whatever crashes when."""

import errno
import itertools
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import polars as pl

from .integrity.checksum import SCHEMA_KEY, add_checksum
from .integrity.recovery import add_recovery
from .paths import Layout, new_group_name
from .processes import temporary_name
from .rows import TAKEN, AttemptRows, metric_frame, output_frame, trial_frame
from .schema import SCHEMA_VERSION

STALE_AFTER_S: Final = 24 * 3600
_NO_LINKS: Final = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

_GROUP_ATTEMPTS: Final = 64
_GROUP_ROWS: Final = 8192


def encode(frame: pl.DataFrame) -> bytes:
    """Return a frame as a Parquet file with checksums of its pages, its row groups and the whole.

    Row groups have whole attempts of a frame that is sorted by them, so that damage to one costs no other. A
    single row is written without dictionaries, statistics and zstd, which would cost more than they save.
    """
    import pyarrow as pa  # noqa: PLC0415  half of the import time, which readers need not pay
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    table, single, groups = frame.to_arrow(), frame.height <= 1, _row_groups(frame)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="snappy" if single else "zstd",
        use_dictionary=not single,
        write_statistics=not single,
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        for start, stop in groups:
            writer.write_table(table.slice(start, stop - start))
        writer.add_key_value_metadata({SCHEMA_KEY: str(SCHEMA_VERSION)})
    parquet = sink.getvalue().to_pybytes()
    return add_checksum(add_recovery(parquet) if len(groups) > 1 else parquet)


@contextmanager
def replacing(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """A temporary path to write a file or a folder to, which then becomes `path` or replaces a file there.

    At the end it is flushed with its contents, then renamed, then its new name is flushed: a crash of the
    machine leaves all of it or what was there before, and cannot undo it afterwards. Until then it is in
    `folder`, by default beside `path`. An exception leaves nothing behind.
    """
    with _temporary(path, folder or path.parent) as temporary:
        yield temporary
        put_in_place(temporary, path)


@contextmanager
def _temporary(path: Path, folder: Path) -> Iterator[Path]:
    """Yield a new path in a folder for what is to become `path`; an exception leaves nothing there."""
    _make_folder(path.parent)
    _make_folder(folder)
    temporary = folder / temporary_name(path.name)
    try:
        yield temporary
    except BaseException:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        raise


def put_in_place(temporary: Path, path: Path) -> None:
    """Flush a file, or a folder with its contents, rename it to `path`, and flush the name."""
    within = temporary.rglob("*") if temporary.is_dir() else ()
    for written in (*within, temporary):
        sync(written)
    temporary.replace(path)
    sync(path.parent)


def write_durably(layout: Layout, path: Path, data: bytes) -> None:
    """Write or replace a file of a store; raises `OSError` and then leaves nothing behind."""
    with replacing(path, layout.unfinished) as temporary:
        temporary.write_bytes(data)
    layout.publish(path)


def write_once(layout: Layout, path: Path, data: bytes) -> None:
    """Write a file of a store that is not there yet, as durably; raises `FileExistsError` if it is.

    A hard link is made by one process only, on NFS as well. Where there are none, a file that another
    process writes in the same moment is replaced.
    """
    layout.publish_new(path, data)
    with _temporary(path, layout.unfinished) as temporary:
        temporary.write_bytes(data)
        sync(temporary)
        try:
            os.link(temporary, path)
        except FileExistsError:
            if temporary.stat().st_nlink == 1:  # else it is ours: NFS may answer the same request twice
                raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if path.exists():
                raise FileExistsError from error
            temporary.replace(path)
        temporary.unlink(missing_ok=True)
        sync(path.parent)


def write_group(layout: Layout, study: str, attempts: Sequence[AttemptRows]) -> None:
    """Write attempts of a study to one file of each dataset; their rows come last, all of them or none."""
    name = new_group_name()
    outputs = [output_frame(each.trial, each.outputs) for each in attempts if each.outputs]
    metrics = [metric_frame(each.trial, each.metrics) for each in attempts if each.metrics]
    rows = [trial_frame(*(each.trial for each in attempts))]
    for dataset, frames in {"outputs": outputs, "metrics": metrics, "trials": rows}.items():
        if frames:
            write_durably(layout, layout.group_file(dataset, study, name), encode(pl.concat(frames)))


def write_taken(layout: Layout, trial: str, study: str, factors: str) -> None:
    """Write that a study counts a trial of another from now on, and calls it by these factors."""
    row = {"trial": trial, "attempt": 0, "study": study, "factors": factors, "at": datetime.now(UTC)}
    path = layout.attempt_file("taken", study, trial, 0)
    write_durably(layout, path, encode(pl.DataFrame([row], schema=TAKEN)))


def sync(path: Path) -> None:
    """Make the contents of a file durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _row_groups(frame: pl.DataFrame) -> list[tuple[int, int]]:
    """Cut a frame into ranges of whole attempts, each of some attempts or, if fewer, some rows."""
    if frame.height <= 1:
        return [(0, frame.height)]
    ends = frame.select("trial", "attempt").with_row_index().group_by("trial", "attempt", maintain_order=True)
    groups, start, attempts = list[tuple[int, int]](), 0, 0
    for stop in ends.agg(end=pl.col("index").last() + 1)["end"].to_list():
        attempts += 1
        if attempts == _GROUP_ATTEMPTS or stop - start >= _GROUP_ROWS:
            groups.append((start, stop))
            start, attempts = stop, 0
    return [*groups, (start, frame.height)] if start < frame.height else groups


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, their names durable."""
    missing = list(itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents)))
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync(path.parent)
