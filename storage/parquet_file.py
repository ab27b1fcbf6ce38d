"""Parquet files of the store: any Parquet reader opens them, and a changed byte is always noticed.

Between its last page and its footer, where readers never look, such a file has

- a recovery block, if it has several row groups: a digest of each group's bytes, and a second footer. It
  finds the intact row groups of a damaged file. Parquet's page checksums leave out the headers of pages.
- a checksum of all its bytes, and the version of the schema. Parquet's page checksums leave out the footer,
  where a changed bit can lose a row or rename a column.
"""

import hashlib
import io
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import polars as pl

from .errors import DamagedError, ForeignError, StoreError
from .rows import READ_VERSIONS, SCHEMA_VERSION

SCHEMA_KEY: Final = "activemem.schema"

_GROUP_ATTEMPTS: Final = 64
_GROUP_ROWS: Final = 8192

_SEAL: Final = b"activemem.sealed"
_VERSION_BYTES: Final = 4
_CHECKSUM_BYTES: Final = len(_SEAL) + _VERSION_BYTES + 32
_FOOTER_END_BYTES: Final = 8  # the footer's length and b"PAR1"

_RECOVERY: Final = b"activemem.groups"
_GROUP_DIGEST_BYTES: Final = 16
_ENTRY_BYTES: Final = 8 + _GROUP_DIGEST_BYTES
_COUNT_BYTES: Final = 4 + 4  # the number of groups, and the footer's length
_RECOVERY_END_BYTES: Final = len(_RECOVERY) + 32  # and a digest of the block before the two


def encode(frame: pl.DataFrame) -> bytes:
    """Return a frame as a Parquet file with checksums of its pages, its row groups and the whole.

    The frame is sorted by attempts, and a row group has whole attempts, so that damage to one costs no other.
    A single row is written without dictionaries, statistics and zstd, which would cost more than they save.
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
    return add_checksum(_add_recovery(parquet) if len(groups) > 1 else parquet)


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


def add_checksum(parquet: bytes, version: int = SCHEMA_VERSION) -> bytes:
    """Put the checksum and the schema's version into a Parquet file."""
    cut = _footer_start(parquet)
    head = parquet[:cut] + _SEAL + version.to_bytes(_VERSION_BYTES, "little")
    return head + hashlib.sha256(head + parquet[cut:]).digest() + parquet[cut:]


def verify_checksum(data: bytes) -> None:
    """Accept a file that is intact and of a version that can be read.

    Raises `DamagedError` if any byte is not as written, `ForeignError` for Parquet that no store wrote, and
    `StoreError` for another version.
    """
    cut = _footer_start(data)
    start = cut - _CHECKSUM_BYTES
    if start < 0 or data[start : start + len(_SEAL)] != _SEAL:
        raise _missing_checksum_error(data)
    digest = hashlib.sha256(data[: cut - 32])
    digest.update(data[cut:])
    if digest.digest() != data[cut - 32 : cut]:
        raise DamagedError("its bytes do not match its checksum")
    version = int.from_bytes(data[cut - 32 - _VERSION_BYTES : cut - 32], "little")
    if version not in READ_VERSIONS:
        raise _unknown_version_error(str(version))


def _footer_start(data: bytes) -> int:
    """Return where the footer begins, or a number below zero if the end of the file makes no sense."""
    return len(data) - _FOOTER_END_BYTES - int.from_bytes(data[-_FOOTER_END_BYTES:-4], "little")


def _missing_checksum_error(data: bytes) -> StoreError:
    """Return the error for a file without a checksum: it is damaged, or this store did not write it."""
    import pyarrow as pa  # noqa: PLC0415  a tenth of a second that sound files do not cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    try:
        metadata = pq.read_metadata(io.BytesIO(data)).metadata or {}
    except (pa.ArrowException, OSError):
        return DamagedError("it is cut short or its end is altered")
    if SCHEMA_KEY.encode() not in metadata:
        return ForeignError("no store of activemem wrote it")
    version = metadata[SCHEMA_KEY.encode()].decode(errors="replace")
    if version in map(str, READ_VERSIONS):
        return DamagedError("its checksum is missing")
    return _unknown_version_error(version)


def _unknown_version_error(version: str) -> StoreError:
    expected = " or ".join(map(str, READ_VERSIONS))
    is_newer = re.fullmatch("[0-9]{1,9}", version) and int(version) > max(READ_VERSIONS)
    newer = ": a newer activemem wrote it" if is_newer else ""
    return StoreError(f"expected {SCHEMA_KEY} {expected}, got {version}{newer}")


@dataclass(frozen=True, slots=True)
class Salvaged:
    """A new file with the rows of the `intact` row groups out of `total`; no file if there are none."""

    data: bytes | None
    intact: int
    total: int


def salvage(data: bytes) -> Salvaged | None:
    """Return what is intact of a damaged file; None if it was written without a recovery block.

    Where the block itself is damaged, all groups are read, and their page checksums decide.
    """
    import pyarrow as pa  # noqa: PLC0415  as above
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    end = (_find_seal(data) or 0) - _RECOVERY_END_BYTES
    if end < _COUNT_BYTES:
        return None
    total, footer_bytes = (int.from_bytes(data[end - at : end - at + 4], "little") for at in (8, 4))
    pages = end - _COUNT_BYTES - footer_bytes - total * _ENTRY_BYTES
    digest = data[end + len(_RECOVERY) : end + _RECOVERY_END_BYTES]
    parquet, intact, start = data, list[int](), 0
    has_block = pages >= 0 and hashlib.sha256(data[pages:end]).digest() == digest
    if has_block:
        for number in range(total):
            entry = data[pages + number * _ENTRY_BYTES : pages + (number + 1) * _ENTRY_BYTES]
            stop = int.from_bytes(entry[:8], "little")
            if _group_digest(data[start:stop]) == entry[8:]:
                intact.append(number)
            start = stop
        if not intact:
            return Salvaged(None, 0, total)
        parquet = data[:pages] + data[pages + total * _ENTRY_BYTES : end - _COUNT_BYTES]
    elif data[end : end + len(_RECOVERY)] != _RECOVERY:
        return None
    try:
        with pq.ParquetFile(io.BytesIO(parquet), page_checksum_verification=True) as file:
            if not has_block:
                total = file.metadata.num_row_groups
                intact = list(range(total))
            frame = pl.from_arrow(file.read_row_groups(intact))
    except (pa.ArrowException, OSError):  # damaged in more than one place
        return None
    assert isinstance(frame, pl.DataFrame), "expected a table to become a frame"
    return Salvaged(encode(frame), len(intact), total)


def _find_seal(data: bytes) -> int | None:
    """Return where the checksum begins in a file with one damaged place; None if it has none."""
    start = _footer_start(data) - _CHECKSUM_BYTES
    if start >= 0 and data[start : start + len(_SEAL)] == _SEAL:
        return start
    found = data.rfind(_SEAL)
    return found if found >= 0 else start if start >= 0 else None


def _add_recovery(parquet: bytes) -> bytes:
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    metadata, cut = pq.read_metadata(io.BytesIO(parquet)), _footer_start(parquet)
    starts: list[int] = []
    for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
        columns = [group.column(index) for index in range(group.num_columns)]
        pages = [each.dictionary_page_offset or each.data_page_offset for each in columns]
        starts.append(min(pages))
    entries = b"".join(
        end.to_bytes(8, "little") + _group_digest(parquet[start:end])
        for start, end in pairwise([0, *starts[1:], cut])
    )
    footer = parquet[cut:]
    block = entries + footer + len(starts).to_bytes(4, "little") + len(footer).to_bytes(4, "little")
    return parquet[:cut] + block + _RECOVERY + hashlib.sha256(block).digest() + footer


def _group_digest(pages: bytes) -> bytes:
    return hashlib.sha256(pages).digest()[:_GROUP_DIGEST_BYTES]
