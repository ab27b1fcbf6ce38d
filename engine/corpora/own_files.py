"""The user's own files, copied to the data folder under their SHA-256, where every trial finds them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...storage.files import replacing
from ...studies.catalog.own_corpora import OwnRows, own_source
from ...studies.own_data.cells import RowsError
from ...studies.own_data.rows import Row, RowKind, draw_split, iter_parts, read_part
from .files import DataError, dataset_folder, file_digest, locked, read_source


def keep_files(files: Mapping[str, Path], place: Path) -> None:
    """Copy files to a folder, named by the SHA-256 of their content, unless they are already there.

    Raise DataError if a file has changed since the study was read.
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
    expected = f"sha256:{sha256}"
    if (got := file_digest(copy, expected)) != expected:
        raise DataError(f"{path} has changed since the study was read: expected {expected}, got {got}")


def iter_own_rows(facts: OwnRows, kind: RowKind, folder: Path) -> Iterator[Row]:
    """Yield all rows with their splits. Raise DataError if a file is missing or has changed."""
    dataset = facts.dataset
    place = dataset_folder(dataset, folder)
    for split, digests in iter_parts(facts.layout):
        data = [read_source(dataset, own_source(digest), place) for digest in digests]
        try:
            rows = read_part(facts.layout, kind, split, *data)
        except RowsError as error:
            raise DataError(f"{dataset.name}: {error}") from error
        yield from (draw_split(facts.layout, row) for row in rows)
