"""Optuna's CMA-ES and Sobol samplers, changed to depend on the points alone."""

from __future__ import annotations

import warnings
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from .told_points import whole_study

DRAWN = 10
"""The number of points with a value before CMA-ES learns from them."""


class SobolSampler(optuna.samplers.QMCSampler):
    """Optuna's scrambled Sobol sequence, begun at a place of it."""

    def __init__(self, seed: int, place: int, *, draw_seed: int) -> None:
        drawn = optuna.samplers.RandomSampler(seed=draw_seed)
        super().__init__(scramble=True, seed=seed, independent_sampler=drawn, warn_independent_sampling=False)
        self._place = place

    def _find_sample_id(self, study: optuna.Study, search_space: dict[str, BaseDistribution]) -> int:
        """Return the place; Optuna counts places in the study, and a restored study has no count."""
        del study, search_space
        return self._place


class CmaEsSampler(optuna.samplers.CmaEsSampler):
    """Optuna's CMA-ES, started from the best of all points that have ended."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        super().__init__(seed=seed, warn_independent_sampling=False)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the values of a point; nothing, which draws them, for the first points."""
        ended = whole_study(study).get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(ended) < DRAWN or not search_space:
            return {}
        one_point = optuna.create_study(
            direction=study.direction
        )  # Optuna would keep its state in the trials
        one_point.ask()
        with warnings.catch_warnings():  # Optuna's version is pinned
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.CmaEsSampler(
                seed=self._seed, source_trials=ended, warn_independent_sampling=False
            )
        return sampler.sample_relative(one_point, one_point.get_trials(deepcopy=False)[0], search_space)
