"""The store: the rows of trials, in a folder or at the address of a bucket."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from ..errors import argument_fault, check_arguments
from .checksums import encode
from .errors import StoreError
from .mark import mark_store
from .place import (
    FolderPlace,
    Layout,
    data_files,
    entries,
    is_address,
    new_group_name,
    study_name_fault,
    trial_id_fault,
)
from .read import (
    LatestAttempts,
    Quarantine,
    check_readable,
    last_numbers,
    load_partition,
    read,
    read_attempts,
    read_latest,
    with_probes,
)
from .rows import (
    MEASURED_LATER,
    TRIALS,
    AttemptRows,
    MetricRow,
    TrialRow,
    WrittenOutputs,
    has_trial,
    metric_frame,
    output_frame,
    trial_frame,
)
from .study_records import StudyRecords
from .trial_files import NOTE_FILE, TrialFiles

if TYPE_CHECKING:
    from .leases import Leases
    from .store_upkeep import StoreUpkeep

_RECORD: Final = ".json"
_NUM_SHOWN: Final = 5
_MAX_REASON: Final = 100_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """Names and times of the files in a store.

    They change whenever a study makes progress.

    - `rows` are the data files of trials.
    - `measured` maps data files of probes, tunings and trials taken from other studies to their times.
    - `records` are the times of the studies' records.
    - `notes` are the times of the notes of unfinished trials, 0 before their first epoch is over.
    """

    rows: frozenset[str]
    measured: Mapping[str, int]
    records: Mapping[str, int]
    notes: Mapping[str, int]

    @property
    def studies(self) -> list[str]:
        """Return the names of the studies that have run, sorted."""
        return sorted({*self.records, *(name.partition("/")[0] for name in self.rows)})


def _files(dataset: Path) -> list[Path]:
    folders = [path for path in entries(dataset) if path.is_dir()]
    return [path for folder in folders for path in entries(folder, ".parquet")]


def _time(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 -- called many times a second
    except OSError:
        return 0


def open_layout(root: Path | str) -> Layout:
    """Return the layout of the store in a folder or at an address. Raise `StoreError` if it is unusable."""
    if is_address(str(root)):
        from .bucket import BucketPlace  # noqa: PLC0415  only stores in a bucket need it

        return Layout(BucketPlace(str(root)))
    return Layout(FolderPlace(Path(root)))


class Store:
    """The rows of finished trials, as partitioned Parquet files.

    `files` has further files of trials, `records` the studies that have run, and `upkeep` the operations that
    check, merge and remove files. Many processes may write, read and compact at once. A folder that does not
    exist is an empty store. Every method that reads quarantines damaged files and raises `StoreError` for an
    unknown schema version.
    """

    def __init__(self, root: Path | str) -> None:
        check_arguments(
            argument_fault("store", root, (str, PathLike), "a folder or an address"), error=StoreError
        )
        self._layout = open_layout(root)
        self._quarantine = Quarantine(self._layout)
        self._is_made = False

    def __repr__(self) -> str:
        return f"Store({self.place!r})"

    @cached_property
    def files(self) -> TrialFiles:
        """Return access to the files of trials besides rows: checkpoints, weights, and last states."""
        return TrialFiles(self._layout)

    @cached_property
    def records(self) -> StudyRecords:
        """Return access to the records of studies that have run."""
        return StudyRecords(self._quarantine)

    @cached_property
    def upkeep(self) -> StoreUpkeep:
        """Return the operations that check, compact and remove files."""
        from .store_upkeep import StoreUpkeep  # noqa: PLC0415 -- reading does without it

        return StoreUpkeep(self._quarantine)

    @property
    def root(self) -> Path:
        """Return the folder of the store. For a bucket, it is the local folder with copies of the files."""
        return self._layout.root

    @property
    def place(self) -> str:
        """Return the address or the path of the store."""
        return self._layout.place.name

    def check_writable(self, study: str | None = None) -> None:
        """Raise StoreError if no results, or none of this study, can be stored at the store's location."""
        if study is None:
            self._layout.place.check_writable()
        else:
            self._layout.check_writable(study)

    def make(self) -> None:
        """Make the location a store, by its mark, unless it is one already.

        Warn if it has other files. Raise StoreError if it has files where a store would keep its own.
        """
        if self._is_made:
            return
        others, self._is_made = mark_store(self._layout), True
        if others:
            shown = ", ".join(others[:_NUM_SHOWN]) + (", …" if len(others) > _NUM_SHOWN else "")
            _log.warning("%s becomes a store, beside other files: %s", self.place, shown)

    @property
    def absolute_place(self) -> str:
        """Return the address or the absolute path of the store."""
        return self._layout.place.absolute_name

    @property
    def damaged(self) -> tuple[Path, ...]:
        """Return the current paths of the damaged files that this object has found."""
        return tuple(self._quarantine.paths)

    def check_readable(self, study: str) -> None:
        """Raise `StoreError` if this process may not read the record or a data file of a study."""
        check_readable(self._layout, study)

    def lacks_metrics(self, study: str) -> bool:
        """Return whether a study has rows of trials, but no file of metrics, as after a partial copy."""
        if any(map(data_files, self._layout.partitions("metrics", [study]))):
            return False
        rows = read(self._quarantine, "trials", ["status", "epochs"], [study])
        measured = (pl.col("epochs") > 0) & pl.col("status").is_in(["done", "pruned"])
        return bool(rows.filter(measured).head(1).collect().height)

    def verify_study(self, study: str) -> None:
        """Read the metrics of a study before it runs; trials with damaged metrics run again.

        Raise `StoreError` if this process may not read a file of the study.
        """
        self.check_readable(study)
        for partition in self._layout.partitions("metrics", [study]):
            load_partition(partition, self._quarantine)

    def write(
        self, trial: TrialRow, metrics: Sequence[MetricRow], outputs: WrittenOutputs | None = None
    ) -> None:
        """Store the rows of one attempt, as `write_together` does."""
        self.write_together([AttemptRows(trial, metrics, outputs)])

    def write_together(self, attempts: Sequence[AttemptRows]) -> None:
        """Store attempts, in one file for each study and dataset.

        When this method returns, they survive a crash of the machine. Metrics and outputs are written first,
        so that a trial with a row has all of them. Raise `StoreError` if a single attempt has a file already.
        Files of several attempts are not checked; attempt numbers from `leases` are always new.
        """
        self.make()
        for study in dict.fromkeys(each.trial.study for each in attempts):
            group = [each for each in attempts if each.trial.study == study]
            first, name = group[0].trial, new_group_name()
            if len(group) == 1:
                path = self._layout.attempt_file("trials", study, first.trial, first.attempt)
                self._layout.place.fetch(path)
                if path.is_file():
                    raise StoreError(
                        f"trial {first.trial}: expected a new attempt, got {first.attempt}, which is stored "
                        "already"
                    )
                name = path.name
            outputs = [output_frame(each.trial, each.outputs) for each in group if each.outputs]
            metrics = [metric_frame(each.trial, each.metrics) for each in group if each.metrics]
            rows = [trial_frame(*(each.trial for each in group))]
            # in this order, so that a trial with a row has its outputs and metrics
            for dataset, frames in {"outputs": outputs, "metrics": metrics, "trials": rows}.items():
                if frames:
                    self._put(self._layout.group_file(dataset, study, name), pl.concat(frames))

    def write_probes(self, trial: TrialRow, probes: Sequence[MetricRow]) -> None:
        """Store the values that probes have measured in a trained model.

        They are as durable as the trial's row. New values replace all earlier values of the same probe,
        whatever their index.
        """
        family = pl.col("name").str.split("[").list.first()
        replaced = {row.name.partition("[")[0] for row in probes}
        earlier = self._latest_rows(["probes"], [trial.trial]).filter(~family.is_in(list(replaced))).collect()
        kept = [MetricRow(**row) for row in earlier.select(*MetricRow.__slots__).iter_rows(named=True)]
        self._put(
            self._layout.attempt_file("probes", trial.study, trial.trial, trial.attempt),
            metric_frame(trial, [*kept, *probes]),
        )

    def write_tuning(self, trial: TrialRow, metrics: Sequence[MetricRow], outputs: WrittenOutputs) -> None:
        """Store a model's results with tuned decoding settings. They are as durable as a trial's row."""
        self._put(
            self._layout.attempt_file("tuned_outputs", trial.study, trial.trial, trial.attempt),
            output_frame(trial, outputs),
        )
        self._put(
            self._layout.attempt_file("tuning", trial.study, trial.trial, trial.attempt),
            metric_frame(trial, metrics),
        )

    def latest_attempts(self) -> dict[str, tuple[str, int]]:
        """Return the status and number of each trial's valid attempt.

        It is the trial's latest done attempt or, if none is done, its latest.
        """
        frame = read_latest(self._quarantine, ["trial", "attempt", "status"])
        return {trial: (status, attempt) for trial, attempt, status in frame.iter_rows()}

    def last_numbers(self) -> dict[str, int]:
        """Return the number of each trial's last attempt, valid or not."""
        return last_numbers(self._quarantine)

    def leases(self, run: str | None) -> Leases:
        """Return the leases with which this process claims trials in a run.

        A process without a run only watches, and claims nothing. Raise `StoreError` if the process would
        claim trials in a bucket whose server has no conditional writes.
        """
        from .leases import Leases, this_process  # noqa: PLC0415 -- reading does without them

        if run is not None:
            self._layout.place.check_claims()
        return Leases(self._layout, this_process(run or "watch"))

    def state(self) -> StoreState:
        """Return the names and times of the store's files, which show later whether something has changed."""
        layout = self._layout
        trials, later = layout.root / "trials", [layout.root / name for name in MEASURED_LATER]
        layout.place.list(trials, *later, layout.studies, layout.checkpoints_folder)
        records = ((path.stem, path) for path in entries(layout.studies, _RECORD))
        return StoreState(
            rows=frozenset(f"{each.parent.name}/{each.name}" for each in _files(trials)),
            measured={str(path): _time(path) for folder in later for path in _files(folder)},
            records={name: _time(path) for name, path in records if study_name_fault(name) is None},
            notes={
                each.name: _time(each / NOTE_FILE)
                for each in entries(layout.checkpoints_folder)
                if trial_id_fault(each.name) is None
            },
        )

    def follow(self, columns: Sequence[str] = tuple(TRIALS), first: str | None = None) -> LatestAttempts:
        """Return a mapping from each trial to its valid attempt in these columns, which `refresh` updates.

        Attempts of the study `first` come before those of others.
        """
        latest = LatestAttempts(self._quarantine, columns, first)
        latest.refresh()
        return latest

    def trials(
        self,
        probes: Collection[str] = (),
        columns: Sequence[str] = tuple(TRIALS),
        *,
        first: Collection[str] = (),
    ) -> pl.DataFrame:
        """Return the valid attempt of each trial, sorted by trial.

        It is the trial's latest done attempt or, if none is done, its latest. Attempts of the studies `first`
        come before those of others. Reading only some `columns` takes less time and memory; they must include
        trial, study and attempt. The named probes, measured by probing or tuning, are added to the final
        metrics. A reason is cut after 100,000 characters.
        """
        frame = read_latest(self._quarantine, columns, first=first)
        if "reason" in columns:
            frame = frame.with_columns(pl.col("reason").str.head(_MAX_REASON))
        return with_probes(self._quarantine, frame, probes) if probes else frame

    def metrics(
        self, trials: Collection[str] | None = None, names: Collection[str] | None = None
    ) -> pl.DataFrame:
        """Return the metrics of these trials with these names (by default all).

        A name stands for itself and for the metrics with this name and an index, such as `bleu[10-20]`.
        Metrics of probes and tuning are included. The columns are trial, attempt, step, epoch, name and
        value; rows are sorted by the first five.
        """
        return self.scan_metrics(trials, names).collect()

    def scan_metrics(
        self, trials: Collection[str] | None = None, names: Collection[str] | None = None
    ) -> pl.LazyFrame:
        """Return the metrics as `metrics` does, but read only what a later selection keeps."""
        name = pl.col("name")
        indexed = (name.str.starts_with(f"{each}[") for each in names or ())
        kept = None if names is None else pl.any_horizontal(name.is_in(list(names)), *indexed)
        return self._latest_rows(("metrics", *MEASURED_LATER), trials, kept)

    def metric_course(self, name: str | None, attempts: pl.DataFrame) -> pl.DataFrame:
        """Return the values of a metric after each epoch, for the given attempts.

        If `name` is None, return all metrics. The columns are those of `metrics`. `attempts` are rows of
        `trials`. Only their studies are read.
        """
        rows = read_attempts(
            self._quarantine, ["metrics"], attempts.lazy(), attempts["study"].unique().to_list()
        )
        return (rows if name is None else rows.filter(pl.col("name") == name)).collect()

    def outputs(self, trials: Collection[str] | None = None, *, tuned: bool = False) -> pl.DataFrame:
        """Return the generated outputs of these trials (by default all).

        They are outputs for the test split. There is a row for each line, sorted by trial and line, with the
        settings of the decoding search: those of the task or, with `tuned`, those that were tuned later.
        """
        return self._latest_rows(("tuned_outputs" if tuned else "outputs",), trials).collect()

    def _put(self, path: Path, frame: pl.DataFrame) -> None:
        if os.path.lexists(path) and not path.is_file():  # such as a folder, which no file can replace
            self._quarantine.move(path, "expected a file", "it blocked the file of a trial")
        self._layout.place.put(path, encode(frame))

    def _latest_rows(
        self, datasets: Sequence[str], trials: Collection[str] | None, kept: pl.Expr | None = None
    ) -> pl.LazyFrame:
        wanted = read_latest(self._quarantine, ["trial", "attempt"]).lazy()
        wanted = wanted if trials is None else wanted.filter(has_trial(trials))
        return read_attempts(self._quarantine, datasets, wanted, kept=kept)


def open_store(store: Store | Path | str) -> Store:
    """Return a store unchanged, or open the store in a folder or at an address."""
    return store if isinstance(store, Store) else Store(store)


def store_fault(store: object) -> str | None:
    """Return an error message if an argument is neither a store, nor a folder or an address, else None."""
    return argument_fault("store", store, (Store, str, PathLike), "a Store or its folder")
