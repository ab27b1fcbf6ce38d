"""Seeds that could be added: the trials, what they are expected to decide, and how long they train."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...studies.text.units import plural

if TYPE_CHECKING:
    from ...studies.planning.time_estimates import TimeEstimator
    from ...studies.resolve.trial import Trial

MIN_CHANCE = 0.01
"""A candidate is left out if its chance to decide something is smaller, however many seeds are added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSeeds:
    """The trials to add, up to how many `seeds`, for a claim or a table of this name.

    `undecided` counts the open questions: one claim, or some differences of a table. `expected` is how many
    of them should be decided once there are `seeds_then` seeds. It is None while there is only one seed,
    since one seed has no spread. `seconds` is how long these trials will train, one after the other, and
    `seconds_then` how long all trials until `seeds_then` will. Both are None if no time of their cells is
    known.
    """

    kind: Literal["claim", "table"]
    name: str
    trials: tuple[Trial, ...]
    seeds: int
    seconds: float | None
    undecided: int
    expected: float | None
    seeds_then: int
    seconds_then: float | None

    def __repr__(self) -> str:
        return f"<NextSeeds for {self.kind} {self.name!r}: {plural(len(self.trials), 'trial')}>"

    @property
    def chance(self) -> float | None:
        """Return the chance that a question is decided by then, the mean of several; None if unknown."""
        return None if self.expected is None else self.expected / self.undecided


def total_seconds(trials: Sequence[Trial], estimator: TimeEstimator) -> float | None:
    """Return how long trials train, one after the other; None if it is unknown of one."""
    times = [estimator.estimate(trial).seconds for trial in trials]
    known = [time for time in times if time is not None]
    return math.fsum(known) if len(known) == len(times) else None
