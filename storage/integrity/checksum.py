"""The checksum of a whole Parquet file, between its last page and its footer.

Parquet's page checksums leave out the footer, where a changed bit can lose a row or rename a column; this
one covers every byte. Parquet readers follow offsets and never look at it; ours check it in the one pass
that reads the file. Its format is the same in all versions of the schema.
"""

import hashlib
import io
import re
from typing import Final

from ..paths import StoreError
from ..schema import READ_VERSIONS, SCHEMA_VERSION

SCHEMA_KEY: Final = "activemem.schema"

_MAGIC: Final = b"activemem.sealed"
_VERSION_BYTES: Final = 4
_DIGEST_BYTES: Final = 32
_CHECKSUM_BYTES: Final = len(_MAGIC) + _VERSION_BYTES + _DIGEST_BYTES
_TAIL_BYTES: Final = 8  # the footer's length and b"PAR1"


class DamagedError(StoreError):
    """A file is not what was written; readers quarantine it."""


class ForeignError(StoreError):
    """A file is intact and none of a store's; readers leave it out and where it is."""


def add_checksum(parquet: bytes, version: int = SCHEMA_VERSION) -> bytes:
    """Put the checksum and the schema's version into a Parquet file."""
    cut = footer_start(parquet)
    head = parquet[:cut] + _MAGIC + version.to_bytes(_VERSION_BYTES, "little")
    return head + _digest(head, parquet[cut:]) + parquet[cut:]


def verify_checksum(data: bytes) -> None:
    """Accept a file that is intact and of a version that is read.

    Raises `DamagedError` if any byte is not as written, `ForeignError` for Parquet that no store wrote, and
    `StoreError` if the version is another.
    """
    cut = footer_start(data)
    start = cut - _CHECKSUM_BYTES
    if start < 0 or data[start : start + len(_MAGIC)] != _MAGIC:
        raise _missing_checksum_error(data)
    head, digest = data[: cut - _DIGEST_BYTES], data[cut - _DIGEST_BYTES : cut]
    if _digest(head, data[cut:]) != digest:
        raise DamagedError("its bytes do not match its checksum")
    version = int.from_bytes(head[-_VERSION_BYTES:], "little")
    if version not in READ_VERSIONS:
        raise _unknown_version_error(str(version))


def footer_start(data: bytes) -> int:
    """Return where the footer begins, or a number below zero if the end of the file makes no sense."""
    return len(data) - _TAIL_BYTES - int.from_bytes(data[-_TAIL_BYTES:-4], "little")


def find_seal(data: bytes) -> int | None:
    """Return where the checksum begins in a file with one damaged place; nothing if it has none."""
    start = footer_start(data) - _CHECKSUM_BYTES
    if start >= 0 and data[start : start + len(_MAGIC)] == _MAGIC:
        return start
    found = data.rfind(_MAGIC)
    return found if found >= 0 else start if start >= 0 else None


def _digest(head: bytes, tail: bytes) -> bytes:
    """Return the digest of a file that is given in two parts."""
    digest = hashlib.sha256(head)
    digest.update(tail)
    return digest.digest()


def _missing_checksum_error(data: bytes) -> StoreError:
    """The error for a file without a checksum: damaged, or Parquet that this store did not write."""
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
