"""Limits on the files that a study names: only regular files, and none so large that it fills the memory."""

from __future__ import annotations

import os
from pathlib import Path

from ...storage.errors import UnreadableError
from ...storage.integrity.regular_file import open_regular
from ..catalog.datasets import CorpusError

MAX_DATA_VARIABLE = "ACTIVEMEM_MAX_DATA_GB"
"""The variable of the environment that raises the limit."""

_DEFAULT_GB = 1.0
_GB = 10**9


def max_bytes() -> int:
    """Return the most bytes that a file of the user, or its rows once unpacked, may have."""
    given = os.environ.get(MAX_DATA_VARIABLE, "").strip()
    try:
        size = float(given) if given else _DEFAULT_GB
        if not 0 < size < 10**6:
            raise ValueError
    except ValueError:
        raise CorpusError(
            f"{MAX_DATA_VARIABLE}: expected a number of gigabytes, got {given[:40]!r}"
        ) from None
    return int(size * _GB)


def too_large(what: str) -> str:
    """Say that something is larger than the limit, and how to raise it."""
    size = max_bytes() / _GB
    remedy = f"raise the limit, as in {MAX_DATA_VARIABLE}=8"
    return f"expected at most {size:g} GB, and {what} take more: {remedy}"


def read_limited(path: Path) -> bytes:
    """Return the bytes of a regular file of at most `max_bytes()`.

    Raises CorpusError for anything else, such as a device, a pipe or a folder, without reading it.
    """
    limit = max_bytes()
    try:
        with open_regular(path) as file:
            data = b"" if os.fstat(file.fileno()).st_size > limit else file.read(limit + 1)
            if len(data) > limit or os.fstat(file.fileno()).st_size > limit:
                raise CorpusError(f"{path}: {too_large('its bytes')}")
            return data
    except FileNotFoundError as error:
        raise CorpusError(f"{path}: expected a file, got none") from error
    except UnreadableError as error:
        raise CorpusError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CorpusError(f"{path}: expected a file: {reason}") from error
