"""Compaction: the files of a partition become one, with no moment at which a row is missing."""

from pathlib import Path

import polars as pl

from .aside import Aside
from .layout import Layout, compacted, is_compacted
from .read import RANK, batches, load, scan
from .schema import ORDERS, SCHEMAS
from .write import encode, sync_folder, write_durably


def compact(layout: Layout, aside: Aside, dataset: str, partition: Path) -> int:
    """Merge a partition's sound files into a new one, then remove them; return how many they were.

    A crash in between leaves rows twice; readers count them once, and the next compaction mends it.
    """
    contents = load(partition, aside)
    if not contents or (len(contents) == 1 and is_compacted(next(iter(contents)))):
        return 0
    names = SCHEMAS[dataset].names()
    frame = latest_copies(scan(dataset, batches(contents), names)).drop(RANK)
    merged = frame.sort(ORDERS[dataset], maintain_order=True).collect()
    data = encode(merged)
    assert scan(dataset, [[data]], names).drop(RANK).collect().equals(merged), (
        "expected to read what was merged"
    )
    write_durably(layout, compacted(partition), data)
    for path in contents:
        path.unlink(missing_ok=True)
    sync_folder(partition)
    return len(contents)


def latest_copies(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Keep the copy of each attempt that counts, where a crash has left several."""
    return frame.filter(pl.col(RANK) == pl.col(RANK).max().over("trial", "attempt"))
