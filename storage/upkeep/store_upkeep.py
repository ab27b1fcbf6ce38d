"""Upkeep of a store: compaction, checks, repair, and removal."""

from collections.abc import Collection
from contextlib import suppress
from secrets import token_hex

import polars as pl

from ..compaction import compact, merge_ended
from ..errors import StoreError
from ..integrity.regular_file import read_regular
from ..latest_attempts import last_numbers, read_latest
from ..leases import Lease, Leases, remove_ended_leases, remove_old_leases, this_process
from ..parquet_file import encode
from ..paths import Layout, is_compacted, validate_study_name
from ..quarantine import Quarantine
from ..read import read_verified
from ..schema import SCHEMAS
from ..study_records import StudyRecords, rename_in_record
from .checking import StoreCheck, check_store
from .findings import Finding, FindingKind
from .leftovers import remove_leftovers
from .removal import Forgotten, forget, rename, rows_of_study


class StoreUpkeep:
    """What keeps a store small and whole."""

    def __init__(self, layout: Layout, quarantine: Quarantine) -> None:
        self._layout, self._quarantine = layout, quarantine
        self._records = StudyRecords(layout, quarantine)

    def compact(self) -> int:
        """Merge small files and remove what dead writers left; return how many files were merged.

        It may run beside writers, readers and other compactions, and may be killed at any moment.
        """
        remove_leftovers(self._layout)
        remove_old_leases(self._layout)
        remove_ended_leases(self._layout, last_numbers(self._layout, self._quarantine))
        return sum(
            compact(self._layout, self._quarantine, dataset, partition)
            for dataset in SCHEMAS
            for partition in self._layout.partitions(dataset)
        )

    def merge_ended(self, study: str, *, at_least: int) -> int:
        """Merge the files of attempts that have ended, if there are at least this many, during a run."""
        return merge_ended(self._layout, self._quarantine, study, at_least=at_least)

    def check(self) -> StoreCheck:
        """Read all files to their ends and return what is wrong with them; change nothing.

        What is written meanwhile may be reported as incomplete.
        """
        return check_store(self._layout)

    def repair(self) -> list[Finding]:
        """Move every damaged file to quarantine, and return what was wrong with each.

        Of a merged file the intact row groups are written to a new one first. Trials that have lost their row
        or their metrics run again. A trial with a damaged checkpoint resumes from the one before.
        """
        quarantine = Quarantine(self._layout)
        damaged = [each for each in self.check().findings if each.kind is FindingKind.DAMAGED]
        for finding in damaged:
            if is_compacted(finding.path):
                with suppress(FileNotFoundError, StoreError):
                    read_verified(finding.path, quarantine)
            else:
                quarantine.move(finding.path, finding.reason)
        return damaged

    def clean(self, *, dry: bool = False) -> list[Finding]:
        """Remove files that nothing reads any more, and return them; a `dry` run removes nothing.

        These are files of writers that have died, and the checkpoints of trials that have ended for good.
        """
        return remove_leftovers(self._layout, dry=dry)

    def forget(self, study: str, trials: Collection[str], *, dry: bool = False) -> Forgotten:
        """Remove these trials of a study with all their files; a `dry` run removes nothing.

        Raises `StoreError`, and removes nothing, while somebody trains one of them.
        """
        last = last_numbers(self._layout, self._quarantine)
        return forget(
            *(self._layout, self._quarantine, self._claims("forget")),
            study=study,
            trials=trials,
            last_numbers=last,
            dry=dry,
        )

    def rename(self, old: str, new: str, trials: Collection[str] = ()) -> int:
        """Give a study another name, and return how many of its trials are stored; `trials` are all of them.

        Called again after a crash, it finishes the job, or finds that it is done. Raises `StoreError`, and
        moves nothing, while somebody trains one of the trials or if the name is taken.
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
        claims, last = self._claims("rename"), last_numbers(self._layout, self._quarantine)
        if record is not None:
            self._records.save(new, rename_in_record(record, old, new))
        try:
            rename(
                *(self._layout, self._quarantine, claims), old=old, new=new, trials=trials, last_numbers=last
            )
        except StoreError:
            if not half_done:
                self._records.remove(new)
            raise
        self._records.remove(old)
        return self._end_rename(new)

    def is_renamed(self, old: str, new: str) -> bool:
        """Return whether the study `new` was called `old`, and nothing has that name any more."""
        if (self._records.load(new) or {}).get("renamed") != old:
            return False
        return self._records.load(old) is None and old not in set(self._studies_of_trials())

    def copy_outcome(self, trial: str, to: str) -> bool:
        """Give the outcome of a trial, with metrics, outputs and weights, to another trial as well.

        Its row keeps the settings and the code of the training. Returns False, and copies nothing, if
        somebody trains the other trial or has done so. Raises KeyError for an unknown trial. The row comes
        last, as in any attempt: called again after a crash, it finishes the copy.
        """
        if to in last_numbers(self._layout, self._quarantine):
            return False
        rows = read_latest(self._layout, self._quarantine, ["trial", "attempt", "study"]).filter(trial=trial)
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
            found = rows_of_study(self._layout, self._quarantine, dataset, study)
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

    def _studies_of_trials(self) -> list[str]:
        return read_latest(self._layout, self._quarantine, ["study"])["study"].to_list()

    def _end_rename(self, new: str) -> int:
        """Note that a study has its new name in full, so that the old one is free; count its trials."""
        record = self._records.load(new)
        if record is not None and not record.get("rename_ended"):
            self._records.save(new, {**record, "rename_ended": True})
        return self._studies_of_trials().count(new)
