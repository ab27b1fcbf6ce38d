"""Optuna's samplers, made afresh for each point so that a resumed search proposes the same points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from .told_points import KnownOfStudy, Proposals, whole_study

MakeSampler = Callable[[int, int], BaseSampler]
"""Makes one of Optuna's samplers from a seed and from the number of points proposed before."""


class RestartableSampler(BaseSampler):
    """Delegates each proposal to a new sampler, seeded by the search's seed and by the points so far.

    Optuna's samplers keep a random generator from proposal to proposal, which a killed search loses. Here
    all that a proposal depends on is in the store: the points that have begun, and their values.
    """

    def __init__(self, make: MakeSampler, seed: int) -> None:
        self._make, self._seed = make, seed
        self._proposals = KnownOfStudy(Proposals)
        self._current: tuple[optuna.Study, int, BaseSampler] | None = None

    @property
    def genetic(self) -> optuna.samplers.BaseGASampler | None:
        """One of the samplers, if they are genetic."""
        made = self._made(0, 0)
        return made if isinstance(made, optuna.samplers.BaseGASampler) else None

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the dimensions that are chosen together."""
        return self._sampler(study, trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the values that are chosen together."""
        return self._sampler(study, trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """Return a value that is chosen by itself."""
        return self._sampler(study, trial).sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Prepare a proposal."""
        self._sampler(study, trial).before_trial(study, trial)

    def _sampler(self, study: optuna.Study, trial: FrozenTrial) -> BaseSampler:
        """Return the sampler of a trial."""
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
