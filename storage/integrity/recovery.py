"""What finds the intact row groups of a damaged file: a second footer, and a digest of each group's bytes.

It stands behind the pages, before the checksum of the whole, where Parquet readers never look. Parquet's own
page checksums do not do: they leave out the headers of pages and the footer.
"""

import hashlib
import io
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from .checksum import find_seal, footer_start

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_DIGEST_BYTES: Final = 16
_ENTRY_BYTES: Final = 8 + _DIGEST_BYTES
_COUNT_BYTES: Final = 4 + 4  # the number of groups, and the footer's length
_MAGIC: Final = b"activemem.groups"
_TAIL_BYTES: Final = len(_MAGIC) + 32  # and a digest of the block before the two


@dataclass(frozen=True, slots=True)
class Recovered:
    """An ordinary Parquet file with its own pages and an intact footer; the row groups that are intact."""

    parquet: bytes
    intact: tuple[int, ...]
    total: int


def add_recovery(parquet: bytes) -> bytes:
    """Put what recovers its row groups into a Parquet file, behind its pages."""
    import pyarrow.parquet as pq  # noqa: PLC0415  half of the import time, which readers need not pay

    metadata, cut = pq.read_metadata(io.BytesIO(parquet)), footer_start(parquet)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    starts = [min(_start(group.column(index)) for index in range(group.num_columns)) for group in groups]
    entries = b"".join(
        end.to_bytes(8, "little") + _digest(parquet[start:end])
        for start, end in pairwise([0, *starts[1:], cut])
    )
    footer = parquet[cut:]
    block = entries + footer + len(starts).to_bytes(4, "little") + len(footer).to_bytes(4, "little")
    return parquet[:cut] + block + _MAGIC + hashlib.sha256(block).digest() + footer


def recover(data: bytes) -> Recovered | None:
    """Find the row groups of a damaged file that are intact; nothing if it was written without a block.

    Where the block itself is what is damaged, all groups are named, and are left to their page checksums.
    """
    end = (find_seal(data) or 0) - _TAIL_BYTES
    if end < _COUNT_BYTES:
        return None
    total, footer_bytes = (int.from_bytes(data[end - at : end - at + 4], "little") for at in (8, 4))
    pages = end - _COUNT_BYTES - footer_bytes - total * _ENTRY_BYTES
    if pages < 0 or hashlib.sha256(data[pages:end]).digest() != data[end + len(_MAGIC) : end + _TAIL_BYTES]:
        return _all_groups(data) if data[end : end + len(_MAGIC)] == _MAGIC else None
    entries = pages + total * _ENTRY_BYTES
    intact, start = list[int](), 0
    for number in range(total):
        entry = data[pages + number * _ENTRY_BYTES : pages + (number + 1) * _ENTRY_BYTES]
        stop = int.from_bytes(entry[:8], "little")
        if _digest(data[start:stop]) == entry[8:]:
            intact.append(number)
        start = stop
    return Recovered(data[:pages] + data[entries : end - _COUNT_BYTES], tuple(intact), total)


def _all_groups(data: bytes) -> Recovered | None:
    """Name all row groups of a file, if its own footer is intact."""
    import pyarrow as pa  # noqa: PLC0415  a tenth of a second that sound files do not cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    try:
        total = pq.read_metadata(io.BytesIO(data)).num_row_groups
    except (pa.ArrowException, OSError):
        return None
    return Recovered(data, tuple(range(total)), total)


def _start(column: "pq.ColumnChunkMetaData") -> int:
    """Return where the pages of a column begin."""
    dictionary = column.dictionary_page_offset
    return column.data_page_offset if dictionary is None else min(dictionary, column.data_page_offset)


def _digest(pages: bytes) -> bytes:
    return hashlib.sha256(pages).digest()[:_DIGEST_BYTES]
