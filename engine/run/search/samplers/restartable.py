"""Optuna's samplers, created anew for each point so that a resumed search proposes the same points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from .search_observations import PerStudyCache, Proposals, whole_study

DRAWN = 10
"""The number of random points before CMA-ES learns from results."""


class SobolSampler(optuna.samplers.QMCSampler):
    """Optuna's scrambled Sobol sequence, started at a given position."""

    def __init__(self, seed: int, place: int, *, draw_seed: int) -> None:
        drawn = optuna.samplers.RandomSampler(seed=draw_seed)
        super().__init__(scramble=True, seed=seed, independent_sampler=drawn, warn_independent_sampling=False)
        self._place = place

    def _find_sample_id(self, study: optuna.Study, search_space: dict[str, BaseDistribution]) -> int:
        """Return the position; Optuna counts positions in the study, and a restored study has no count."""
        del study, search_space
        return self._place


class CmaEsSampler(optuna.samplers.CmaEsSampler):
    """Optuna's CMA-ES, started from the best ended point."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        super().__init__(seed=seed, warn_independent_sampling=False)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
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


MakeSampler = Callable[[int, int], BaseSampler]
"""Makes one of Optuna's samplers from a seed and the number of points proposed before."""


class RestartableSampler(BaseSampler):
    """Sampler that delegates each proposal to a new one, seeded by the search's seed and the points so far.

    Optuna's samplers keep a random generator between proposals, which a killed search loses. Here a proposal
    depends only on the store: the begun points, and their values. Exceptions of the sampler pass through the
    context `errors`.
    """

    def __init__(
        self, make: MakeSampler, seed: int, errors: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._make, self._seed, self._errors = make, seed, errors
        self._proposals = PerStudyCache(Proposals)
        self._current: tuple[optuna.Study, int, BaseSampler] | None = None
        self._first = self._made(0, 0)  # a sampler that cannot be made raises here

    @property
    def genetic(self) -> optuna.samplers.BaseGASampler | None:
        """Return one of the samplers if they are genetic."""
        return self._first if isinstance(self._first, optuna.samplers.BaseGASampler) else None

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        with self._errors():
            return self._sampler(study, trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        with self._errors():
            return self._sampler(study, trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        with self._errors():
            sampler = self._sampler(study, trial)
            return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        with self._errors():
            self._sampler(study, trial).before_trial(study, trial)

    def _sampler(self, study: optuna.Study, trial: FrozenTrial) -> BaseSampler:
        whole = whole_study(study)
        if self._current is None or self._current[0] is not whole or self._current[1] != trial.number:
            proposals = self._proposals.of(whole)
            proposals.read(trial.number)
            begun, tries = proposals.begun, proposals.tries
            seed = Random(f"{self._seed} {begun} {tries}").getrandbits(32)
            self._current = whole, trial.number, (sampler := self._made(seed, begun + tries))
            if isinstance(sampler, optuna.samplers.BaseGASampler):
                # Optuna orders the parents otherwise for the proposal that selects them than for later ones.
                sampler.get_parent_population(whole, sampler.get_trial_generation(whole, trial))
        return self._current[2]

    def _made(self, seed: int, place: int) -> BaseSampler:
        with warnings.catch_warnings():  # Optuna's version is pinned
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return self._make(seed, place)
