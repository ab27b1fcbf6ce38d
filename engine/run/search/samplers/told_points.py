"""The points of a search in the order in which they ended, read from Optuna as they come.

Each is read once, so that asking for a point takes no longer after ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Generic, TypeVar

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

PointKey = frozenset[tuple[str, Any]]
"""What equal points have in common."""


KnownT = TypeVar("KnownT")


def point_key(values: Mapping[str, Any]) -> PointKey:
    """The values, whatever their order."""
    return frozenset(values.items())


def whole_study(study: optuna.Study) -> optuna.Study:
    """The study of which Hyperband shows a bracket; all of Optuna's own samplers look at the whole."""
    return getattr(study, "_study", study)


class KnownOfShown(Generic[KnownT]):
    """What is known of the study that a sampler is shown; Hyperband shows another for each bracket."""

    def __init__(self, make: Callable[[optuna.Study], KnownT]) -> None:
        self._make = make
        self._last: tuple[optuna.Study, KnownT] | None = None

    def of(self, study: optuna.Study) -> KnownT:
        """What is known of a study, made anew if it is not the last that was shown."""
        if self._last is None or self._last[0] is not study:
            self._last = study, self._make(study)
        return self._last[1]


@dataclass(frozen=True, slots=True)
class EndedPoint:
    """A point that has ended; of two the better one has the greater `goodness`.

    Those that were given up are worse than all others: those given up later are better, and then the value
    that each had then. `excess` is how far it is beyond limits, and `worth` counts that first.
    """

    values: dict[str, Any]
    goodness: tuple[bool, int, float]
    excess: float = 0.0

    @property
    def worth(self) -> tuple[float, tuple[bool, int, float]]:
        """What the better point has more of where there are limits."""
        return -self.excess, self.goodness


class BestAndLast:
    """So many of the last of the points that have ended, and of those before so many of the best."""

    def __init__(self, *, best: int, last: int) -> None:
        self._most, self._last = best, last
        self._best: list[int] = []  # their places
        self._read = 0

    def of(self, ended: Sequence[EndedPoint]) -> list[EndedPoint]:
        """Those of all points so far, which begin with those of the last call, in their order."""
        earlier = max(0, len(ended) - self._last)
        places = [*self._best, *range(self._read, earlier)]
        self._best = sorted(sorted(places, key=lambda place: ended[place].worth)[-self._most :])
        self._read = earlier
        return [*(ended[place] for place in self._best), *ended[earlier:]]


class ToldPoints:
    """What a study of Optuna's, of one objective, has been told; a proposal that fails is no point."""

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self.ended: list[EndedPoint] = []
        self.tries = 0  # the proposals since the last point has begun
        self._rejected: set[PointKey] = set()
        self._open: dict[int, FrozenTrial] = {}  # by their places among the study's trials
        self._read = 0
        self._keys: set[PointKey] = set()

    def __contains__(self, key: PointKey) -> bool:
        """Whether a point has begun, or been rejected since the last that has."""
        return key in self._keys or key in self._rejected

    @property
    def begun(self) -> int:
        """The number of points."""
        return len(self.ended) + len(self._open)

    @property
    def training(self) -> list[dict[str, Any]]:
        """The points that have not ended."""
        return [each.params for each in self._open.values()]

    def read(self, before: int) -> None:
        """Take note of what is new among the trials of lower numbers."""
        trials = self.study.get_trials(deepcopy=False)
        while trials and trials[-1].number >= before:
            trials.pop()
        new = [(place, trials[place]) for place in (*self._open, *range(self._read, len(trials)))]
        self._read = len(trials)
        for place, trial in sorted(new, key=lambda each: _when_ended(each[1])):
            self._take(place, trial)
        failed = list(takewhile(lambda each: each.state == TrialState.FAIL, reversed(trials)))
        self.tries, self._rejected = len(failed), {point_key(each.params) for each in failed}

    def _take(self, place: int, trial: FrozenTrial) -> None:
        """Take note of how a trial stands."""
        self._open.pop(place, None)
        if trial.state == TrialState.FAIL:
            self._keys.discard(point_key(trial.params))
            return
        self._keys.add(point_key(trial.params))
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
            sign = 1 if self.study.direction == StudyDirection.MAXIMIZE else -1
            excess = sum(max(0.0, each) for each in trial.constraints.values())
            self.ended.append(EndedPoint(trial.params, goodness(trial, sign), excess))
        else:
            self._open[place] = trial


def goodness(trial: FrozenTrial, sign: int) -> tuple[bool, int, float]:
    """How good an ended trial is."""
    if trial.state == TrialState.COMPLETE:
        assert trial.value is not None, "a trial that is complete"
        return True, 0, sign * trial.value
    last = trial.last_step
    return (False, -1, 0.0) if last is None else (False, last, sign * trial.intermediate_values[last])


def _when_ended(trial: FrozenTrial) -> tuple[float, int]:
    return trial.datetime_complete.timestamp() if trial.datetime_complete else 0.0, trial.number
