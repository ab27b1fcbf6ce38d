"""The seal: a digest of the whole file, between its last page and its footer.

Page checksums say nothing of the footer, where a changed bit can lose a row or rename a column. The seal
covers every byte. Readers of Parquet follow offsets and never look at it; a file is checked in the one
pass that reads it. Its form stays the same in all versions of the schema.
"""

import hashlib
import io
from typing import Final

from .paths import StoreError
from .schema import SCHEMA_VERSION

SCHEMA_KEY: Final = "activemem.schema"

_MAGIC: Final = b"activemem.sealed"
_VERSION_BYTES: Final = 4
_DIGEST_BYTES: Final = 32
_SEAL_BYTES: Final = len(_MAGIC) + _VERSION_BYTES + _DIGEST_BYTES
_TAIL_BYTES: Final = 8  # the footer's length and b"PAR1"


class DamagedError(StoreError):
    """A file is not what was written; readers set it aside."""


def add_checksum(parquet: bytes, version: int = SCHEMA_VERSION) -> bytes:
    """Put the seal of a schema's version into a Parquet file."""
    cut = _footer_start(parquet)
    head = parquet[:cut] + _MAGIC + version.to_bytes(_VERSION_BYTES, "little")
    return head + _digest(head, parquet[cut:]) + parquet[cut:]


def verify_checksum(data: bytes) -> None:
    """Pass a file that is whole and of our version.

    Raises `DamagedError` if any byte is not as written, and `StoreError` if the version is not ours.
    """
    cut = _footer_start(data)
    start = cut - _SEAL_BYTES
    if start < 0 or data[start : start + len(_MAGIC)] != _MAGIC:
        raise _missing_checksum_error(data)
    head, digest = data[: cut - _DIGEST_BYTES], data[cut - _DIGEST_BYTES : cut]
    if _digest(head, data[cut:]) != digest:
        raise DamagedError("its bytes do not match its seal")
    version = int.from_bytes(head[-_VERSION_BYTES:], "little")
    if version != SCHEMA_VERSION:
        raise _unknown(str(version))


def _footer_start(data: bytes) -> int:
    """Return where the footer begins, or a number below zero if the end of the file makes no sense."""
    return len(data) - _TAIL_BYTES - int.from_bytes(data[-_TAIL_BYTES:-4], "little")


def _digest(head: bytes, tail: bytes) -> bytes:
    """Return the digest of a file that is given in two parts."""
    digest = hashlib.sha256(head)
    digest.update(tail)
    return digest.digest()


def _missing_checksum_error(data: bytes) -> StoreError:
    """Say what a file without a seal is: damaged, or Parquet that this store did not write."""
    import pyarrow as pa  # noqa: PLC0415  a tenth of a second that sound files do not cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    try:
        metadata = pq.read_metadata(io.BytesIO(data)).metadata or {}
    except (pa.ArrowException, OSError):
        return DamagedError("it is cut short or its end is altered")
    version = metadata.get(SCHEMA_KEY.encode(), b"none").decode(errors="replace")
    if version == str(SCHEMA_VERSION):
        return DamagedError("its seal is missing")
    return _unknown(version)


def _unknown(version: str) -> StoreError:
    """Make the error for a schema's version that this code does not know."""
    return StoreError(f"expected {SCHEMA_KEY} {SCHEMA_VERSION}, got {version}")
