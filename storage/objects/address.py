"""The address of a store on an object store: a scheme, a bucket, and the names before all others in it."""

import re
from pathlib import PurePath
from typing import Final

SCHEMES: Final = ("s3", "gs", "az")

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_ADDRESS: Final = re.compile(r"([a-z0-9]+)://([^/?#\s]+)((?:/[^/?#\s]+)*)/?")
_EXPECTED: Final = "expected a folder, or s3://, gs:// or az:// with a bucket"


def is_address(text: str) -> bool:
    """Whether a text begins as an address does, and can be no folder."""
    return _SCHEME.match(text) is not None


def address_fault(text: str) -> str | None:
    """Say what is wrong with an address."""
    found = _ADDRESS.fullmatch(text)
    if found is None or found[1] not in SCHEMES:
        return f"{_EXPECTED}, got {text!r}"
    if any(part in (".", "..") for part in found[3].split("/")):
        return f"{_EXPECTED} and names, got {text!r}"
    return None


def split_address(text: str) -> tuple[str, str]:
    """The bucket with its scheme, and the names before all others without slashes at the ends."""
    found = _ADDRESS.fullmatch(text)
    assert found is not None, "expected an address without faults"
    return f"{found[1]}://{found[2]}", found[3].strip("/")


def is_plain_key(key: str) -> bool:
    """Whether an object's key names a file below a folder, and cannot lead out of it."""
    parts = key.split("/")
    plain = all(part not in ("", ".", "..") and PurePath(part).name == part for part in parts)
    return plain and "\\" not in key and "\0" not in key
