"""The store: everything that happened, in one folder or below one address."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

import polars as pl

from . import study_records
from .checkpoint_notes import NOTE_FILE, CheckpointNote, read_note
from .compaction import compact, latest_copies, merge_ended
from .durable_write import encode, write_durably, write_group, write_once, write_taken
from .integrity.quarantine import Quarantine
from .integrity.regular_file import is_other_than_file
from .latest_attempts import LatestAttempts, read_latest, read_taken, with_probes, with_takers
from .leases import Leases, remove_ended_leases, remove_old_leases, this_process
from .objects.address import is_address
from .objects.mirror import Mirror
from .objects.object_layout import ObjectLayout, open_layout
from .objects.object_leases import ObjectLeases
from .paths import Layout, StoreError, entries, validate_study_name
from .read import RANK, read, read_attempts
from .row_validation import check_stored_row
from .rows import (
    METRICS,
    TRIALS,
    AttemptRows,
    MetricRow,
    TrialRow,
    WrittenOutputs,
    metric_frame,
    output_frame,
    trial_frame,
)
from .schema import MEASURED_LATER, SCHEMAS, SORT_KEYS
from .state import StoreState, read_state
from .upkeep import (
    Finding,
    Forgotten,
    StoreCheck,
    check_store,
    copy_attempt,
    forget,
    remove_kept,
    remove_leftovers,
    rename,
    repair_store,
)


class Store:
    """Finished trials under one root, readable by anyone as partitioned Parquet.

    Many processes may write, read and compact at once. A folder that does not exist is an empty store.
    Every method that reads quarantines damaged files and raises `StoreError` for an unknown schema version.
    """

    def __init__(self, root: Path | str) -> None:
        self._layout = open_layout(str(root)) if is_address(str(root)) else Layout(Path(root))
        self._quarantine = Quarantine(self._layout)

    def __repr__(self) -> str:
        return f"Store({self.place!r})"

    @property
    def root(self) -> Path:
        """The store's folder; of one in a bucket the folder of this process that has a copy."""
        return self._layout.root

    @property
    def address(self) -> str | None:
        """The address of a store that is in a bucket."""
        return None if self.mirror is None else self.mirror.bucket.address

    @property
    def place(self) -> str:
        """Where the store is, in words: its address, or its folder."""
        return self.address or str(self.root)

    @property
    def absolute_place(self) -> str:
        """Where the store is, wherever the reader stands: its address, or the whole path of its folder."""
        return self.address or str(self.root.resolve())

    @property
    def mirror(self) -> Mirror | None:
        """The copy of a store that is in a bucket."""
        return self._layout.mirror if isinstance(self._layout, ObjectLayout) else None

    @property
    def damaged(self) -> tuple[Path, ...]:
        """The damaged files that this object has met, where they are now."""
        return tuple(self._quarantine.paths)

    def write(
        self, trial: TrialRow, metrics: Sequence[MetricRow], outputs: WrittenOutputs | None = None
    ) -> None:
        """Store one attempt; when this returns, it survives a crash of the machine.

        Metrics and outputs come first, so that a trial which is there has all of them. An attempt is never
        written over: raises `StoreError` if it is there. That sees files of their own, not what has been
        merged; the numbers of attempts that `leases` hands out are new in any case.
        """
        path = self._layout.attempt_file("trials", trial.study, trial.trial, trial.attempt)
        refused = StoreError(
            f"trial {trial.trial}: expected a new attempt, got {trial.attempt}, which is stored already"
        )
        self._make_way(path)
        if path.exists():
            raise refused
        self._replace("outputs", trial, output_frame(trial, outputs) if outputs else None)
        self._replace("metrics", trial, metric_frame(trial, metrics) if metrics else None)
        try:
            write_once(self._layout, path, encode(trial_frame(trial)))
        except FileExistsError:
            raise refused from None

    def write_together(self, attempts: Sequence[AttemptRows]) -> None:
        """Store several attempts as `write` does one, with a file of each dataset for all of a study."""
        for study in dict.fromkeys(each.trial.study for each in attempts):
            write_group(self._layout, study, [each for each in attempts if each.trial.study == study])

    def write_probes(self, trial: TrialRow, probes: Sequence[MetricRow]) -> None:
        """Store what was measured in a trained model, beside the metrics of its trial.

        When this returns, it survives a crash of the machine; of earlier probes of the attempt those of the
        same metrics are replaced, be their indices others or not.
        """
        family = pl.col("name").str.split("[").list.first()
        replaced = {row.name.partition("[")[0] for row in probes}
        earlier = self._of_latest(["probes"], [trial.trial]).filter(~family.is_in(list(replaced)))
        kept = [MetricRow(**row) for row in earlier.select(*MetricRow.__slots__).iter_rows(named=True)]
        self._replace("probes", trial, metric_frame(trial, [*kept, *probes]))

    def write_tuning(self, trial: TrialRow, metrics: Sequence[MetricRow], outputs: WrittenOutputs) -> None:
        """Store which search for outputs was chosen for a trained model, and what it wrote with that.

        It is as durable as probes; the outputs come first.
        """
        self._replace("tuned_outputs", trial, output_frame(trial, outputs))
        self._replace("tuning", trial, metric_frame(trial, metrics))

    def latest_attempts(self) -> dict[str, tuple[str, int]]:
        """Return the status and the number of each trial's latest attempt, a done one before all others."""
        frame = self._latest(["trial", "attempt", "status"])
        return {trial: (status, attempt) for trial, attempt, status in frame.iter_rows()}

    def last_numbers(self) -> dict[str, int]:
        """Return the number of each trial's last attempt, whether or not it is the one that counts."""
        rows = read(self._layout, self._quarantine, "trials", ["trial", "attempt"])
        return dict(rows.group_by("trial").agg(pl.col("attempt").max()).collect().iter_rows())

    def leases(self, run: str) -> Leases:
        """Return the leases of the store's trials, as this process claims them for a run.

        Raises `StoreError` where a bucket's server has no conditional writes.
        """
        if not isinstance(self._layout, ObjectLayout):
            return Leases(self._layout, this_process(run))
        self._layout.bucket.require_conditions()
        return ObjectLeases(self._layout, this_process(run))

    def watched_leases(self) -> Leases:
        """Return the leases of the store's trials for somebody who looks at them, and claims none."""
        who = this_process("watch")
        folder = self._layout
        return ObjectLeases(folder, who) if isinstance(folder, ObjectLayout) else Leases(folder, who)

    def state(self) -> StoreState:
        """Return what the store has by name, by which somebody who looks again sees what has changed."""
        return read_state(self._layout)

    def follow(self, columns: Sequence[str] = tuple(TRIALS)) -> LatestAttempts:
        """Return these columns of the latest attempts, which can be refreshed while the store grows."""
        latest = LatestAttempts(self._layout, self._quarantine, columns)
        latest.refresh()
        return latest

    def trials(self, probes: Collection[str] = ()) -> pl.DataFrame:
        """Return the latest attempt at each trial, a done one before all others, sorted by trial.

        Its final metrics are followed by the probes of these names, whether from probing or from tuning.
        Where searches have taken trials of others, the column `taken` has which, by which factors, when.
        """
        frame = self._latest(TRIALS.names())
        open_columns = (name for name, count in frame.null_count().row(0, named=True).items() if count)
        checked = dict.fromkeys(("trial", "study", "attempt", "factors", *open_columns))
        for row in frame.select(*checked).iter_rows(named=True):
            check_stored_row(self._layout, row)
        if probes:
            frame = with_probes(self._layout, self._quarantine, frame, probes)
        return with_takers(self._layout, self._quarantine, frame)

    def take(self, trial: str, study: str, factors: str) -> None:
        """Record durably that a study counts a trial of another, and calls it by factors, as JSON."""
        write_taken(self._layout, trial, study, factors)

    def taken(self, study: str) -> pl.DataFrame:
        """Return the trials of others that a study counts: trial, study, factors and at."""
        return read_taken(self._layout, self._quarantine, [study])

    def metrics(self, trials: Collection[str] | None = None) -> pl.DataFrame:
        """Return metrics, probes and tuning of the latest attempts, of all trials or of these.

        Columns are trial, attempt, step, epoch, name and value; sorted by the first five.
        """
        return self._of_latest(("metrics", *MEASURED_LATER), trials)

    def courses(self, trials: Collection[str]) -> pl.DataFrame:
        """Return the metrics of these trials alone, in the form of `metrics`, without probes and tuning."""
        return self._of_latest(("metrics",), trials)

    def metric_course(self, name: str | None, attempts: pl.DataFrame) -> pl.DataFrame:
        """Return one metric of these attempts at all steps, or all metrics, in the form of `metrics`.

        `attempts` are rows of `trials`; of files that hold one attempt only theirs are read.
        """
        columns = [each for each in METRICS.names() if each != "study"]
        rows = latest_copies(read_attempts(self._layout, self._quarantine, "metrics", columns, attempts))
        chosen = rows.drop(RANK) if name is None else rows.drop(RANK).filter(pl.col("name") == name)
        return chosen.sort(SORT_KEYS["metrics"], maintain_order=True).collect()

    def outputs(self, trials: Collection[str] | None = None, *, tuned: bool = False) -> pl.DataFrame:
        """Return what the models of the latest attempts wrote for the test split, of all trials or of these.

        A row for each line, sorted by trial and line, with the search that found it: the task's, or the one
        that was chosen later.
        """
        return self._of_latest(("tuned_outputs" if tuned else "outputs",), trials)

    def compact(self) -> int:
        """Merge small files and remove what dead writers left; return how many files were merged.

        It may run beside writers, readers and other compactions, and may be killed at any moment.
        """
        remove_leftovers(self._layout)
        remove_old_leases(self._layout)
        if self.mirror is None:  # in a bucket, each claim would take one request more
            remove_ended_leases(self._layout, self.last_numbers())
        merged = 0
        for dataset in SCHEMAS:
            for partition in self._layout.partitions(dataset):
                merged += compact(self._layout, self._quarantine, dataset, partition)
        return merged

    def merge_ended(self, study: str, *, at_least: int) -> int:
        """Merge the files of attempts that have ended, if they are so many, while a run goes on."""
        return merge_ended(self._layout, self._quarantine, study, at_least=at_least)

    def check(self) -> StoreCheck:
        """Read all files to their ends and say what is wrong with them; nothing is changed.

        What is written meanwhile may be told as incomplete.
        """
        return check_store(self._layout)

    def repair(self) -> list[Finding]:
        """Move damaged files to quarantine, keep what is intact of them, and return what was wrong."""
        return repair_store(self._layout)

    def clean(self, *, dry: bool = False) -> list[Finding]:
        """Remove what nothing reads any more, and return it; a `dry` run removes nothing.

        That are files of writers that have died, and the checkpoints of trials that have ended for good.
        """
        return remove_leftovers(self._layout, dry=dry)

    def forget(self, study: str, trials: Collection[str], *, dry: bool = False) -> Forgotten:
        """Remove these trials of a study with all that is kept of them; a `dry` run removes nothing.

        Raises `StoreError`, and removes nothing, while somebody trains one of them.
        """
        leases, last = self.leases(f"forget {token_hex(8)}"), self.last_numbers()
        return forget(
            *(self._layout, self._quarantine, leases), study=study, trials=trials, last_numbers=last, dry=dry
        )

    def rename(self, old: str, new: str, trials: Collection[str] = ()) -> int:
        """Give a study another name, and return how many of its trials are stored; `trials` are all of them.

        Called again after a crash, it finishes the job, or finds that it is done. Raises `StoreError`, and
        moves nothing, while somebody trains one of the trials or if the name is taken.
        """
        validate_study_name(new)
        if self.is_renamed(old, new):
            return self._end_rename(new)
        record, ran = self.load_study_record(old), set(self.trials()["study"])
        if record is None and old not in ran:
            raise StoreError(f"expected a study that has run, got {old!r}")
        taken = self.load_study_record(new)
        half_done = taken is not None and taken.get("renamed") == old and not taken.get("rename_ended")
        if (taken is not None or new in ran) and not half_done:
            raise StoreError(f"expected a name that is free, got {new!r}, which has run as well")
        leases, last = self.leases(f"rename {token_hex(8)}"), self.last_numbers()
        if record is not None:
            self.save_study_record(new, study_records.renamed(record, old, new))
        try:
            rename(
                *(self._layout, self._quarantine, leases), old=old, new=new, trials=trials, last_numbers=last
            )
        except StoreError:
            self._layout.remove(*([] if half_done else [self._layout.study(new)]))
            raise
        self._layout.remove(self._layout.study(old))
        return self._end_rename(new)

    def is_renamed(self, old: str, new: str) -> bool:
        """Return whether the study `new` was called `old`, and nothing has that name any more."""
        if (self.load_study_record(new) or {}).get("renamed") != old:
            return False
        return self.load_study_record(old) is None and old not in set(self.trials()["study"])

    def _end_rename(self, new: str) -> int:
        """Note that a study has its new name in full, so that the old one is free; count its trials."""
        record = self.load_study_record(new)
        if record is not None and not record.get("rename_ended"):
            self.save_study_record(new, {**record, "rename_ended": True})
        return len(self.trials().filter(pl.col("study") == new))

    def copy_outcome(self, trial: str, to: str) -> bool:
        """Give the outcome of a trial, with metrics, outputs and weights, to another trial as well.

        Its row says as before with which settings and which code it was trained. Returns False, and copies
        nothing, where somebody trains the other trial or has done so. Raises KeyError for an unknown trial.
        """
        if to in self.last_numbers():
            return False
        rows = self._latest(["trial", "attempt", "study"]).filter(trial=trial)
        if not len(rows):
            raise KeyError(trial)
        ((_, attempt, study),) = rows.iter_rows()
        return copy_attempt(
            *(self._layout, self._quarantine, self.leases(f"copy {token_hex(8)}")),
            study=study,
            source=(trial, attempt),
            target=(to, 0),
        )

    def checkpoint_dir(self, trial: str) -> Path:
        """Return the folder for a trial's checkpoints, which need not exist."""
        return self._layout.checkpoints(trial)

    def trials_with_checkpoint(self, trials: Iterable[str]) -> set[str]:
        """Return those of these trials that have begun and can be resumed."""
        self._layout.pull_names(self._layout.checkpoints_folder)
        folders = {trial: self.checkpoint_dir(trial) for trial in trials}
        return {trial for trial, folder in folders.items() if folder.is_dir() and any(folder.iterdir())}

    def checkpoints_folder(self, name: str) -> Path:
        """Return the folder of all folders of checkpoints, in which files of this name are up to date."""
        self._layout.pull_named(self._layout.checkpoints_folder, name)
        return self._layout.checkpoints_folder

    def checkpoint_note(self, trial: str) -> CheckpointNote | None:
        """Return how far an unfinished trial has come, if its first epoch is over."""
        folder = self.checkpoint_dir(trial)
        self._layout.pull_file(folder / NOTE_FILE)
        return read_note(folder)

    def weights_file(self, trial: str) -> Path:
        """Return the file for a trial's trained weights, which need not exist."""
        path = self._layout.weights(trial)
        self._layout.pull_file(path)
        return path

    def trials_with_weights(self, trials: Iterable[str]) -> set[str]:
        """Return those of these trials whose trained weights are kept."""
        self._layout.pull_names(self._layout.weights_folder)
        return {trial for trial in trials if self._layout.weights(trial).is_file()}

    def remove_kept(self, trials: Iterable[str]) -> None:
        """Remove trained weights and last states of trials from which none goes on any more."""
        remove_kept(self._layout, trials)

    def publish(self, path: Path) -> None:
        """Make a file of weights, or of the last state of a training, as durable as the store is."""
        self._layout.publish(path)

    def final_checkpoint_file(self, trial: str) -> Path:
        """Return the file for the last state of a trial's training, which need not exist."""
        return self._layout.final_checkpoint(trial)

    def final_checkpoints(self) -> frozenset[str]:
        """Return the trials whose last state is kept."""
        self._layout.pull_names(self._layout.final_checkpoints_folder)
        files = entries(self._layout.final_checkpoints_folder, ".pt")
        return frozenset(path.stem for path in files if not path.name.startswith("."))

    def save_study_record(self, name: str, record: Mapping[str, Any]) -> None:
        """Replace the record of a study, as JSON; it is then the last study."""
        study_records.save_record(self._layout, name, record)

    def load_study_record(self, name: str) -> dict[str, Any] | None:
        """Return the record of a study, if there is one."""
        return study_records.load_record(self._layout, self._quarantine, name)

    def damaged_study_record(self, name: str) -> Path | None:
        """Return where the record of a study is in quarantine, if there was a damaged one."""
        return study_records.find_damaged(self._layout, name)

    def last_study(self) -> str | None:
        """Return the name of the study that was recorded last."""
        return study_records.latest_study(self._layout, self._quarantine)

    def _replace(self, dataset: str, trial: TrialRow, frame: pl.DataFrame | None) -> None:
        """Replace the rows of an attempt in a dataset; None removes them."""
        path = self._layout.attempt_file(dataset, trial.study, trial.trial, trial.attempt)
        self._make_way(path)
        if frame is None:
            self._layout.remove(path)
        else:
            write_durably(self._layout, path, encode(frame))

    def _make_way(self, path: Path) -> None:
        """Quarantine what is no file and has the name of one that is to be written."""
        if is_other_than_file(path):
            self._quarantine.move(path, "expected a file", "it was in the way of a trial's")

    def _of_latest(self, datasets: Sequence[str], trials: Collection[str] | None) -> pl.DataFrame:
        """Return the latest attempts' rows in datasets of one schema, without their studies."""
        columns = [name for name in SCHEMAS[datasets[0]].names() if name != "study"]
        wanted = self._latest(["trial", "attempt"]).lazy()
        if trials is not None:
            wanted = wanted.filter(pl.col("trial").is_in(list(trials)))
        frames = [
            latest_copies(read(self._layout, self._quarantine, dataset, columns)).drop(RANK)
            for dataset in datasets
        ]
        frame = pl.concat(frames).join(wanted, on=["trial", "attempt"], how="semi")
        return frame.sort(SORT_KEYS[datasets[0]], maintain_order=True).collect()

    def _latest(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return these columns of each trial's latest attempt, sorted by trial."""
        return read_latest(self._layout, self._quarantine, columns)
