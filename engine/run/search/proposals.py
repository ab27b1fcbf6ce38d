"""Points that a search would try next, and points that a program hands in.

Nothing is trained here. A point that is handed in is stored as one that was begun and not finished: the next
run trains it, and a search that runs already learns of it. Results come from trainings alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ....storage import Store
from ....storage.checkpoint_notes import STARTS_FILE, is_begun
from ....studies.study import Study
from ....studies.text.errors import StudyError, StudyFault
from ...core.events import NOBODY
from ...trial.checkpoints import checkpoint_of
from .handed_in import PointError, read_handed_in
from .search import Search
from .stored_points import SearchPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A point that a search would try next, and its source: the sampler, "random", "grid" or "baseline"."""

    point: SearchPoint
    proposed_by: str


class PointAnswer(StrEnum):
    """The answers to a point that was handed in."""

    ACCEPTED = "accepted"  # the next run trains it
    WAITING = "waiting"  # it was handed in before, or begun by a run
    KNOWN = "known"  # all of its trials have ended
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedIn:
    """The answer to a point that was handed in; `trials` has the stored outcomes of a known one, by seed."""

    answer: PointAnswer
    point: SearchPoint | None = None
    trials: tuple[Mapping[str, Any], ...] = ()
    faults: tuple[str, ...] = ()


class SearchDesk:
    """A study's search for programs: it proposes points, and takes those of the program.

    Raises StudyError for a study that is no search.
    """

    def __init__(self, study: Study, store: Store) -> None:
        if study.search is None:
            message = f"expected a study with [search], got a grid of {study.total:,} trials"
            raise StudyError(study.name, [StudyFault(message=message)])
        self._study, self._store, self._limit = study, store, study.search.trials
        self._search = Search(study, store, "desk", NOBODY, looks=True)

    def propose(self, count: int) -> list[Proposal]:
        """Return at most `count` of the next points that nobody has begun."""
        found: list[Proposal] = []
        while len(found) < count and (proposed := self._search.propose()) is not None:
            found.append(Proposal(point=proposed[0], proposed_by=proposed[1]))
        return found

    def hand_in_text(self, text: str) -> HandedIn:
        """Take a point as `hand_in` does, from its JSON."""
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            return HandedIn(
                answer=PointAnswer.REFUSED, faults=(f"expected an object of JSON, got none: {error}",)
            )
        return self.hand_in(line)

    def hand_in(self, line: object) -> HandedIn:
        """Take a point of the study's space, as JSON has it, for the next run; or say why not.

        A known point is answered with the outcomes of its trainings, and is not trained again.
        """
        found = self.look_up(line)
        if found.answer is PointAnswer.ACCEPTED and found.point is not None:
            for trial in self._search.missing_trials(found.point):
                checkpoint_of(self._store, trial.id).record_request(trial.to_json())
        return found

    def look_up(self, line: object) -> HandedIn:
        """Return what `hand_in` would answer; store nothing."""
        try:
            point = read_handed_in(self._study, line)
        except PointError as error:
            return HandedIn(answer=PointAnswer.REFUSED, faults=tuple(error.faults))
        known = self._search.count_known()
        stored, missing = self._search.outcomes(point), self._search.missing_trials(point)
        if not missing:
            return HandedIn(answer=PointAnswer.KNOWN, point=point, trials=stored)
        begun = self._store.files.checkpoints_folder(STARTS_FILE)
        if stored or any(is_begun(begun / trial.id) for trial in missing):
            return HandedIn(answer=PointAnswer.WAITING, point=point)
        if known >= self._limit:
            fault = (
                f"expected a search with points left, got one whose {self._limit:,} are all tried or begun"
            )
            return HandedIn(
                answer=PointAnswer.REFUSED, point=point, faults=(f"{fault}: raise trials in [search]",)
            )
        return HandedIn(answer=PointAnswer.ACCEPTED, point=point)
