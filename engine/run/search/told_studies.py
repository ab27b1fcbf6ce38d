"""What a sampler learns from: the points of one rung, the highest that enough points have come to.

As in BOHB (Falkner et al. 2018): values of different rungs are never compared. Of each rung there is a study
of Optuna's, and the sampler is asked with one of them; a search without rungs has one. Each of them knows all
points of the search: those that have ended on another rung as trials that failed, with a note.
"""

from __future__ import annotations

from collections.abc import Callable

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from ....studies.study import Study
from .samplers.told_points import ELSEWHERE, PointKey, point_key
from .stored_points import PointEnd

ENOUGH, MORE_THAN_DIMENSIONS = 10, 3
"""A rung is learnt from once so many points have a value there, so many more than dimensions."""


def enough_points(study: Study) -> int:
    """Return how many points with a value a rung needs before samplers learn from it."""
    return max(ENOUGH, len(study.dimensions) + MORE_THAN_DIMENSIONS)


class ToldStudies:
    """The studies of a search's rungs, the smallest first; `enough` points are learnt from."""

    def __init__(self, make: Callable[[], optuna.Study], rungs: int, *, enough: int) -> None:
        self._studies = [make() for _ in range(rungs)]
        self._complete = [0] * rungs
        self._known = [set[PointKey]() for _ in range(rungs)]
        self._enough = enough

    @property
    def asked(self) -> optuna.Study:
        """The study that the sampler is asked with."""
        for study, complete in zip(reversed(self._studies), reversed(self._complete), strict=True):
            if complete >= self._enough:
                return study
        return self._studies[0]

    def add(self, found: FrozenTrial, rung: int) -> None:
        """Add a point that has ended on a rung."""
        self._studies[rung].add_trial(found)
        self._complete[rung] += found.state == TrialState.COMPLETE
        self._note_elsewhere(found, rung)

    def tell(self, trial: optuna.Trial, end: PointEnd, rung: int) -> bool:
        """Tell how the point of a trial ended on a rung; False if it was asked for with another's points.

        There it has no value then.
        """
        if trial.study is not self._studies[rung]:
            self._known[self._studies.index(trial.study)].add(point_key(trial.params))
            trial.set_user_attr(ELSEWHERE, True)
            trial.study.tell(trial, state=TrialState.FAIL)
            return False
        for limit, excess in end.excess.items():
            trial.set_constraint(limit, excess)
        trial.study.tell(trial, end.values if end.state == TrialState.COMPLETE else None, state=end.state)
        self._complete[rung] += end.state == TrialState.COMPLETE
        self._note_elsewhere(trial, rung)
        return True

    def _note_elsewhere(self, found: FrozenTrial | optuna.Trial, rung: int) -> None:
        """Let the studies of the other rungs know of a point, each once."""
        key = point_key(found.params)
        self._known[rung].add(key)
        for study, known in zip(self._studies, self._known, strict=True):
            if key not in known:
                known.add(key)
                study.add_trial(
                    create_trial(
                        params=found.params,
                        distributions=dict(found.distributions),
                        state=TrialState.FAIL,
                        user_attrs={ELSEWHERE: True},
                    )
                )
