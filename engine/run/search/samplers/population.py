"""Whom evolution draws parents from: what Optuna has been told, in the order in which points ended.

All of it follows from Optuna's trials; what has been read of them is kept, so that each is read once.
"""

from __future__ import annotations

import math
from itertools import takewhile

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .....studies.searches.pareto import crowding, ranks
from .told_points import TrialsOfStudy

_ENDED = (TrialState.COMPLETE, TrialState.PRUNED)

Worth = tuple[float, ...]
"""What a point is compared by; less is better."""


class Population:
    """The living: of one objective the last that ended, of several those that survive.

    With each point that ends the worst of one too many dies: the one furthest beyond the limits, on the last
    front, where most others are (Deb et al. 2002). `begun` counts the points that have not failed, `tries`
    the proposals since the last of them that came to nothing; `space` has the dimensions of all that ended.
    """

    def __init__(self, study: optuna.Study, size: int) -> None:
        self.study, self.space = study, dict[str, BaseDistribution]()
        self._trials = TrialsOfStudy(study)
        self.living: list[FrozenTrial] = []
        self.begun, self.tries = 0, 0
        self._size, self._signs = size, [_sign(each) for each in study.directions]
        self._open: list[int] = []  # places of trials that have not ended
        self._next, self._before = 0, -1
        self._worths: list[Worth] = []  # of the living, made when they are asked for

    def learn(self, before: int) -> None:
        """Take note of all trials with a lower number, once before each trial."""
        if before == self._before:
            return
        self._before = before
        trials, end = self._trials, self._next
        trials.read()
        while end < len(trials) and trials[end].number < before:
            end += 1
        waiting = [*self._open, *range(self._next, end)]
        self._open = [place for place in waiting if not trials[place].state.is_finished()]
        ended = [trials[place] for place in waiting if trials[place].state in _ENDED]
        self.begun += sum(trials[place].state != TrialState.FAIL for place in range(self._next, end))
        self.begun -= sum(trials[place].state == TrialState.FAIL for place in waiting if place < self._next)
        self._next = end
        self.tries = sum(
            1 for _ in takewhile(_has_failed, (trials[place] for place in range(end - 1, -1, -1)))
        )
        for trial in sorted(ended, key=_when_ended):
            self._add(trial)

    def worth(self, place: int) -> Worth:
        """What one of the living is compared by."""
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
        """What the living are compared by: the excess over limits, then the value, or front and crowding."""
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
        """The objectives as losses; the worst of those that were given up, which have none to compare."""
        if trial.state != TrialState.COMPLETE or trial.values is None:
            return (math.inf,) * len(self._signs)
        return tuple(sign * each for sign, each in zip(self._signs, trial.values, strict=True))


def _has_failed(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.FAIL


def _when_ended(trial: FrozenTrial) -> tuple[float, int]:
    assert trial.datetime_complete is not None, "a point that has ended"
    return trial.datetime_complete.timestamp(), trial.number


def _sign(direction: StudyDirection) -> float:
    return -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
