"""Upkeep of a store: compaction, checks, repair, removal of trials, and renaming of studies."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

import polars as pl

from .checking import Finding, FindingKind, StoreCheck, check_store, remove_leftovers, size_bytes
from .compaction import compact, merge, merge_ended, remove_merged, write_merged
from .errors import StoreError
from .files import read_regular
from .latest_attempts import last_numbers, read_latest
from .leases import Lease, Leases, remove_ended_leases, remove_old_leases, this_process
from .parquet_file import encode
from .paths import entries, validate_study_name
from .read import Quarantine, load_partition
from .rows import SCHEMAS
from .study_records import StudyRecords, rename_in_record

_ORDER: Final = ("trials", *(dataset for dataset in SCHEMAS if dataset != "trials"))
"""The order of removal: rows go first, so that a crash leaves nothing that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Removed parts of a study, or parts to remove in a dry run: trials, rows of each dataset, other files.

    The files are weights, checkpoints and last states; `size` is their total size.
    """

    trials: tuple[str, ...]
    rows: Mapping[str, int]
    files: tuple[Path, ...]
    size: int


class StoreUpkeep:
    """Maintenance of a store: checks, merges, removals and renames."""

    def __init__(self, quarantine: Quarantine) -> None:
        self._layout, self._quarantine = quarantine.layout, quarantine
        self._records = StudyRecords(quarantine)

    def compact(self) -> int:
        """Merge small files and remove leftovers of dead writers; return the number of merged files.

        It may run beside writers, readers and other compactions, and may be killed at any moment.
        """
        remove_leftovers(self._layout)
        remove_old_leases(self._layout)
        remove_ended_leases(self._layout, last_numbers(self._quarantine))
        return sum(
            compact(self._quarantine, dataset, partition)
            for dataset in SCHEMAS
            for partition in self._layout.partitions(dataset)
        )

    def merge_ended(self, study: str, *, at_least: int) -> int:
        """Merge the files of ended attempts, if there are at least this many, during a run."""
        return merge_ended(self._quarantine, study, at_least=at_least)

    def check(self) -> StoreCheck:
        """Read all files to their ends and return the problems; change nothing.

        Files written meanwhile may be reported as incomplete.
        """
        return check_store(self._layout)

    def repair(self) -> list[Finding]:
        """Move every damaged file to quarantine, and return the problems.

        Trials that have lost their row or their metrics run again. A trial with a damaged checkpoint resumes
        from the previous one.
        """
        quarantine = Quarantine(self._layout)
        damaged = [each for each in self.check().findings if each.kind is FindingKind.DAMAGED]
        for finding in damaged:
            quarantine.move(finding.path, finding.reason)
        return damaged

    def clean(self, *, dry: bool = False) -> list[Finding]:
        """Remove unused files, and return them; a `dry` run removes nothing.

        These are files of dead writers, and checkpoints of trials that have ended for good.
        """
        return remove_leftovers(self._layout, dry=dry)

    def forget(self, study: str, trials: Collection[str], *, dry: bool = False) -> Forgotten:
        """Remove these trials of a study with all their files; a `dry` run removes nothing.

        Files of a trial that another study has run as well are kept. Called again after a crash, it finishes
        the removal. Raises `StoreError`, and removes nothing, while one of them is in training.
        """
        layout, wanted = self._layout, pl.col("trial").is_in(list(trials))
        stored = {dataset: self._rows(dataset, study).filter(wanted) for dataset in _ORDER}
        others = [each.name for each in layout.partitions("trials") if each.name != study]
        elsewhere = {trial for other in others for trial in self._rows("trials", other)["trial"]}
        kept = (layout.weights_folder, layout.final_checkpoints_folder, layout.checkpoints_folder)
        layout.place.list_names(*kept)
        paths = (layout.weights, layout.final_checkpoint, layout.checkpoints)
        named = [path(trial) for trial in sorted(set(trials) - elsewhere) for path in paths]
        files = tuple(path for path in named if path.exists())
        there = {trial for rows in stored.values() for trial in rows["trial"]}
        there |= {path.name.partition(".")[0] for path in files}
        found = Forgotten(
            trials=tuple(sorted(there)),
            rows={dataset: len(rows) for dataset, rows in stored.items() if len(rows)},
            files=files,
            size=sum(map(size_bytes, files)),
        )
        if not dry:
            with self._claimed("forget", there | self._with_leases(trials)):
                for dataset in _ORDER:
                    if len(stored[dataset]):
                        self._rewrite(dataset, study, wanted)
                layout.place.delete(*files)
                # what says that earlier attempts have ended: the next has the first number again
                layout.place.list_names(layout.leases)
                gone = there - elsewhere
                leases = (path for path in entries(layout.leases) if path.name.rpartition("-")[0] in gone)
                layout.place.delete(*leases)
        return found

    def rename(self, old: str, new: str, trials: Collection[str] = ()) -> int:
        """Give a study another name, and return how many of its trials are stored; `trials` are all of them.

        The old rows stay until all new rows are written, and duplicate rows count once. So a call after a
        crash finishes the rename, or finds that it is finished. Raises `StoreError`, and changes nothing,
        while one of these or of the stored trials is in training, or if the name is taken.
        """
        validate_study_name(new)
        if self.is_renamed(old, new):
            return self._end_rename(new)
        record, ran = self._records.load(old), set(self._studies_of_trials())
        if record is None and old not in ran:
            raise StoreError(f"expected a study that has run, got {old!r}")
        taken = self._records.load(new)
        half_done = taken is not None and taken.get("renamed") == old and not taken.get("rename_ended")
        if (taken is not None or new in ran) and not half_done:
            raise StoreError(f"expected a name that is free, got {new!r}, which has run as well")
        if record is not None:
            self._records.save(new, rename_in_record(record, old, new))
        stored = set(self._rows("trials", old)["trial"])
        try:
            with self._claimed("rename", stored | self._with_leases(trials)):
                for dataset in reversed(_ORDER):
                    rows = self._rows(dataset, old).with_columns(study=pl.lit(new))
                    if len(rows):
                        write_merged(self._layout.place, dataset, self._layout.root / dataset / new, rows)
                for dataset in _ORDER:
                    self._rewrite(dataset, old, pl.lit(value=True))
        except StoreError:
            if not half_done:
                self._records.remove(new)
            raise
        self._records.remove(old)
        return self._end_rename(new)

    def is_renamed(self, old: str, new: str) -> bool:
        """Return whether the study `new` was called `old`, and the old name is unused."""
        if (self._records.load(new) or {}).get("renamed") != old:
            return False
        return self._records.load(old) is None and old not in set(self._studies_of_trials())

    def copy_outcome(self, trial: str, to: str) -> bool:
        """Copy the outcome of a trial, with metrics, outputs and weights, to another trial.

        Its row keeps the settings and the code of the training. Returns False, and copies nothing, if the
        other trial is in training or has been trained. Raises KeyError for an unknown trial. The row comes
        last, as in any attempt: called again after a crash, it finishes the copy.
        """
        if to in last_numbers(self._quarantine):
            return False
        rows = read_latest(self._quarantine, ["trial", "attempt", "study"]).filter(trial=trial)
        if not len(rows):
            raise KeyError(trial)
        ((_, attempt, study),) = rows.iter_rows()
        claimed, place = self._claims("copy").claim(to, 0), self._layout.place
        if not isinstance(claimed, Lease):
            return False
        weights = self._layout.weights(trial)
        place.fetch_file(weights)
        if weights.is_file():
            place.put(self._layout.weights(to), read_regular(weights))
        for dataset in (*(each for each in SCHEMAS if each != "trials"), "trials"):
            found = self._rows(dataset, study)
            found = found.filter(trial=trial, attempt=attempt)
            if len(found):
                number = pl.lit(claimed.attempt, found["attempt"].dtype)
                data = encode(found.with_columns(trial=pl.lit(to), attempt=number))
                path = self._layout.attempt_file(dataset, study, to, claimed.attempt)
                (place.put_new if dataset == "trials" else place.put)(path, data)
        claimed.end()
        return True

    def _claims(self, purpose: str) -> Leases:
        self._layout.place.check_claims()
        return Leases(self._layout, this_process(f"{purpose} {token_hex(8)}"))

    @contextmanager
    def _claimed(self, purpose: str, trials: Iterable[str]) -> Iterator[None]:
        """Keep other processes from starting these trials within the context."""
        leases, last = self._claims(purpose), last_numbers(self._quarantine)
        held: list[Lease] = []
        try:
            for trial in sorted(trials):
                claimed = leases.claim(trial, last.get(trial, -1) + 1)
                while not isinstance(claimed, Lease) and claimed.ended:
                    claimed = leases.claim(trial, claimed.attempt + 1)
                if not isinstance(claimed, Lease):
                    owner = claimed.owner
                    who = f"process {owner.pid} of {owner.host} trains it"
                    raise StoreError(
                        f"trial {trial}: expected nobody to train it, but {who}; stop that run, or wait for "
                        f"it. The lease of one that was lost runs out after {leases.lease_s:g} s"
                    )
                held.append(claimed)
            yield
        finally:
            for lease in held:
                lease.release()

    def _with_leases(self, trials: Collection[str]) -> set[str]:
        """Return the given trials that a process has claimed, even if nothing is stored yet."""
        self._layout.place.list_names(self._layout.leases)
        return {path.name.rpartition("-")[0] for path in entries(self._layout.leases)} & set(trials)

    def _rows(self, dataset: str, study: str) -> pl.DataFrame:
        parts = self._layout.partitions(dataset, [study])
        return merge(dataset, load_partition(parts[0], self._quarantine) if parts else {})

    def _rewrite(self, dataset: str, study: str, removed: pl.Expr) -> None:
        """Merge a study's files without some rows; repeat if a compaction merges them at the same moment."""
        for partition in self._layout.partitions(dataset, [study]):
            while contents := load_partition(partition, self._quarantine):
                rows = merge(dataset, contents)
                kept = rows.filter(~removed)
                if len(kept) == len(rows):
                    break
                if len(kept):
                    write_merged(self._layout.place, dataset, partition, kept)
                remove_merged(self._layout.place, dataset, partition, contents)

    def _studies_of_trials(self) -> list[str]:
        return read_latest(self._quarantine, ["study"])["study"].to_list()

    def _end_rename(self, new: str) -> int:
        """Record that a study's renaming is complete, so that the old name is free; count its trials."""
        record = self._records.load(new)
        if record is not None and not record.get("rename_ended"):
            self._records.save(new, {**record, "rename_ended": True})
        return self._studies_of_trials().count(new)
