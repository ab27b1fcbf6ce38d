"""The samplers of searches by name; what a plug-in's sampler raises is reported with its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from .....studies.catalog.samplers import SAMPLERS
from .....studies.schema.search_settings import EVOLUTION_POPULATION, EVOLUTION_SAMPLE, SearchSettings
from .....studies.study import Study
from ..plugged_in import made_by_plugin, told_by_name
from .cma_es import CmaEsSampler
from .evolution import EvolutionSampler
from .gp_trees import TreeSampler
from .prior import Prior, PriorSampler
from .quasi_random import QuasiRandomSampler
from .restartable import MakeSampler, RestartableSampler


def make_sampler(settings: SearchSettings, study: Study) -> optuna.samplers.BaseSampler:
    """Return the sampler of a study's search; "grid" enumerates, and never asks it.

    Raises PluginError if it cannot be made.
    """
    prior = Prior(settings.prior, settings.trusted) if settings.prior else None
    if settings.sampler == "gp_trees":
        return TreeSampler(study, seed=settings.seed, prior=prior)
    sampler = _make_without_prior(settings, study)
    return sampler if prior is None else PriorSampler(sampler, prior, seed=settings.seed)


def restored_attributes(sampler: optuna.samplers.BaseSampler, ended: int) -> dict[str, int]:
    """Return the generation of a point that ended after `ended` others, for Optuna's genetic samplers.

    They note it on each trial as they propose it; for points from the store it follows from their order.
    """
    genetic = sampler.genetic if isinstance(sampler, RestartableSampler) else None
    if genetic is None or genetic.population_size is None:
        return {}
    return {f"{type(genetic).__name__}:generation": ended // genetic.population_size}


def _make_without_prior(settings: SearchSettings, study: Study) -> optuna.samplers.BaseSampler:
    """Return a sampler that knows no prior."""
    if (make := SAMPLERS[settings.sampler].make) is not None:
        return PluginSampler(settings.sampler, make, settings.seed)
    match settings.sampler:
        case "evolution":
            population, sample = settings.population, settings.sample
            return EvolutionSampler(
                seed=settings.seed,
                population=population or EVOLUTION_POPULATION,
                sample=sample or EVOLUTION_SAMPLE,
            )
        case "cmaes":
            return CmaEsSampler(study, seed=settings.seed)
        case "quasi_random":
            return QuasiRandomSampler(study, seed=settings.seed)
        case _:
            return RestartableSampler(_optuna_sampler(settings), settings.seed)


def _optuna_sampler(settings: SearchSettings) -> MakeSampler:
    """Return what makes Optuna's sampler of that name from a seed."""
    match settings.sampler:
        case "tpe":
            multivariate = settings.multivariate is not False
            return partial(
                _seeded,
                optuna.samplers.TPESampler,
                multivariate=multivariate,
                group=multivariate if settings.group is None else settings.group,
                constant_liar=settings.constant_liar is not False,
            )
        case "gp":
            return partial(_seeded, optuna.samplers.GPSampler)
        case "nsga2":
            return partial(_seeded, optuna.samplers.NSGAIISampler)
        case _:
            return partial(_seeded, optuna.samplers.RandomSampler)


def _seeded(
    kind: Callable[..., optuna.samplers.BaseSampler],
    seed: int,
    **keys: Any,  # noqa: ANN401 -- each sampler has its own
) -> optuna.samplers.BaseSampler:
    return kind(seed=seed, **keys)


class PluginSampler(optuna.samplers.BaseSampler):
    """A plug-in's sampler, made afresh for each point; what it raises becomes a PluginError with its name.

    Raises PluginError if no sampler can be made.
    """

    def __init__(self, name: str, make: MakeSampler, seed: int) -> None:
        def checked(seed: int) -> optuna.samplers.BaseSampler:
            return made_by_plugin(SAMPLERS, name, lambda: make(seed), optuna.samplers.BaseSampler)

        checked(seed)
        self._name, self._sampler = name, RestartableSampler(checked, seed)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The dimensions that it chooses together."""
        with told_by_name(SAMPLERS, self._name):
            return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """What it chooses together."""
        with told_by_name(SAMPLERS, self._name):
            return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        """What it chooses by itself."""
        with told_by_name(SAMPLERS, self._name):
            return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """A point is asked for."""
        with told_by_name(SAMPLERS, self._name):
            self._sampler.before_trial(study, trial)
