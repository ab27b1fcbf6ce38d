"""NSGA-II and NSGA-III as Optuna has them, which look at each point once.

Optuna's count all points whenever one is asked for, to find the generation that it is of and its parents.
What they propose is the same.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property
from typing import Any, cast

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from .told_points import KnownOfShown, TrialsOfStudy, whole_study


class _PointsByGeneration:
    """The points of a study that have ended, by generation, and the parents of each generation."""

    def __init__(self, study: optuna.Study, key: str) -> None:
        self._trials, self._key = TrialsOfStudy(study), key
        self.space: dict[str, BaseDistribution] | None = None  # the dimensions that all points have
        self.members: dict[int, list[FrozenTrial]] = {}
        self.parents: dict[int, list[FrozenTrial]] = {0: []}
        self._open: list[int] = []  # places of trials that have not ended
        self._read, self._before = 0, -1

    @property
    def last(self) -> list[FrozenTrial]:
        """The points of the last generation."""
        return self.members[max(self.members)] if self.members else []

    def read(self, before: int) -> None:
        """Take note of what has ended since, once before each trial."""
        if before == self._before:
            return
        trials = self._trials
        trials.read()
        places = [*self._open, *range(self._read, len(trials))]
        self._before, self._read = before, len(trials)
        self._open = [place for place in places if not trials[place].state.is_finished()]
        for trial in (trials[place] for place in places):
            if trial.state == TrialState.COMPLETE:
                self._add(trial)

    def _add(self, trial: FrozenTrial) -> None:
        """Take note of a point that has ended."""
        if (generation := trial.system_attrs.get(self._key)) is not None:
            self.members.setdefault(generation, []).append(trial)
        space = trial.distributions if self.space is None else self.space
        self.space = {name: each for name, each in space.items() if trial.distributions.get(name) == each}


class _ReadOnce(optuna.samplers.BaseGASampler):
    """What Optuna's samplers look for in all points, from what is known of them."""

    @cached_property
    def _known(self) -> KnownOfShown[_PointsByGeneration]:
        return KnownOfShown(lambda study: _PointsByGeneration(study, f"{type(self).__name__}:generation"))

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The dimensions that all points have."""
        known = self._known.of(whole_study(study))
        known.read(trial.number)
        return {name: each for name, each in sorted((known.space or {}).items()) if not each.single()}

    def get_trial_generation(self, study: optuna.Study, trial: FrozenTrial) -> int:
        """The generation that a point is of."""
        known = self._known.of(whole_study(study))
        known.read(trial.number)
        return super().get_trial_generation(cast("optuna.Study", _Part(study, known.last)), trial)

    def get_population(self, study: optuna.Study, generation: int) -> list[FrozenTrial]:
        """The points of a generation that have ended, in the order of their numbers."""
        members = self._known.of(whole_study(study)).members.get(generation, [])
        return sorted(members, key=lambda each: each.number)

    def get_parent_population(self, study: optuna.Study, generation: int) -> list[FrozenTrial]:
        """The parents of a generation, which are chosen when its first point is asked for.

        Those come in the order in which they are chosen, later in that of their numbers.
        """
        parents = self._known.of(whole_study(study)).parents
        chosen: list[FrozenTrial] | None = None
        for each in range(len(parents), generation + 1):  # of a restored search all generations so far
            chosen = self.select_parent(study, each)
            parents[each] = sorted(chosen, key=lambda trial: trial.number)
        return parents[generation] if chosen is None else chosen


class _Part:
    """A study that shows some of its trials."""

    def __init__(self, study: optuna.Study, trials: Sequence[FrozenTrial]) -> None:
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


class NSGAIISampler(_ReadOnce, optuna.samplers.NSGAIISampler):
    """Deb et al. 2002."""


class NSGAIIISampler(_ReadOnce, optuna.samplers.NSGAIIISampler):
    """Deb and Jain 2014."""
