"""Files of the user's own, kept in the folder of data under their SHA-256, where every trial finds them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ...storage.durable_write import replacing
from ..core.locks import locked
from .files import DataError, file_digest


def keep_files(files: Mapping[str, Path], place: Path) -> None:
    """Copy files, given by the SHA-256 of their content, to a folder, unless they are there already.

    Raises DataError for a file that is no longer what it was when the study was read.
    """
    for sha256, path in files.items():
        kept = place / sha256
        if kept.is_file():
            continue
        try:
            with locked(kept), replacing(kept) as temporary:
                shutil.copyfile(path, temporary)
                _compare(temporary, sha256, path)
        except OSError as error:
            raise DataError(f"{path} cannot be copied to {place}: {error}") from error


def _compare(copy: Path, sha256: str, path: Path) -> None:
    """Raise DataError if a copy has another content."""
    expected = f"sha256:{sha256}"
    if (got := file_digest(copy, expected)) != expected:
        raise DataError(f"{path} has changed since the study was read: expected {expected}, got {got}")
