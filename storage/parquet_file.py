"""Parquet files of the store: any Parquet reader opens them, and a changed byte is always noticed.

Between its last page and its footer, where readers never look, such a file has a checksum of all its bytes,
and the version of the schema. Parquet's page checksums leave out the headers of pages and the footer, where a
changed bit can lose a row or rename a column.
"""

import hashlib
import io
import re
from typing import Final

import polars as pl

from .errors import DamagedError, ForeignError, StoreError
from .rows import READ_VERSIONS, SCHEMA_VERSION

SCHEMA_KEY: Final = "activemem.schema"

_SEAL: Final = b"activemem.sealed"
_VERSION_BYTES: Final = 4
_CHECKSUM_BYTES: Final = len(_SEAL) + _VERSION_BYTES + 32
_FOOTER_END_BYTES: Final = 8  # the footer's length and b"PAR1"


def encode(frame: pl.DataFrame) -> bytes:
    """Return a frame as a Parquet file with checksums of its pages and of the whole.

    A single row is written without dictionaries, statistics and zstd, which would cost more than they save.
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


def add_checksum(parquet: bytes, version: int = SCHEMA_VERSION) -> bytes:
    """Put the checksum and the schema's version into a Parquet file."""
    cut = _footer_start(parquet)
    head = parquet[:cut] + _SEAL + version.to_bytes(_VERSION_BYTES, "little")
    return head + hashlib.sha256(head + parquet[cut:]).digest() + parquet[cut:]


def verify_checksum(data: bytes) -> None:
    """Verify that a file is intact and of a supported version.

    Raise `DamagedError` if any byte differs, `ForeignError` for Parquet that no store wrote, and `StoreError`
    for another version.
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
    """Return the start of the footer, or a negative number if the end of the file is invalid."""
    return len(data) - _FOOTER_END_BYTES - int.from_bytes(data[-_FOOTER_END_BYTES:-4], "little")


def _missing_checksum_error(data: bytes) -> StoreError:
    """Return the error for a file without a checksum: it is damaged, or another program wrote it."""
    import pyarrow as pa  # noqa: PLC0415  a tenth of a second that sound files do not cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    try:
        metadata = pq.read_metadata(io.BytesIO(data)).metadata or {}
    except (pa.ArrowException, OSError):
        return DamagedError("it is truncated or its end was changed")
    if SCHEMA_KEY.encode() not in metadata:
        return ForeignError("it was not written by activemem")
    version = metadata[SCHEMA_KEY.encode()].decode(errors="replace")
    if version in map(str, READ_VERSIONS):
        return DamagedError("its checksum is missing")
    return _unknown_version_error(version)


def _unknown_version_error(version: str) -> StoreError:
    expected = " or ".join(map(str, READ_VERSIONS))
    is_newer = re.fullmatch("[0-9]{1,9}", version) and int(version) > max(READ_VERSIONS)
    newer = ": a newer activemem wrote it" if is_newer else ""
    return StoreError(f"expected {SCHEMA_KEY} {expected}, got {version}{newer}")
