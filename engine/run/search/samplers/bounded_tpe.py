"""TPE that learns from the best points and the last ones, so that asking takes no longer after thousands.

Optuna's tells at most 25 points as good from all others. The best points are kept, so that the good ones are
the same; of the others the last ones stand for all. That is of one objective; of several it learns from all.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, cast

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .told_points import KnownOfShown, goodness

BEST, LAST, MORE = 64, 192, 64
"""Of more points so many of the best are kept and the last ones, and so many more before others go."""

_ENDED = (TrialState.COMPLETE, TrialState.PRUNED)


class BoundedTPE(optuna.samplers.TPESampler):
    """Optuna's sampler, which is shown a part of a study."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 -- as Optuna has it
        super().__init__(**settings)
        self._told = KnownOfShown(LearntFrom)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The dimensions that are chosen together."""
        return super().infer_relative_search_space(self._part(study), trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """What is chosen together."""
        return super().sample_relative(self._part(study), trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """What is chosen by itself."""
        return super().sample_independent(self._part(study), trial, param_name, param_distribution)

    def _part(self, study: optuna.Study) -> optuna.Study:
        """The study with the points that are learnt from; all of one that Hyperband shows in part already."""
        if len(study.directions) > 1 or type(study) is not optuna.Study:
            return study
        return cast("optuna.Study", _Part(study, self._told.of(study).read()))


class _Part:
    """A study that shows some of its trials."""

    def __init__(self, study: optuna.Study, trials: list[FrozenTrial]) -> None:
        self._whole, self._shown = study, trials

    def get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Those of these states."""
        return self._get_trials(deepcopy, states)

    def _get_trials(
        self,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
        use_cache: bool = False,
    ) -> list[FrozenTrial]:
        del deepcopy, use_cache
        return [each for each in self._shown if states is None or each.state in states]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- all else is the study's
        return getattr(self._whole, name)


class LearntFrom:
    """The trials of a study that are learnt from: each is read once."""

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self._sign = 1 if study.direction == StudyDirection.MAXIMIZE else -1
        self._ended: list[FrozenTrial] = []
        self._open: list[int] = []
        self._read = 0

    def read(self) -> list[FrozenTrial]:
        """Those that have ended and are kept, in the order of their numbers, and those that have not."""
        trials = self.study.get_trials(deepcopy=False)
        places, self._read = [*self._open, *range(self._read, len(trials))], len(trials)
        self._open = [place for place in places if not trials[place].state.is_finished()]
        self._ended += [trials[place] for place in places if trials[place].state in _ENDED]
        if len(self._ended) > BEST + LAST + MORE:
            earlier, last = self._ended[:-LAST], self._ended[-LAST:]
            self._ended = sorted(earlier, key=self._worth)[-BEST:] + last
        return sorted([*self._ended, *(trials[place] for place in self._open)], key=lambda each: each.number)

    def _worth(self, trial: FrozenTrial) -> tuple[float, tuple[bool, int, float]]:
        """What the better trial has more of: first of what is least beyond the limits."""
        return -sum(max(0.0, each) for each in trial.constraints.values()), goodness(trial, self._sign)
