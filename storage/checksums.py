"""Checksums of checkpoints, of trained models, and of records.

The seal of a checkpoint is a CRC-32 that follows its last byte. It detects every flipped bit and every burst
of up to 32 bits, and misses other damage once in four billion cases. Torch and zip readers search for the end
of an archive backwards and skip the seal, so `torch.load` opens a sealed checkpoint. A safetensors file ends
with the bytes of its last tensor. So the CRC-32 of a model is the first entry in the metadata of its file
instead, always at the same position. It is computed with zeros at this position. Any program that reads
safetensors can read such a file.

Records are small JSON objects with a checksum and a schema: study records, the trial of a checkpoint, the
notes next to it, and the headers of leases. Records of earlier releases have no checksum, but must still fit
their schema.
"""

import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final, TypeVar

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import DamagedError, ForeignError, StoreError, describe_faults
from .files import read_regular
from .rows import READ_VERSIONS, SCHEMA_VERSION

_MAGIC: Final = b"activemem.seal.1"
_SEAL_BYTES: Final = len(_MAGIC) + 4
_BUFFER_BYTES: Final = 1 << 16
_CHUNK_BYTES: Final = 1 << 20


@contextmanager
def sealing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file in which to write a zip archive, and append a checksum, the seal, at the end."""
    with path.open("w+b", buffering=_BUFFER_BYTES) as file:
        yield file
        file.seek(0, 2)
        file.write(_MAGIC)
        checksum = _crc32(file, file.tell())
        file.write(checksum.to_bytes(4, "little"))


def verify_seal(file: BinaryIO) -> None:
    """Verify the checksum at the end of a file (its seal). Afterwards the file is at its start.

    Raise `DamagedError` if any byte differs.
    """
    checksum = _crc32(file, max(0, file.seek(0, 2) - 4))
    expected = file.read(4)
    file.seek(max(0, file.tell() - _SEAL_BYTES))
    magic = file.read(len(_MAGIC))
    file.seek(0)
    if magic != _MAGIC:
        raise DamagedError("it is truncated or its end was changed")
    if int.from_bytes(expected, "little") != checksum:
        raise DamagedError("its bytes do not match its checksum")


def _crc32(file: BinaryIO, size: int) -> int:
    """Return the CRC-32 of the first bytes of a file, and leave the file positioned after them."""
    file.seek(0)
    checksum = 0
    while size and (chunk := file.read(min(size, _CHUNK_BYTES))):
        checksum, size = zlib.crc32(chunk, checksum), size - len(chunk)
    return checksum


METADATA_KEY: Final = "activemem"
"""The only metadata key; several would be written in varying order."""

_LENGTH_BYTES: Final = 8
_DIGITS: Final = 8
_BLANK: Final = b"0" * _DIGITS
# safetensors begins with the length of its header; then come these bytes, since there is one key whose text
# begins with the checksum
_START: Final = b'{"__metadata__":{"activemem":"{\\"crc32\\":\\"'
_AT: Final = _LENGTH_BYTES + len(_START)


def encode_metadata(description: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata of a model's file: its description, and a placeholder for the checksum."""
    text = json.dumps({"crc32": _BLANK.decode(), **description}, separators=(",", ":"))
    return {METADATA_KEY: text}


def add_model_checksum(data: bytes) -> bytes:
    """Insert the checksum into a model's file. It replaces the placeholder from `encode_metadata`."""
    assert _has_checksum(data), "a model's metadata must begin with a placeholder for the checksum"
    return data[:_AT] + f"{zlib.crc32(data):08x}".encode() + data[_AT + _DIGITS :]


def read_model(path: Path) -> tuple[dict[str, Any], bytes]:
    """Verify a model's file, and return its description and all of its bytes.

    Raise `FileNotFoundError`, `UnreadableError`, or `DamagedError` if a byte has changed.
    """
    data = read_regular(path)
    if not _has_checksum(data):
        raise DamagedError("expected a model's file; this file is damaged, or another program wrote it")
    checksum = zlib.crc32(data[_AT + _DIGITS :], zlib.crc32(_BLANK, zlib.crc32(data[:_AT])))
    if data[_AT : _AT + _DIGITS] != f"{checksum:08x}".encode():
        raise DamagedError("its bytes do not match its checksum")
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    try:
        header = json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
        description = json.loads(header["__metadata__"][METADATA_KEY])
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # another program wrote the header
        raise DamagedError("expected a model's file; the header of this file cannot be read") from error
    if not isinstance(description, dict):
        raise DamagedError("expected a model's file; its description is no JSON object")
    return description, data


def _has_checksum(data: bytes) -> bool:
    return data[_LENGTH_BYTES:_AT] == _START


_CHECKSUM: Final = re.compile(rb'\{\s*"checksum": "([0-9a-f]{64})"')
_EMPTY: Final = re.compile(rb'\{\s*"checksum": "')

_Schema = TypeVar("_Schema", bound="Record")


class Record(BaseModel):
    """Base class of the schemas of JSON records. Records with unknown keys are rejected."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, frozen=True, extra="forbid")

    checksum: str = ""


def encode_record(values: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return values as JSON with a first key `checksum`, the SHA-256 of the rest of the text."""
    data = json.dumps({"checksum": "", **values}, indent=indent).encode() + b"\n"
    found = _EMPTY.match(data)
    assert found is not None, "the checksum is the first key"
    before, after = data[: found.end()], data[found.end() :]
    return before + _digest(before + after) + after


def decode_record(data: bytes, schema: type[_Schema]) -> _Schema:
    """Parse bytes from `encode_record`. Raise `DamagedError` if the checksum or the schema does not fit."""
    sealed = _CHECKSUM.match(data)
    if sealed is not None and sealed[1] != _digest(data[: sealed.start(1)] + data[sealed.end(1) :]):
        raise DamagedError("its bytes do not match its checksum")
    try:
        found = schema.model_validate_json(data)
    except ValidationError as error:
        raise DamagedError(describe_faults(error)) from None
    if sealed is None and found.checksum:
        raise DamagedError("its checksum is in the wrong place")
    return found


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


SCHEMA_KEY: Final = "activemem.schema"

_SEAL: Final = b"activemem.sealed"
_ROW_GROUP: Final = 1 << 14  # rows that are decoded at a time, so that large columns need little memory
_VERSION_BYTES: Final = 4
_CHECKSUM_BYTES: Final = len(_SEAL) + _VERSION_BYTES + 32
_FOOTER_END_BYTES: Final = 8  # the footer's length and b"PAR1"


def encode(frame: pl.DataFrame) -> bytes:
    """Return a frame as a Parquet file with checksums.

    There is a checksum for each page, and one for the whole file. A single row is written without
    dictionaries, statistics and zstd, which would cost more than they save.
    """
    import pyarrow as pa  # noqa: PLC0415  slow to import, and only needed for writing
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
        writer.write_table(table, row_group_size=_ROW_GROUP)
        writer.add_key_value_metadata({SCHEMA_KEY: str(SCHEMA_VERSION)})
    return add_checksum(sink.getvalue().to_pybytes())


def add_checksum(parquet: bytes, version: int = SCHEMA_VERSION) -> bytes:
    """Return a Parquet file with a checksum and the version of the schema before its footer."""
    cut = _footer_start(parquet)
    head = parquet[:cut] + _SEAL + version.to_bytes(_VERSION_BYTES, "little")
    return head + hashlib.sha256(head + parquet[cut:]).digest() + parquet[cut:]


def verify_checksum(data: bytes) -> None:
    """Verify the checksum and the version of a Parquet file of the store, given its bytes.

    They must be intact and of a supported version. Raise `DamagedError` if any byte differs, `ForeignError`
    for Parquet that no store wrote, and `StoreError` for another version.
    """
    cut = _footer_start(data)
    start = cut - _CHECKSUM_BYTES
    if start < 0 or data[start : start + len(_SEAL)] != _SEAL:
        raise _missing_checksum_error(data)
    digest = hashlib.sha256(memoryview(data)[: cut - 32])
    digest.update(memoryview(data)[cut:])
    if digest.digest() != data[cut - 32 : cut]:
        raise DamagedError("its bytes do not match its checksum")
    version = int.from_bytes(data[cut - 32 - _VERSION_BYTES : cut - 32], "little")
    if version not in READ_VERSIONS:
        raise _unknown_version_error(str(version))


def _footer_start(data: bytes) -> int:
    """Return the offset of a Parquet file's footer. It is negative if the end of the file is invalid."""
    return len(data) - _FOOTER_END_BYTES - int.from_bytes(data[-_FOOTER_END_BYTES:-4], "little")


def _missing_checksum_error(data: bytes) -> StoreError:
    import pyarrow as pa  # noqa: PLC0415  0.1 s, only for damaged files
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
    expected = f"{READ_VERSIONS[0]} to {READ_VERSIONS[-1]}"
    is_newer = re.fullmatch("[0-9]{1,9}", version) and int(version) > max(READ_VERSIONS)
    newer = ": a newer activemem wrote it" if is_newer else ""
    return StoreError(f"expected {SCHEMA_KEY} {expected}, got {version}{newer}")
