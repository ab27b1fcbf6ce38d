"""Copying what is stored of a trial to another trial, which then has it as its outcome."""

import polars as pl

from ..compaction import merge
from ..durable_write import encode, write_durably, write_once
from ..integrity.quarantine import Quarantine
from ..integrity.regular_file import read_regular
from ..leases import Lease, Leases
from ..paths import Layout
from ..read import load_partition
from ..schema import SCHEMAS


def copy_attempt(
    layout: Layout,
    quarantine: Quarantine,
    leases: Leases,
    *,
    study: str,
    source: tuple[str, int],
    target: tuple[str, int],
) -> bool:
    """Copy all rows of an attempt of a study, and kept weights, to an attempt at another trial.

    Nothing is copied, and False returned, where somebody trains the other trial or has done so. The row of
    the trial comes last, as in any attempt: done again after a crash, it goes on.
    """
    claimed = leases.claim(*target)
    if not isinstance(claimed, Lease):
        return False
    trial, attempt = claimed.trial, claimed.attempt
    _copy_weights(layout, source[0], trial)
    for dataset in (*(each for each in SCHEMAS if each != "trials"), "trials"):
        rows = _rows_of(layout, quarantine, dataset, study, source)
        if len(rows):
            renamed = rows.with_columns(trial=pl.lit(trial), attempt=pl.lit(attempt, rows["attempt"].dtype))
            path = layout.attempt_file(dataset, study, trial, attempt)
            (write_once if dataset == "trials" else write_durably)(layout, path, encode(renamed))
    claimed.end()
    return True


def _rows_of(
    layout: Layout, quarantine: Quarantine, dataset: str, study: str, attempt: tuple[str, int]
) -> pl.DataFrame:
    parts = layout.partitions(dataset, [study])
    rows = merge(dataset, load_partition(parts[0], quarantine) if parts else {})
    return rows.filter(trial=attempt[0], attempt=attempt[1])


def _copy_weights(layout: Layout, source: str, target: str) -> None:
    path = layout.weights(source)
    layout.pull_file(path)
    if path.is_file():
        write_durably(layout, layout.weights(target), read_regular(path))
