"""Making bytes durable: a file is there in full or not at all, whatever dies when."""

import itertools
import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .checksum import SCHEMA_KEY, add_checksum
from .paths import Layout, entries
from .schema import SCHEMA_VERSION

if TYPE_CHECKING:
    import polars as pl

STALE_AFTER_S: Final = 24 * 3600


def encode(frame: "pl.DataFrame") -> bytes:
    """Return a frame as a sealed Parquet file with page checksums.

    A single row goes without dictionaries, statistics and zstd, which would cost more than they save.
    """
    import pyarrow as pa  # noqa: PLC0415  half of the import time, which readers need not pay
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    table, single = frame.to_arrow(), frame.height <= 1
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
        writer.write_table(table)
        writer.add_key_value_metadata({SCHEMA_KEY: str(SCHEMA_VERSION)})
    return add_checksum(sink.getvalue().to_pybytes())


def write_durably(layout: Layout, path: Path, data: bytes) -> None:
    """Write a file that replaces any of its name; when this returns, a crash of the machine cannot undo it.

    It is written in full elsewhere and flushed, then renamed, then its new name is flushed. Raises `OSError`
    and leaves nothing behind.
    """
    _make_folder(path.parent)
    _make_folder(layout.unfinished)
    temporary = layout.unfinished / f"{path.name}.{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_stale_files(layout: Layout) -> None:
    """Remove what writers that died have left unfinished for a day."""
    oldest = time.time() - STALE_AFTER_S
    for path in entries(layout.unfinished):
        try:
            if path.stat().st_mtime < oldest:
                path.unlink()
        except FileNotFoundError:
            continue  # finished or swept by another process meanwhile


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, their names durable."""
    missing = list(itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents)))
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)
