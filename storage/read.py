"""Reading of a store's datasets, with a check of each file, and the valid attempt of each trial.

Other processes may write and compact files at the same time. A damaged file is moved to quarantine, with a
warning and a note, and never deleted. The rows in the file then count as missing, and their trials run again.

The valid attempt is the latest one that is done or, if none is done, the latest one. So a trial that is done
stays done, even if a later attempt fails. An attempt with damaged metrics counts as incomplete, not done. For
a search, its own attempts come before those of other studies: what it has pruned or copied stays its own.
"""

import contextlib
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Final

import polars as pl

from .checksums import verify_checksum
from .errors import DamagedError, ForeignError, StoreError, UnreadableError
from .files import read_regular
from .own_files import is_own
from .place import DATA_ENDING, Layout, all_names, data_files, entries, holds_one_attempt, is_compacted
from .rows import MEASURED_LATER, SCHEMAS, SORT_KEYS, TRIALS, content_fault

_log = logging.getLogger(__name__)


class Quarantine:
    """Record of the files that one session could not read.

    Damaged files are moved to quarantine. `unread` says where the files were, and `paths` where they are now.
    A `dry` quarantine neither moves files nor warns.
    """

    def __init__(self, layout: Layout, *, dry: bool = False) -> None:
        self.layout, self.dry = layout, dry
        self.paths: list[Path] = []
        self.unread: list[Path] = []
        self._is_restored = False

    def move(self, path: Path, reason: str, left: str = "its contents count as missing") -> None:
        """Move a damaged file to the quarantine folder, and warn.

        `left` is the end of the warning, which states the consequence. In a read-only store the file stays,
        but is skipped.
        """
        name = path.relative_to(self.layout.root)
        if not is_own(name.as_posix()):
            self.leave(path, f"{reason}, and no store has a file of this name")
            return
        self.unread.append(path)
        if self.dry:
            return
        target = self.layout.quarantine / name
        try:
            # a bucket's copies of quarantined files must be known before a name is chosen
            self.layout.place.list(target.parent)
            target = _unused_path(target)
            self.layout.place.move(path, target)
            self._note(f"{name}: {reason}")
        except FileNotFoundError:  # another process has moved the file
            pass
        except OSError as error:
            target = path
            reason = f"{reason}; it could not be moved ({error.strerror})"
        if target not in self.paths:
            self.paths.append(target)
        _log.warning("%s is quarantined: %s; %s", name, reason, left)

    def restore_intact(self) -> None:
        """Move files back that are intact now, once for this object.

        Another program was still copying them into the store when they were moved here.
        """
        layout = self.layout
        if self.dry or self._is_restored:
            return
        self._is_restored = True
        for path in (path for name in SCHEMAS for path in layout.quarantine.glob(f"{name}/*/*{DATA_ENDING}")):
            target = layout.root / path.relative_to(layout.quarantine)
            with contextlib.suppress(OSError, StoreError):  # it is damaged, or the store is read-only
                verify_checksum(read_regular(path))
                if not target.exists():
                    layout.place.move(path, target)
                    self._note(f"{target.relative_to(layout.root)}: it is intact now, and back in its place")

    def leave(self, path: Path, reason: str) -> None:
        """Skip a path that cannot be read or that no store wrote, and warn about it once."""
        if path in self.paths:
            return
        self.paths.append(path)
        self.unread.append(path)
        if not self.dry:
            _log.warning("%s is skipped: %s", path.relative_to(self.layout.root), reason)

    def _note(self, line: str) -> None:
        notes = self.layout.quarantine / "notes.txt"
        with contextlib.suppress(OSError):
            self.layout.place.fetch(notes)
            if not notes.is_symlink():
                with notes.open("a", encoding="utf-8") as page:
                    page.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}  {line}\n")
                self.layout.place.put(notes)


def _unused_path(path: Path) -> Path:
    target, count = path, 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.{count}")
    return target


RANK: Final = "_rank"  # of several copies of an attempt, the one with the highest rank is valid
_MAX_TRIES: Final = 100


def read(
    quarantine: Quarantine,
    dataset: str,
    columns: Sequence[str],
    studies: Collection[str] | None = None,
) -> pl.LazyFrame:
    """Return these columns of a dataset's rows, in no particular order.

    `studies` are by default all studies. The column `RANK` is added. An attempt may have several copies; the
    one with the highest rank is valid. Raise `StoreError` for a file of an unknown schema version.
    """
    contents = _read_partitions(quarantine, dataset, studies)
    return scan(dataset, [batch for each in contents for batch in batches(each)], columns)


def _read_partitions(
    quarantine: Quarantine, dataset: str, studies: Collection[str] | None
) -> list[dict[Path, bytes]]:
    partitions = list(quarantine.layout.partitions(dataset, studies))
    _check_together(dataset, partitions)
    return [load_partition(each, quarantine) for each in partitions]


def read_attempts(
    quarantine: Quarantine,
    datasets: Sequence[str],
    attempts: pl.LazyFrame,
    studies: Collection[str] | None = None,
    kept: pl.Expr | None = None,
) -> pl.LazyFrame:
    """Return the sorted rows of attempts in datasets of one schema, without the column `study`.

    Rows that are not `kept` are left out while they are read.
    """
    columns = [name for name in SCHEMAS[datasets[0]].names() if name != "study"]
    frames, files = list[pl.LazyFrame](), list[Path]()
    for dataset in datasets:
        contents = _read_partitions(quarantine, dataset, studies)
        file_batches = [batch for each in contents for batch in batches(each)]
        rows = scan(dataset, file_batches, columns)
        rows = rows if kept is None else rows.filter(kept)
        frames.append((latest_copies(rows) if len(file_batches) > 1 else rows).drop(RANK))
        files += [path for each in contents for path in each]
    rows = pl.concat(frames)
    if len(files) != 1 or holds_one_attempt(files[0]):
        rows = rows.join(attempts, on=_KEYS, how="semi")
        return rows.sort(SORT_KEYS[datasets[0]], maintain_order=True)
    # a merged file is sorted, and in most stores all of its attempts are valid: then it is read as it is
    is_first = pl.any_horizontal(pl.col(key).ne_missing(pl.col(key).shift()) for key in _KEYS)
    others = rows.select(_KEYS).filter(is_first).join(attempts, on=_KEYS, how="anti")
    if others.head(1).collect().is_empty():
        return rows
    return rows.join(attempts, on=_KEYS, how="semi", maintain_order="left")


def scan(dataset: str, file_batches: Sequence[Sequence[bytes]], columns: Sequence[str]) -> pl.LazyFrame:
    """Return these columns of a dataset's rows, and the column `RANK`.

    `RANK` is the index of the batch that has the row. The files must be intact. A column that did not exist
    when a file was written is null in its rows.
    """
    schema = SCHEMAS[dataset]  # files of earlier versions lack its last columns
    if not file_batches:
        return pl.LazyFrame(schema={**{name: schema[name] for name in columns}, RANK: pl.Int32()})
    frames = [
        pl.scan_parquet(list(batch), schema=schema, missing_columns="insert").select(
            *columns, pl.lit(rank, dtype=pl.Int32).alias(RANK)
        )
        for rank, batch in enumerate(file_batches)
    ]
    return pl.concat(frames)


def batches(contents: Mapping[Path, bytes]) -> list[list[bytes]]:
    """Group a partition's files into batches, oldest rows first, none with two copies of one attempt."""
    several = [[data] for path, data in contents.items() if not holds_one_attempt(path)]
    loose = [data for path, data in contents.items() if holds_one_attempt(path)]
    return [*several, loose] if loose else several


def load_partition(partition: Path, quarantine: Quarantine) -> dict[Path, bytes]:
    """Return the contents of a partition's intact files, merged files first.

    They are as of one moment. A partition is the folder of one study in a dataset. A compaction adds the
    merged file before it removes the files that it merged. A listing during this time may have neither. So
    the partition is read again if a file has vanished or a merged one has appeared.
    """
    for _ in range(_MAX_TRIES):
        paths = data_files(partition)
        try:
            contents = {path: data for path in paths if (data := read_verified(path, quarantine)) is not None}
        except FileNotFoundError:
            continue
        if all(path in paths for path in data_files(partition) if is_compacted(path)):
            return contents
    raise StoreError(
        f"{partition}: compactions have interrupted {_MAX_TRIES} attempts to read: try again later"
    )


def check_readable(layout: Layout, study: str) -> None:
    """Raise StoreError if this process may not read the record or a data file of the study."""
    partitions = (each for dataset in SCHEMAS for each in layout.partitions(dataset, [study]))
    paths = [layout.study(study), *(path for each in partitions for path in data_files(each))]
    if closed := [path for path in paths if path.is_file() and not os.access(path, os.R_OK)]:
        which = f"{len(closed)} of the files of {study}, first {closed[0]}"
        raise StoreError(f"no permission to read {which}; the owner can grant it (chmod g+r)")


_SOUND: Final = set[tuple[str, bytes]]()
"""The datasets and digests of files whose contents this process has checked."""


def _check_together(dataset: str, partitions: Iterable[Path]) -> None:
    """Check the contents of all files of a dataset at once. With a fault, each is checked when it is read."""
    found = dict[bytes, bytes]()
    for path in chain.from_iterable(map(data_files, partitions)):
        with contextlib.suppress(OSError, StoreError):
            data = read_regular(path)
            verify_checksum(data)
            found[sha256(data).digest()] = data
    unknown = {digest: data for digest, data in found.items() if (dataset, digest) not in _SOUND}
    if len(unknown) > 1 and content_fault(dataset, *unknown.values()) is None:
        _SOUND.update((dataset, digest) for digest in unknown)


def read_verified(path: Path, quarantine: Quarantine) -> bytes | None:
    """Return a file's bytes, or None for a file that is damaged or that no store wrote.

    A damaged file is quarantined, and a foreign one is skipped. Raise `FileNotFoundError`, and `StoreError`
    for an unknown schema version.
    """
    try:
        data = read_regular(path)
        verify_checksum(data)
        dataset, digest = path.parent.parent.name, sha256(data).digest()
        if (dataset, digest) not in _SOUND:
            if (fault := content_fault(dataset, data)) is not None:
                raise UnreadableError(fault)
            _SOUND.add((dataset, digest))
    except DamagedError as error:
        quarantine.move(path, str(error))
        return None
    except (UnreadableError, ForeignError) as error:
        quarantine.leave(path, str(error))
        return None
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error
    return data


def latest_copies(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return each attempt's row of the highest rank, the latest: a crash may have left older copies."""
    return frame.filter(pl.col(RANK) == pl.col(RANK).max().over("trial", "attempt"))


DONE: Final = "done"
INCOMPLETE: Final = "incomplete"
"""The status of a done or pruned attempt whose metrics are damaged or missing."""

INCOMPLETE_REASON: Final = "its metrics are damaged or missing"
_KEYS: Final = ("trial", "attempt")


def read_latest(
    quarantine: Quarantine,
    columns: Sequence[str],
    *,
    checks_all: bool = False,
    first: Collection[str] = (),
) -> pl.DataFrame:
    """Return these columns of each trial's valid attempt, sorted by trial.

    The valid attempt is the latest that is done or, if none is done, the latest. Attempts of the studies
    `first` come before all others. If metrics of a study were damaged, or for all studies with `checks_all`,
    attempts that should have metrics but have none are incomplete.
    """
    quarantine.restore_intact()
    needed = list(dict.fromkeys([*columns, *_KEYS, "study", "status", "reason", "epochs", "continued_from"]))
    rows = read(quarantine, "trials", needed)
    names = {path.name for path in quarantine.layout.partitions("trials")} if checks_all else set[str]()
    if studies := names | _studies_with_damaged_metrics(quarantine):
        measured = read(quarantine, "metrics", _KEYS, studies).select(_KEYS).unique()
        rows = rows.join(measured.with_columns(_measured=pl.lit(value=True)), on=_KEYS, how="left")
        trained = pl.col("status").is_in((DONE, "pruned")) & (pl.col("epochs") > 0)
        lacks_metrics = pl.col("study").is_in(list(studies)) & trained & pl.col("_measured").is_null()
        rows = rows.with_columns(
            status=pl.when(lacks_metrics).then(pl.lit(INCOMPLETE)).otherwise("status"),
            reason=pl.when(lacks_metrics).then(pl.lit(INCOMPLETE_REASON)).otherwise("reason"),
        ).drop("_measured")
    found = rows.collect()
    if found["trial"].n_unique() < len(found):
        is_original = pl.col("continued_from").ne_missing(pl.col("trial"))
        places = found.select(
            "trial",
            pl.col("study").is_in(list(first)),
            pl.col("status") == DONE,
            "attempt",
            is_original.alias("original"),
            RANK,
        )
        places = places.with_row_index("row").sort(pl.exclude("row"))
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


def _studies_with_damaged_metrics(quarantine: Quarantine) -> set[str]:
    """Return the studies that have a damaged or unreadable metrics file.

    A folder or pipe in its place is not moved to quarantine, so each session must find it.
    """
    layout = quarantine.layout
    unread = [path.parent for path in quarantine.unread]
    for partition in entries(layout.root / "metrics"):
        with (
            # most file systems give scandir the kind of each entry, without another request
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(partition) as found,
        ):
            if any(each.name.endswith(DATA_ENDING) and not each.is_file() for each in found):
                unread.append(partition)
    layout.place.list(layout.quarantine / "metrics")
    moved = entries(layout.quarantine / "metrics") if layout.quarantine.is_dir() else []
    return {folder.name for folder in (*unread, *moved) if folder.parent.name == "metrics"}


class LatestAttempts(Mapping[str, Mapping[str, Any]]):
    """A mapping from each trial to the row of its valid attempt.

    It is as of the last `refresh`, which reads each new file once. `columns` include trial, attempt, study,
    status, reason and continued_from. Attempts of the study `first` come before those of others.
    """

    def __init__(self, quarantine: Quarantine, columns: Sequence[str], first: str | None = None) -> None:
        self._quarantine, self._columns, self._first = quarantine, columns, first
        now = read_latest(quarantine, [*_KEYS, "status"])  # a row that is stored later always has its metrics
        self._incomplete = set(now.filter(status=INCOMPLETE).select(_KEYS).iter_rows())
        self._known: dict[Path, set[str]] = {}  # the names of the files that were read, by folder
        self._listed: dict[Path, set[str]] = {}  # all names in the last listing, by folder
        self._attempts: dict[str, dict[tuple[int, str], dict[str, Any]]] = {}  # by trial; number and study
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
        return max((number for number, _ in self._attempts.get(trial, ())), default=-1)

    def frame(self, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
        """Return a frame with these rows of trials."""
        return pl.DataFrame(list(rows), schema={name: TRIALS[name] for name in self._columns})

    def trials(self, first: str | None = None) -> pl.DataFrame:
        """Return all trials in a frame, as `Store.trials` does, but only with the columns of this object."""
        return self.frame(self._valid(trial, first) for trial in sorted(self))

    def _read(self, paths: Sequence[Path], known: set[str]) -> None:
        """Add the rows in these files of a study, merged ones first; skip files that no longer exist."""
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
            for row in rows.iter_rows(named=True):
                self._add(row)

    def _add(self, row: dict[str, Any]) -> None:
        trial, key = row["trial"], (row["attempt"], row["study"])
        if (trial, row["attempt"]) in self._incomplete:
            row |= {"status": INCOMPLETE, "reason": INCOMPLETE_REASON}
        attempts = self._attempts.setdefault(trial, {})
        if not attempts or _validity_key(self[trial], self._first) < _validity_key(row, self._first):
            self._arrivals.append(trial)
        attempts.pop(key, None)  # of several copies, the last one counts
        attempts[key] = row

    def __getitem__(self, trial: str) -> Mapping[str, Any]:
        return self._valid(trial, self._first)

    def _valid(self, trial: str, first: str | None) -> Mapping[str, Any]:
        attempts = reversed(self._attempts[trial].values())
        return max(attempts, key=lambda row: _validity_key(row, first))

    def __iter__(self) -> Iterator[str]:
        return iter(self._attempts)

    def __len__(self) -> int:
        return len(self._attempts)


def _validity_key(row: Mapping[str, Any], first: str | None) -> tuple[bool, bool, int, bool]:
    """Return a sort key of a trial's attempts, highest for the valid one, as in `read_latest`."""
    is_original = row["continued_from"] != row["trial"]
    return row["study"] == first, row["status"] == DONE, row["attempt"], is_original
