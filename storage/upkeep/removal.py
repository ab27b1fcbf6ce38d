"""Forgetting trials of a study, or what is kept of them, and giving a study another name."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from ..compaction import merge, remove_merged, write_merged
from ..errors import StoreError
from ..leases import Lease, Leases
from ..paths import Layout, entries
from ..quarantine import Quarantine
from ..read import load_partition
from ..schema import SCHEMAS
from .findings import size_bytes

_ORDER: Final = ("trials", *(dataset for dataset in SCHEMAS if dataset != "trials"))
"""Rows go first: what is left of a trial after a crash is nothing that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was removed of a study, or would be: its trials, the rows of each dataset, and other files.

    `size` is that of these files, of weights, checkpoints and last states.
    """

    trials: tuple[str, ...]
    rows: Mapping[str, int]
    files: tuple[Path, ...]
    size: int


def forget(
    layout: Layout,
    quarantine: Quarantine,
    leases: Leases,
    *,
    study: str,
    trials: Collection[str],
    last_numbers: Mapping[str, int],
    dry: bool,
) -> Forgotten:
    """Remove these trials of a study with all that is kept of them; a `dry` run removes nothing.

    Files of a trial that another study has run as well stay. Done again after a crash, it goes on.
    Raises `StoreError`, and removes nothing, while somebody trains one of them.
    """
    stored = {dataset: rows_of_study(layout, quarantine, dataset, study) for dataset in _ORDER}
    wanted = pl.col("trial").is_in(list(trials))
    counts = {dataset: len(rows.filter(wanted)) for dataset, rows in stored.items()}
    elsewhere = {
        trial
        for partition in layout.partitions("trials")
        if partition.name != study
        for trial in rows_of_study(layout, quarantine, "trials", partition.name)["trial"]
    }
    files = tuple(path for path in _files(layout, sorted(set(trials) - elsewhere)) if path.exists())
    there = {trial for rows in stored.values() for trial in rows.filter(wanted)["trial"]}
    there |= {path.name.partition(".")[0] for path in files}
    found = Forgotten(
        trials=tuple(sorted(there)),
        rows={dataset: count for dataset, count in counts.items() if count},
        files=files,
        size=sum(map(size_bytes, files)),
    )
    if dry:
        return found
    with _claimed(leases, there | _with_leases(layout, trials), last_numbers):
        for dataset in _ORDER:
            if counts[dataset]:
                _rewrite(layout, quarantine, dataset, study, wanted)
        layout.place.delete(*files)
        _remove_leases(layout, there - elsewhere)
    return found


def rename(
    layout: Layout,
    quarantine: Quarantine,
    leases: Leases,
    *,
    old: str,
    new: str,
    trials: Collection[str],
    last_numbers: Mapping[str, int],
) -> None:
    """Move all rows of a study to another name.

    Until the last rows are there those before are, and rows that are twice count once: done again after a
    crash, it goes on. Raises `StoreError`, and moves nothing, while somebody trains one of these or of the
    stored trials.
    """
    stored = set(rows_of_study(layout, quarantine, "trials", old)["trial"])
    with _claimed(leases, stored | _with_leases(layout, trials), last_numbers):
        for dataset in reversed(_ORDER):
            rows = rows_of_study(layout, quarantine, dataset, old).with_columns(study=pl.lit(new))
            if len(rows):
                write_merged(layout, dataset, layout.root / dataset / new, rows)
        for dataset in _ORDER:
            _rewrite(layout, quarantine, dataset, old, pl.lit(value=True))


def rows_of_study(layout: Layout, quarantine: Quarantine, dataset: str, study: str) -> pl.DataFrame:
    """Return all rows of a study in a dataset."""
    parts = layout.partitions(dataset, [study])
    return merge(dataset, load_partition(parts[0], quarantine) if parts else {})


def _rewrite(layout: Layout, quarantine: Quarantine, dataset: str, study: str, removed: pl.Expr) -> None:
    """Merge a study's files without some rows; what a compaction merges in the same moment is done again."""
    for partition in layout.partitions(dataset, [study]):
        while contents := load_partition(partition, quarantine):
            rows = merge(dataset, contents)
            kept = rows.filter(~removed)
            if len(kept) == len(rows):
                break
            if len(kept):
                write_merged(layout, dataset, partition, kept)
            remove_merged(layout, dataset, partition, contents)


def _files(layout: Layout, trials: Iterable[str]) -> Iterator[Path]:
    layout.place.list_names(layout.weights_folder, layout.final_checkpoints_folder, layout.checkpoints_folder)
    for trial in trials:
        yield from (layout.weights(trial), layout.final_checkpoint(trial), layout.checkpoints(trial))


@contextmanager
def _claimed(leases: Leases, trials: Iterable[str], last_numbers: Mapping[str, int]) -> Iterator[None]:
    """Keep others from beginning any of these trials for the time of the context."""
    held: list[Lease] = []
    try:
        for trial in sorted(trials):
            claimed = leases.claim(trial, last_numbers.get(trial, -1) + 1)
            while not isinstance(claimed, Lease) and claimed.ended:
                claimed = leases.claim(trial, claimed.attempt + 1)
            if not isinstance(claimed, Lease):
                owner = claimed.owner
                who = f"process {owner.pid} of {owner.host} trains it"
                raise StoreError(
                    f"trial {trial}: expected nobody to train it, but {who}; stop that run, or wait for it. "
                    f"The lease of one that was lost runs out after {leases.lease_s:g} s"
                )
            held.append(claimed)
        yield
    finally:
        for lease in held:
            lease.release()


def _with_leases(layout: Layout, trials: Collection[str]) -> set[str]:
    """Return those of these trials that somebody has claimed, perhaps before anything was stored."""
    layout.place.list_names(layout.leases)
    return {path.name.rpartition("-")[0] for path in entries(layout.leases)} & set(trials)


def _remove_leases(layout: Layout, trials: Collection[str]) -> None:
    """Remove what says that earlier attempts have ended; the next has the first number again."""
    layout.place.list_names(layout.leases)
    layout.place.delete(*(path for path in entries(layout.leases) if path.name.rpartition("-")[0] in trials))
