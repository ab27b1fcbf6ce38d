"""The points of a search that somebody has begun: what has rows or checkpoints is noticed once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from ....storage import Store
from ....storage.checkpoint_notes import STARTS_FILE
from ....studies.planning.fitting_trials import FittingTrials
from ....studies.planning.status import tried_point
from ....studies.planning.trials_to_run import Spent, counts, unfinished_trials
from ....studies.resolve.plugin_code import changed_code
from ....studies.resolve.trial import Trial
from ....studies.schema.settings import Level
from ....studies.study import Study
from .stored_points import SearchPoint, StoredPoints


class Missing(Protocol):
    """What of a point is to be trained."""

    def __call__(self, point: SearchPoint) -> Sequence[object]:
        """The trials that have no outcome."""
        ...


class BegunPoints:
    """Looks for what is new; `own` are the trials that this driver has begun, which are no news.

    `spent` is what the trainings of the study that the store has have taken.
    """

    def __init__(self, study: Study, store: Store, points: StoredPoints, missing: Missing) -> None:
        assert study.search is not None
        self._study, self._store, self._points, self._missing = study, store, points, missing
        self._fitting = FittingTrials(study) if study.search.warm_start else None
        self._read = 0  # so many of the stored rows have been looked at
        self._seen: set[str] = set()  # trials of this study that the store holds or others have begun
        taken = store.taken(study.name).select("trial", "factors", "at").iter_rows()
        self._taken = {trial: (json.loads(factors), at) for trial, factors, at in taken}
        self.own: set[str] = set()
        self.spent = Spent()
        self._counted: dict[str, Mapping[str, Any]] = {}  # of which trials it is

    def new(self) -> list[SearchPoint]:
        """The points that have rows or checkpoints since the last call; of other studies the whole ones."""
        stored, begun = self._points.attempts, dict[str, Mapping[str, Level]]()
        elsewhere: set[str] = set()
        arrived = stored.since(self._read)
        self._read += len(arrived)
        new = dict.fromkeys(arrived)
        ends = {trial: (self._end(trial, stored[trial]), trial) for trial in new}
        for trial in sorted(new, key=ends.__getitem__):  # samplers depend on the order
            row, is_known = stored[trial], trial in self.own or trial in self._seen
            self._seen.add(trial)
            if self._is_taken(trial, row):
                begun |= {} if is_known else {trial: self._taken[trial][0]}
            elif trial in self.own or self._is_own(trial, row):
                begun |= {} if is_known else {trial: json.loads(row["factors"])}
                self._count(trial, row)
            elif (
                self._fitting is not None and not is_known and (found := self._fitting.find(row)) is not None
            ):
                begun[trial] = found.levels
                elsewhere.add(trial)
        begun |= self._unfinished()
        points = self._points.of_levels(begun.values())
        own = begun.keys() - elsewhere
        return [
            each
            for each in points
            if elsewhere.isdisjoint(ids := {trial.id for trial in each.trials})
            or not own.isdisjoint(ids)
            or not self._missing(each)
        ]

    def begin(self, point: SearchPoint, trials: Iterable[Trial]) -> None:
        """Note that this driver trains these trials of a point, and has what others have trained of it."""
        self.own.update(trial.id for trial in trials)
        for trial in point.trials:
            row = self._points.attempts.get(trial.id)
            if row is not None and trial.id not in self._taken and not self._is_own(trial.id, row):
                self._store.take(trial.id, self._study.name, json.dumps(dict(trial.levels)))
                self._taken[trial.id] = dict(trial.levels), datetime.now(UTC)
                self._seen.add(trial.id)

    def _end(self, trial: str, row: Mapping[str, Any]) -> datetime:
        """When this search had the end of a trial."""
        return self._taken[trial][1] if self._is_taken(trial, row) else row["finished"]

    def _is_taken(self, trial: str, row: Mapping[str, Any]) -> bool:
        """Whether a trial of another study counts as one of a point of this search."""
        if trial not in self._taken or self._is_own(trial, row):
            return False
        return tried_point(self._study, trial, self._taken[trial][0]) is not None

    def _count(self, trial: str, row: Mapping[str, Any]) -> None:
        """Add up what a training has taken, in place of what an earlier attempt at it had."""
        if (before := self._counted.pop(trial, None)) is not None:
            self.spent.add(before, times=-1)
        if counts(row):
            self.spent.add(row)
            self._counted[trial] = row

    def _unfinished(self) -> dict[str, Mapping[str, Level]]:
        """The levels of trials of this search that have begun, by id, of which nothing was known."""
        found: dict[str, Mapping[str, Level]] = {}
        begun = unfinished_trials(self._store.files.checkpoints_folder(STARTS_FILE), self._study.name)
        for trial in (each.trial for each in begun):
            if trial.id not in self._seen:
                self._seen.add(trial.id)
                if tried_point(self._study, trial.id, trial.levels) is not None:
                    found[trial.id] = dict(trial.levels)
        return found

    def _is_own(self, trial: str, row: Mapping[str, Any]) -> bool:
        """Whether a trial was stored as one of this search's points, maybe with plug-ins of other source."""
        if row["study"] != self._study.name:
            return False
        levels = json.loads(row["factors"])
        return tried_point(self._study, trial, levels) is not None or bool(changed_code(row["settings"]))
