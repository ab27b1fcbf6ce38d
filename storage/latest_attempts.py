"""The valid attempt of each trial.

It is the latest one with the status done or, if none is done, the latest one. So a trial that is done stays
done, even if a later attempt fails. An attempt with damaged metrics counts as incomplete, not done. While a
store grows, `LatestAttempts` reads each new file once.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import polars as pl

from .place import DATA_ENDING, all_names, entries, is_compacted
from .read import RANK, Quarantine, batches, latest_copies, read, read_verified, scan
from .rows import MEASURED_LATER, TRIALS, check_stored_rows

DONE: Final = "done"
INCOMPLETE: Final = "incomplete"
"""The status of a done or pruned attempt whose metrics are damaged or missing."""

INCOMPLETE_REASON: Final = "its metrics are damaged or missing"
_MEASURED: Final = (DONE, "pruned")
_KEYS: Final = ("trial", "attempt")


def read_latest(quarantine: Quarantine, columns: Sequence[str]) -> pl.DataFrame:
    """Return these columns of each trial's valid attempt, sorted by trial.

    The valid attempt is the latest that is done or, if none is done, the latest. If metrics of a study were
    damaged, the study's attempts that have no metrics are incomplete.
    """
    needed = list(dict.fromkeys([*columns, *_KEYS, "study", "status", "reason", "epochs"]))
    rows = read(quarantine, "trials", needed)
    if studies := _studies_with_damaged_metrics(quarantine):
        measured = read(quarantine, "metrics", _KEYS, studies).select(_KEYS).unique()
        rows = rows.join(measured.with_columns(_measured=pl.lit(value=True)), on=_KEYS, how="left")
        trained = pl.col("status").is_in(_MEASURED) & (pl.col("epochs") > 0)
        lacks_metrics = pl.col("study").is_in(list(studies)) & trained & pl.col("_measured").is_null()
        rows = rows.with_columns(
            status=pl.when(lacks_metrics).then(pl.lit(INCOMPLETE)).otherwise("status"),
            reason=pl.when(lacks_metrics).then(pl.lit(INCOMPLETE_REASON)).otherwise("reason"),
        ).drop("_measured")
    found = rows.collect()
    if found["trial"].n_unique() < len(found):
        order = ("trial", pl.col("status") == DONE, "attempt", RANK)
        places = found.select("trial", "status", "attempt", RANK).with_row_index("row").sort(*order)
        found = found[places.unique("trial", keep="last")["row"].sort()]
    if not found["trial"].is_sorted():  # the rows of a single merged file are sorted already
        found = found.sort("trial")
    return found.select(columns)


def last_numbers(quarantine: Quarantine) -> dict[str, int]:
    """Return the number of each trial's last attempt, valid or not."""
    rows = read(quarantine, "trials", ["trial", "attempt"])
    return dict(rows.group_by("trial").agg(pl.col("attempt").max()).collect().iter_rows())


def with_probes(quarantine: Quarantine, trials: pl.DataFrame, names: Collection[str]) -> pl.DataFrame:
    """Add the values of these probes to the column `metrics` of `trials`."""
    keys, columns = ["trial", "attempt"], ["trial", "attempt", "name", "value"]
    datasets = (latest_copies(read(quarantine, dataset, columns)) for dataset in MEASURED_LATER)
    wanted = pl.concat(datasets).filter(pl.col("name").is_in(list(names))).sort("name")
    by_attempt = wanted.group_by(keys, maintain_order=True).agg(probes=pl.struct("name", "value")).collect()
    if by_attempt.is_empty():  # so that nothing is copied
        return trials
    both = pl.col("metrics").list.concat(pl.col("probes"))
    joined = trials.join(by_attempt, on=keys, how="left", maintain_order="left")
    return joined.with_columns(metrics=pl.coalesce(both, pl.col("metrics"))).drop("probes")


def with_adopters(quarantine: Quarantine, trials: pl.DataFrame) -> pl.DataFrame:
    """Add a column with the studies that have adopted a trial's result.

    The column is `taken`. It is null if there are none.
    """
    rows = read_adopted(quarantine)
    takers = rows.group_by("trial", maintain_order=True).agg(taken=pl.struct("study", "factors", "at"))
    return trials.join(takers, on="trial", how="left", maintain_order="left") if len(takers) else trials


def read_adopted(quarantine: Quarantine, studies: Collection[str] | None = None) -> pl.DataFrame:
    """Return the trials that these studies (by default all) have adopted.

    The trials belong to other studies. The columns are trial, study, factors and at, the time of the
    adoption.
    """
    rows = read(quarantine, "taken", ["trial", "study", "factors", "at"], studies)
    return rows.unique(["trial", "study"]).drop(RANK).sort("study", "at", "trial").collect()


def _studies_with_damaged_metrics(quarantine: Quarantine) -> set[str]:
    """Return the names of the studies that have a damaged or unreadable metrics file.

    A folder or pipe in place of a metrics file is not moved to quarantine, so each session must find it
    before it reads metrics.
    """
    layout = quarantine.layout
    unread = [fault.path.parent for fault in quarantine.faults]
    for partition in entries(layout.root / "metrics"):
        with (
            # most file systems give scandir the kind of each entry, without another request
            suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(partition) as found,
        ):
            if any(each.name.endswith(DATA_ENDING) and not each.is_file() for each in found):
                unread.append(partition)
    layout.place.list(layout.quarantine / "metrics")
    moved = entries(layout.quarantine / "metrics") if layout.quarantine.is_dir() else []
    return {folder.name for folder in (*unread, *moved) if folder.parent.name == "metrics"}


class LatestAttempts(Mapping[str, Mapping[str, Any]]):
    """A mapping from each trial to the row of its valid attempt.

    It is as of the last `refresh`. `columns` include trial, attempt, study, status and reason.
    """

    def __init__(self, quarantine: Quarantine, columns: Sequence[str]) -> None:
        self._quarantine, self._columns = quarantine, columns
        now = read_latest(quarantine, [*_KEYS, "status"])  # a row that is stored later always has its metrics
        self._incomplete = set(now.filter(status=INCOMPLETE).select(_KEYS).iter_rows())
        self._known: dict[Path, set[str]] = {}  # the names of the files that were read, by folder
        self._listed: dict[Path, set[str]] = {}  # all names in the last listing, by folder
        self._rows: dict[str, dict[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        self._arrivals: list[str] = []

    def refresh(self) -> None:
        """Read the files that were added to the store since the last call.

        A compaction may remove a file before it is read, and a listing may miss the merged file that replaces
        it. So a folder that has changed is listed again until its list of names stays the same. Only names
        are compared, because a search refreshes often.
        """
        for partition in self._quarantine.layout.partitions("trials"):
            known, names = self._known.setdefault(partition, set()), all_names(partition)
            while names != self._listed.get(partition):
                self._listed[partition] = names
                paths = (partition / name for name in names - known if name.endswith(DATA_ENDING))
                self._read(sorted(paths, key=lambda path: (not is_compacted(path), path.name)), known)
                names = all_names(partition)

    def since(self, count: int) -> list[str]:
        """Return the trials whose valid attempts were read after the first `count`, in order of reading."""
        return self._arrivals[count:]

    def last_number(self, trial: str) -> int:
        """Return the number of a trial's last attempt, valid or not; -1 if there is no attempt."""
        return self._numbers.get(trial, -1)

    def frame(self, trials: Iterable[str]) -> pl.DataFrame:
        """Return a frame with the rows of these trials; a trial without a row is left out."""
        schema = {name: TRIALS[name] for name in self._columns}
        return pl.DataFrame([self._rows[trial] for trial in trials if trial in self._rows], schema=schema)

    def trials(self) -> pl.DataFrame:
        """Return a frame with the rows of all trials, as `Store.trials` does.

        It has only the columns of this object.
        """
        return with_adopters(self._quarantine, self.frame(sorted(self._rows)))

    def _read(self, paths: Sequence[Path], known: set[str]) -> None:
        """Add the rows in these files of a study; skip files that no longer exist.

        `paths` lists merged files first.
        """
        contents: dict[Path, bytes] = {}
        for path in paths:
            try:
                data = read_verified(path, self._quarantine)
            except FileNotFoundError:
                continue
            known.add(path.name)
            if data is not None:
                contents[path] = data
        for batch in batches(contents):
            rows = scan("trials", [batch], self._columns).drop(RANK).collect()
            check_stored_rows(self._quarantine.layout, rows)
            for row in rows.iter_rows(named=True):
                self._add(row)

    def _add(self, row: dict[str, Any]) -> None:
        trial, known = row["trial"], self._rows.get(row["trial"])
        if (trial, row["attempt"]) in self._incomplete:
            row |= {"status": INCOMPLETE, "reason": INCOMPLETE_REASON}
        self._numbers[trial] = max(row["attempt"], self.last_number(trial))
        if known is None or _validity_key(known) < _validity_key(row):
            self._arrivals.append(trial)
        # another copy of the same attempt also replaces the row
        if known is None or _validity_key(known) <= _validity_key(row):
            self._rows[trial] = row

    def __getitem__(self, trial: str) -> Mapping[str, Any]:
        return self._rows[trial]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _validity_key(row: Mapping[str, Any]) -> tuple[bool, int]:
    return row["status"] == DONE, row["attempt"]
