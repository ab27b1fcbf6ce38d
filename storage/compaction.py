"""Compaction: the files of a partition are merged into one, without a moment at which a row is missing.

A run merges the files of ended attempts once there are many. At its end all files are merged.
"""

import random
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import polars as pl

from .errors import UnreadableError
from .files import sync
from .parquet_file import encode
from .paths import data_files, data_names, is_compacted, is_of_one, new_compacted_path
from .place import Place
from .read import RANK, Quarantine, batches, load_partition, read_verified, scan
from .rows import MEASURED_LATER, SCHEMAS, SORT_KEYS

_MAX_TURNS: Final = 6
_FIRST_PAUSE_S: Final = 0.1

_OF_ENDED: Final = ("metrics", "outputs")
"""Datasets that are written before an attempt's row, and never changed."""

_WRITTEN_AGAIN: Final = (*MEASURED_LATER, "tuned_outputs", "taken")
"""Datasets whose files may be replaced after an attempt's row is written."""


def compact(quarantine: Quarantine, dataset: str, partition: Path) -> int:
    """Merge a partition's intact files into a new one, then remove them; return their number.

    Two simultaneous compactions leave a merged file each, with the same rows. Each checks again at its end,
    and merges both after a random pause, so that only one does. A crash in between also leaves duplicate
    rows. Readers count them once, and the next compaction merges them.
    """
    place = quarantine.layout.place

    def merge_files() -> int:
        contents = load_partition(partition, quarantine)
        if not contents or (len(contents) == 1 and is_compacted(next(iter(contents)))):
            return 0
        return _replace(place, dataset, partition, contents)

    def has_several_merged() -> bool:
        place.fetch(partition)
        return sum(map(is_compacted, data_files(partition))) > 1

    merged = merge_files()
    for turn in range(_MAX_TURNS if merged else 0):
        if not has_several_merged():
            break
        time.sleep(random.uniform(0, _FIRST_PAUSE_S * 2**turn))
        if has_several_merged():
            merged += merge_files()
    return merged


def merge_ended(quarantine: Quarantine, study: str, *, at_least: int) -> int:
    """Merge a study's files of ended attempts into a new file if there are `at_least` of them or more.

    Return how many files were merged. A run calls it while it trains, because merged files are not read
    again. An attempt has ended once its row exists: only probes are written later. So rows are merged last,
    and a crash in between leaves work for the next merge. Other processes may compact at the same time.
    """
    layout, merged = quarantine.layout, 0
    ended = {
        name
        for partition in layout.partitions("trials", [study])
        for name in data_names(partition)
        if not is_compacted(partition / name)
    }
    if len(ended) < at_least:
        return 0
    for dataset in (*_OF_ENDED, "trials"):
        for partition in layout.partitions(dataset, [study]):
            contents: dict[Path, bytes] = {}
            for name in sorted(data_names(partition) & ended):
                with suppress(FileNotFoundError):  # merged by another process
                    if (data := read_verified(partition / name, quarantine)) is not None:
                        contents[partition / name] = data
            merged += _replace(layout.place, dataset, partition, contents) if contents else 0
    return merged


def _replace(place: Place, dataset: str, partition: Path, contents: Mapping[Path, bytes]) -> int:
    """Write a merged file for these files of a partition, then remove them; return their number."""
    write_merged(place, dataset, partition, merge(dataset, contents))
    remove_merged(place, dataset, partition, contents)
    return len(contents)


def merge(dataset: str, contents: Mapping[Path, bytes]) -> pl.DataFrame:
    """Return all rows of a partition's files, sorted, in one chunk; one chunk per file would be slow."""
    found = scan(dataset, batches(contents), SCHEMAS[dataset].names()).collect().rechunk()
    frame = latest_copies(found.lazy()).drop(RANK)
    return frame.sort(SORT_KEYS[dataset], maintain_order=True).collect()


def remove_merged(place: Place, dataset: str, partition: Path, contents: Mapping[Path, bytes]) -> None:
    """Remove files of a partition whose rows are merged, except files that were written again since.

    A new file of probes takes precedence over the merged rows of the older one.
    """
    if dataset in _WRITTEN_AGAIN:
        contents = {path: data for path, data in contents.items() if _is_unchanged(place, path, data)}
    place.delete(*contents)
    sync(partition)


def _is_unchanged(place: Place, path: Path, data: bytes) -> bool:
    """Return whether a file still has the bytes that were read; merged files always do."""
    if not is_of_one(path):
        return True
    try:
        return place.get(path) == data
    except (FileNotFoundError, UnreadableError):
        return False


def write_merged(place: Place, dataset: str, partition: Path, merged: pl.DataFrame) -> None:
    """Write rows of a partition as a new merged file."""
    data = encode(merged)
    assert scan(dataset, [[data]], SCHEMAS[dataset].names()).drop(RANK).collect().equals(merged), (
        "expected to read all merged rows"
    )
    place.put(new_compacted_path(partition), data)


def latest_copies(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Keep the valid copy of each attempt if a crash has left several."""
    return frame.filter(pl.col(RANK) == pl.col(RANK).max().over("trial", "attempt"))
