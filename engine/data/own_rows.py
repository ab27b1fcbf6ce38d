"""Rows of files of the user's own, from the folder of data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...studies.catalog.own_corpora import OwnRows, own_source
from ...studies.own_data.cells import RowsError
from ...studies.own_data.rows import Row, RowKind, draw_split, iter_parts, read_part
from ..corpora import DataError, dataset_folder, read_source


def iter_own_rows(facts: OwnRows, kind: RowKind, folder: Path) -> Iterator[Row]:
    """Yield all rows, each in its split; DataError for a file that is not there, or not what it was."""
    dataset = facts.dataset
    place = dataset_folder(dataset, folder)
    for split, digests in iter_parts(facts.layout):
        data = [read_source(dataset, own_source(digest), place) for digest in digests]
        try:
            rows = read_part(facts.layout, kind, split, *data)
        except RowsError as error:
            raise DataError(f"{dataset.name}: {error}") from error
        yield from (draw_split(facts.layout, row) for row in rows)
