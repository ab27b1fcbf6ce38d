"""Whom evolution draws parents from: what Optuna has been told, in the order in which points ended.

All of it follows from Optuna's trials; what has been read of them is kept, so that each is read once.
"""

from __future__ import annotations

import math

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .....studies.searches.pareto import crowding, ranks
from .told_points import ENDED, Proposals, when_ended

Worth = tuple[float, ...]
"""What a point is compared by; less is better."""


class Population:
    """The living: of one objective the last that ended, of several those that survive.

    With each point that ends the worst of one too many dies: the one furthest beyond the limits, on the last
    front, where most others are (Deb et al. 2002). `proposals` counts points on whichever rung; `space` has
    the dimensions of all that ended.
    """

    def __init__(self, study: optuna.Study, size: int) -> None:
        self.study, self.space = study, dict[str, BaseDistribution]()
        self.proposals = Proposals(study)
        self.living: list[FrozenTrial] = []
        self._size, self._signs = size, [_sign(each) for each in study.directions]
        self._before = -1
        self._worths: list[Worth] = []  # of the living, made when they are asked for

    def learn(self, before: int) -> None:
        """Take note of all trials with a lower number, once before each trial."""
        if before == self._before:
            return
        self._before = before
        for trial in sorted(self.proposals.read(before), key=when_ended):
            if trial.state in ENDED:
                self._add(trial)

    def worth(self, place: int) -> Worth:
        """Return the value by which a living point is compared."""
        if not self._worths:
            self._worths = self._compare()
        return self._worths[place]

    def _add(self, trial: FrozenTrial) -> None:
        """One more, that has ended, and one less if they are too many."""
        self.space |= trial.distributions
        self.living.append(trial)
        self._worths = []
        if len(self.living) > self._size:
            oldest_dies = len(self._signs) == 1
            del self.living[0 if oldest_dies else max(range(len(self.living)), key=self.worth)]
            self._worths = []

    def _compare(self) -> list[Worth]:
        """Return the values by which living points are compared.

        They are the excess over limits, then the value, or front and crowding distance.
        """
        excess = [sum(max(0.0, each) for each in trial.constraints.values()) for trial in self.living]
        losses = [self._losses(trial) for trial in self.living]
        if len(self._signs) == 1:
            return [(over, *loss) for over, loss in zip(excess, losses, strict=True)]
        fronts: list[int] = ranks(losses)
        found: list[Worth] = [()] * len(losses)
        for rank in set(fronts):
            places = [place for place, each in enumerate(fronts) if each == rank]
            for place, room in zip(places, crowding([losses[each] for each in places]), strict=True):
                found[place] = (excess[place], rank, -room)
        return found

    def _losses(self, trial: FrozenTrial) -> tuple[float, ...]:
        """Return the objectives as losses.

        Points that were given up have no comparable value and get the worst.
        """
        if trial.state != TrialState.COMPLETE or trial.values is None:
            return (math.inf,) * len(self._signs)
        return tuple(sign * each for sign, each in zip(self._signs, trial.values, strict=True))


def _sign(direction: StudyDirection) -> float:
    return -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
