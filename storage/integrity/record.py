"""Records: small JSON objects with a checksum and a schema, written and read by one function each.

Study records, the trial of a checkpoint, the notes beside it and the headers of leases are records. Records
of earlier releases have no checksum, but must still fit their schema.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import DamagedError

_CHECKSUM: Final = re.compile(rb'\{\s*"checksum": "([0-9a-f]{64})"')
_EMPTY: Final = re.compile(rb'\{\s*"checksum": "')
_SHOWN_FAULTS: Final = 3

_Schema = TypeVar("_Schema", bound="Record")


class Record(BaseModel):
    """The schema of a record: keys that it does not name are faults."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, frozen=True, extra="forbid")

    checksum: str = ""


def encode_record(values: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return values as JSON with a line end, whose first key is a SHA-256 of all its other bytes."""
    data = json.dumps({"checksum": "", **values}, indent=indent).encode() + b"\n"
    found = _EMPTY.match(data)
    assert found is not None, "the checksum is the first key"
    before, after = data[: found.end()], data[found.end() :]
    return before + _digest(before + after) + after


def decode_record(data: bytes, schema: type[_Schema]) -> _Schema:
    """Return the record that `encode_record` wrote; raises `DamagedError` that says what does not fit."""
    sealed = _CHECKSUM.match(data)
    if sealed is not None and sealed[1] != _digest(data[: sealed.start(1)] + data[sealed.end(1) :]):
        raise DamagedError("its bytes do not match its checksum")
    try:
        found = schema.model_validate_json(data)
    except ValidationError as error:
        raise DamagedError(_describe(error)) from None
    if sealed is None and found.checksum:
        raise DamagedError("its checksum is not where it was written")
    return found


def _describe(error: ValidationError) -> str:
    """Return the first faults of a record, each with its key."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'record'}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    more = f"; and {len(faults) - _SHOWN_FAULTS} more" if len(faults) > _SHOWN_FAULTS else ""
    return "; ".join(faults[:_SHOWN_FAULTS]) + more


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
