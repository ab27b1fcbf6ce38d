"""Candidates for additional seeds: trials, expected decisions, and training time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from ...studies.text.units import plural

if TYPE_CHECKING:
    from ...studies.planning.time_estimates import TimeEstimator
    from ...studies.resolve.trial import Trial

MIN_CHANCE = 0.01
"""A candidate is dropped if its chance to decide anything stays below this, however many seeds are added."""

Kind = Literal["claim", "table"]

QuestionT = TypeVar("QuestionT")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSeeds:
    """The trials to add, up to `seeds` seeds, for a claim or a table with this name.

    `undecided` counts the open questions: one claim, or some differences of a table. `expected` is the
    expected number of them that are decided at `seeds_at_decision` seeds; None while there is only one seed,
    which has no spread. `seconds` is the sequential training time of these trials, and `seconds_at_decision`
    that of all trials up to `seeds_at_decision`. Both are None if unknown for their cells.
    """

    kind: Kind
    name: str
    trials: tuple[Trial, ...]
    seeds: int
    seconds: float | None
    undecided: int
    expected: float | None
    seeds_at_decision: int
    seconds_at_decision: float | None

    def __repr__(self) -> str:
        return f"<NextSeeds for {self.kind} {self.name!r}: {plural(len(self.trials), 'trial')}>"

    @property
    def chance(self) -> float | None:
        """Return the chance that a question is decided by then, averaged over questions; None if unknown."""
        return None if self.expected is None else self.expected / self.undecided


class OpenResult(ABC, Generic[QuestionT]):
    """A claim or a table with open questions, to which seeds may be added.

    A question is an undecided comparison of a claim, or an undecided difference of a table.
    """

    kind: ClassVar[Kind]

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the name of the claim or table."""

    @property
    @abstractmethod
    def looks(self) -> Sequence[Sequence[int]]:
        """Return the seeds of each look."""

    @abstractmethod
    def groups(self) -> list[list[QuestionT]]:
        """Return the questions that may be asked again: each by itself first, then several together."""

    @abstractmethod
    def held(self, question: QuestionT) -> int:
        """Return how many looks at a question have taken place."""

    @abstractmethod
    def is_blind(self, question: QuestionT) -> bool:
        """Return whether a question has one seed, and so no spread."""

    @abstractmethod
    def trials(self, question: QuestionT, seeds: Collection[int]) -> Iterable[Trial]:
        """Return the trials of a question with these seeds that have not ended."""

    @abstractmethod
    def expect(self, group: Sequence[QuestionT], ahead: int) -> tuple[Sequence[QuestionT], float]:
        """Return the questions that may be decided so many looks ahead, and how many should be."""

    def count(self, group: Sequence[QuestionT]) -> int:
        """Return the number of questions in a group."""
        return len(group)

    def seeds(self, question: QuestionT, ahead: int) -> Sequence[int]:
        """Return the seeds of a question `ahead` looks from now."""
        return self.looks[min(self.held(question) + ahead, len(self.looks)) - 1]

    def candidates(self, estimator: TimeEstimator) -> Iterator[NextSeeds]:
        """Yield candidates: seeds of one question, or of several.

        If some questions have a single seed, and so no spread, all candidates are seeds of these.
        """
        groups = self.groups()
        blind = [group[0] for group in groups if len(group) == 1 and self.is_blind(group[0])]
        if blind:
            yield from self._candidate(blind, 1, estimator, None)
            return
        for group in groups:
            for ahead in range(1, len(self.looks)):
                chosen, expected = self.expect(group, ahead)
                if expected >= MIN_CHANCE:
                    yield from self._candidate(chosen, ahead, estimator, expected)

    def _candidate(
        self, chosen: Sequence[QuestionT], ahead: int, estimator: TimeEstimator, expected: float | None
    ) -> Iterator[NextSeeds]:
        """Yield the candidate that brings questions to their next look; nothing if it needs no trial."""
        soon, then = self._to_train(chosen, 1), self._to_train(chosen, ahead)
        if soon:
            yield NextSeeds(
                kind=self.kind,
                name=self.name,
                trials=soon,
                seeds=max(len(self.seeds(each, 1)) for each in chosen),
                seconds=_total_seconds(soon, estimator),
                undecided=self.count(chosen),
                expected=expected,
                seeds_at_decision=max(len(self.seeds(each, ahead)) for each in chosen),
                seconds_at_decision=_total_seconds(then, estimator),
            )

    def _to_train(self, chosen: Sequence[QuestionT], ahead: int) -> tuple[Trial, ...]:
        found = (trial for each in chosen for trial in self.trials(each, self.seeds(each, ahead)))
        return tuple({trial.id: trial for trial in found}.values())


def _total_seconds(trials: Sequence[Trial], estimator: TimeEstimator) -> float | None:
    """Return the sequential training time of trials; None if it is unknown for one of them."""
    times = [estimator.estimate(trial).seconds for trial in trials]
    known = [time for time in times if time is not None]
    return math.fsum(known) if len(known) == len(times) else None
