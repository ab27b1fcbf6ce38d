"""Factory of samplers by name: our own, Optuna's and those of plug-ins."""

from __future__ import annotations

from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from .....studies.catalog.samplers import SAMPLERS
from .....studies.catalog.samplers import MakeSampler as MakePlugin
from .....studies.schema.search import default_sampler
from .....studies.schema.search_settings import (
    EvolutionSettings,
    GpTreesSettings,
    SearchSettings,
    TpeSettings,
)
from .....studies.study import Study
from ..plugged_in import made_by_plugin, named_errors
from .evolution import EvolutionSampler
from .gp_trees import TreeSampler
from .optuna_samplers import CmaEsSampler, SobolSampler
from .prior import Prior
from .restartable import MakeSampler, RestartableSampler


def make_sampler(settings: SearchSettings, study: Study) -> optuna.samplers.BaseSampler:
    """Return the sampler of a study's search; "grid" enumerates, and never asks it.

    Raises PluginError if it cannot be made.
    """
    sampler, seed = settings.sampler or default_sampler(settings), settings.seed
    if (make := SAMPLERS[sampler.name].make) is not None:
        return PluginSampler(sampler.name, make, seed)
    if isinstance(sampler, GpTreesSettings):
        prior = Prior(sampler.prior, sampler.confidence) if sampler.prior else None
        return TreeSampler(study, seed=seed, prior=prior)
    if isinstance(sampler, EvolutionSettings):
        return EvolutionSampler(seed=seed, population=sampler.population, sample=sampler.sample)
    if isinstance(sampler, TpeSettings):
        return RestartableSampler(lambda seed, _: _make_tpe(sampler, seed), seed)
    if sampler.name == "quasi_random":
        return RestartableSampler(lambda drawn, place: SobolSampler(seed, place, draw_seed=drawn), seed)
    return RestartableSampler(_OPTUNAS.get(sampler.name, _make_random), seed)


def restored_attributes(sampler: optuna.samplers.BaseSampler, ended: int) -> dict[str, int]:
    """Return the generation of a point that ended after `ended` others, for Optuna's genetic samplers.

    They note it on each trial as they propose it; for points from the store it follows from their order.
    """
    genetic = sampler.genetic if isinstance(sampler, RestartableSampler) else None
    if genetic is None or genetic.population_size is None:
        return {}
    return {f"{type(genetic).__name__}:generation": ended // genetic.population_size}


def _make_random(seed: int, _place: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


def _make_tpe(settings: TpeSettings, seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.TPESampler(
        seed=seed,
        n_startup_trials=settings.n_startup_trials,
        multivariate=settings.multivariate,
        group=settings.multivariate,  # dimensions that only some points have are chosen together as well
    )


_OPTUNAS: dict[str, MakeSampler] = {
    "cmaes": lambda seed, _: CmaEsSampler(seed),
    "gp": lambda seed, _: optuna.samplers.GPSampler(seed=seed),
    "nsga2": lambda seed, _: optuna.samplers.NSGAIISampler(seed=seed),
}


class PluginSampler(optuna.samplers.BaseSampler):
    """A plug-in's sampler, made afresh for each point; what it raises becomes a PluginError with its name.

    Raises PluginError if no sampler can be made.
    """

    def __init__(self, name: str, make: MakePlugin, seed: int) -> None:
        def checked(seed: int, _place: int) -> optuna.samplers.BaseSampler:
            return made_by_plugin(SAMPLERS, name, lambda: make(seed), optuna.samplers.BaseSampler)

        checked(seed, 0)
        self._name, self._sampler = name, RestartableSampler(checked, seed)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the dimensions that are chosen together."""
        with named_errors(SAMPLERS, self._name):
            return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the values that are chosen together."""
        with named_errors(SAMPLERS, self._name):
            return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """Return a value that is chosen by itself."""
        with named_errors(SAMPLERS, self._name):
            return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Prepare a proposal."""
        with named_errors(SAMPLERS, self._name):
            self._sampler.before_trial(study, trial)
