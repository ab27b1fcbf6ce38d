"""The points of a search in the order in which they ended, read from Optuna as they come.

Each is read once, so that asking for a point takes no longer after ten thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

PointKey = frozenset[tuple[str, Any]]
"""What equal points have in common."""


def point_key(values: Mapping[str, Any]) -> PointKey:
    """The values, whatever their order."""
    return frozenset(values.items())


@dataclass(frozen=True, slots=True)
class EndedPoint:
    """A point that has ended; of two the better one has the greater `goodness`.

    Those that were given up are worse than all others: those given up later are better, and then the value
    that each had then.
    """

    values: dict[str, Any]
    goodness: tuple[bool, int, float]


class ToldPoints:
    """What one study of Optuna's, of one objective, has been told; a proposal that fails is no point."""

    def __init__(self) -> None:
        self.ended: list[EndedPoint] = []
        self.open: dict[int, dict[str, Any]] = {}
        self.rejected: set[PointKey] = set()
        self.begun = 0
        self._read = 0
        self._keys: set[PointKey] = set()

    def __contains__(self, key: PointKey) -> bool:
        """Whether a point has begun, or been rejected since the last that has."""
        return key in self._keys or key in self.rejected

    def read(self, study: optuna.Study, before: int) -> None:
        """Take note of what is new among the trials of lower numbers."""
        trials = study.get_trials(deepcopy=False)[:before]
        numbers = [*self.open, *range(self._read, before)]
        self._read = before
        for trial in sorted((trials[number] for number in numbers), key=_when_ended):
            self._take(trial, 1 if study.direction == StudyDirection.MAXIMIZE else -1)
        failed = takewhile(lambda each: each.state == TrialState.FAIL, reversed(trials))
        self.rejected = {point_key(each.params) for each in failed}
        self.begun = len(self.ended) + len(self.open)

    def _take(self, trial: FrozenTrial, sign: int) -> None:
        """Take note of how a trial stands."""
        self.open.pop(trial.number, None)
        if trial.state == TrialState.FAIL:
            return self._keys.discard(point_key(trial.params))
        self._keys.add(point_key(trial.params))
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
            self.ended.append(EndedPoint(trial.params, _goodness(trial, sign)))
        else:
            self.open[trial.number] = trial.params
        return None


def _goodness(trial: FrozenTrial, sign: int) -> tuple[bool, int, float]:
    """How good an ended trial is."""
    if trial.state == TrialState.COMPLETE:
        assert trial.value is not None, "a trial that is complete"
        return True, 0, sign * trial.value
    last = trial.last_step
    return (False, -1, 0.0) if last is None else (False, last, sign * trial.intermediate_values[last])


def _when_ended(trial: FrozenTrial) -> tuple[float, int]:
    return trial.datetime_complete.timestamp() if trial.datetime_complete else 0.0, trial.number
