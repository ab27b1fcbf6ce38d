"""Salvage: of a merged file that is damaged, the intact row groups become a file of their own."""

import io
from dataclasses import dataclass

import polars as pl

from .durable_write import encode
from .integrity.recovery import recover


@dataclass(frozen=True, slots=True)
class Salvaged:
    """A new file with the rows of the `intact` row groups out of `total`; no file if there are none."""

    data: bytes | None
    intact: int
    total: int


def salvage(data: bytes) -> Salvaged | None:
    """Return what is intact of a damaged file; nothing if it has no record of its row groups."""
    found = recover(data)
    if found is None:
        return None
    if not found.intact:
        return Salvaged(None, 0, found.total)
    import pyarrow as pa  # noqa: PLC0415  a tenth of a second that sound files do not cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    try:
        with pq.ParquetFile(io.BytesIO(found.parquet), page_checksum_verification=True) as file:
            frame = pl.from_arrow(file.read_row_groups(list(found.intact)))
    except (pa.ArrowException, OSError):  # damaged in more than one place
        return None
    assert isinstance(frame, pl.DataFrame), "expected a table to become a frame"
    return Salvaged(encode(frame), len(found.intact), found.total)
