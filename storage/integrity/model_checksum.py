"""The checksum of a trained model's file: a CRC-32 of all of it, at one place of its header.

A safetensors file ends with the bytes of its last tensor, so nothing can stand behind them. The checksum is
the first thing in the metadata instead, always at the same place, and is computed with zeros there. It finds
what the seal of checkpoints finds, and any program that reads safetensors reads such a file.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..errors import DamagedError
from .regular_file import read_regular

METADATA_KEY: Final = "activemem"
"""The only key of the metadata; more would be written in an order that differs from file to file."""

_LENGTH_BYTES: Final = 8
_DIGITS: Final = 8
_BLANK: Final = b"0" * _DIGITS
_START: Final = b'{"__metadata__":{"activemem":"{\\"crc32\\":\\"'
_AT: Final = _LENGTH_BYTES + len(_START)


def encode_metadata(description: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata of a model's file, with room for its checksum."""
    text = json.dumps({"crc32": _BLANK.decode(), **description}, separators=(",", ":"))
    return {METADATA_KEY: text}


def add_model_checksum(data: bytes) -> bytes:
    """Return a file whose metadata `encode_metadata` made, with its checksum."""
    assert _has_checksum(data), "the metadata of a model's file begin with room for its checksum"
    return data[:_AT] + f"{zlib.crc32(data):08x}".encode() + data[_AT + _DIGITS :]


def read_model(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return what a model's file says of itself, and all of its bytes, once they are verified.

    Raises `FileNotFoundError`, `UnreadableError`, and `DamagedError` if a byte is not as it was written.
    """
    data = read_regular(path)
    if not _has_checksum(data):
        raise DamagedError("expected a model's file, got one whose start is damaged or of another program")
    checksum = zlib.crc32(data[_AT + _DIGITS :], zlib.crc32(_BLANK, zlib.crc32(data[:_AT])))
    if data[_AT : _AT + _DIGITS] != f"{checksum:08x}".encode():
        raise DamagedError("its bytes do not match its checksum")
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    try:
        header = json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
        description = json.loads(header["__metadata__"][METADATA_KEY])
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # of whoever else has made it
        raise DamagedError("expected a model's file, got one whose header cannot be read") from error
    return description, data


def _has_checksum(data: bytes) -> bool:
    return data[_LENGTH_BYTES:_AT] == _START
