"""The samplers of a search as Optuna has them; plug-ins' are told by name where they fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from .....studies.catalog.samplers import PRIORBAND, SAMPLERS
from .....studies.schema.search_settings import (
    EVOLUTION_POPULATION,
    EVOLUTION_SAMPLE,
    REDUCTIONS,
    SearchSettings,
)
from .....studies.study import Study
from ..plugged_in import made_by_plugin, told_by_name
from .cma_es import CmaEsSampler
from .evolution import EvolutionSampler
from .generations import NSGAIIISampler, NSGAIISampler
from .gp_trees import TreeSampler
from .prior import Prior, PriorSampler
from .prior_band import PriorBandSampler
from .quasi_random import QuasiRandomSampler
from .tpe.sampler import TpeSampler

_OPTUNA: Mapping[str, Callable[..., optuna.samplers.BaseSampler]] = {
    "gp": optuna.samplers.GPSampler,
    "nsga2": NSGAIISampler,
    "nsga3": NSGAIIISampler,
}
"""The samplers that have but a seed here."""


def make_sampler(settings: SearchSettings, study: Study) -> optuna.samplers.BaseSampler:
    """The sampler of such a search of a study; "grid" enumerates, and never asks it.

    Raises PluginError if it cannot be made.
    """
    prior = Prior(settings.prior, settings.trusted) if settings.prior else None
    if settings.sampler == PRIORBAND:
        reduction = settings.reduction or REDUCTIONS[settings.scheduler]
        return PriorBandSampler(settings.prior, seed=settings.seed, reduction=reduction)
    if settings.sampler == "gp_trees":
        return TreeSampler(study, seed=settings.seed, prior=prior)
    sampler = _make_without_prior(settings, study)
    return sampler if prior is None else PriorSampler(sampler, prior, seed=settings.seed)


def restored_attributes(sampler: optuna.samplers.BaseSampler, ended: int) -> dict[str, int]:
    """What Optuna's genetic samplers look for on a point that ended after so many: its generation.

    They note it as points are asked for; of those that the store brings back it follows from their order.
    """
    if not isinstance(sampler, optuna.samplers.BaseGASampler) or sampler.population_size is None:
        return {}
    return {f"{type(sampler).__name__}:generation": ended // sampler.population_size}


def _make_without_prior(settings: SearchSettings, study: Study) -> optuna.samplers.BaseSampler:
    """A sampler that knows of no belief."""
    make = SAMPLERS[settings.sampler].make
    if make is not None:
        found = made_by_plugin(
            SAMPLERS, settings.sampler, lambda: make(settings.seed), optuna.samplers.BaseSampler
        )
        return PluginSampler(settings.sampler, found)
    match settings.sampler:
        case "tpe":
            return _make_tpe(settings, study)
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
        case name:
            make = _OPTUNA.get(name, optuna.samplers.RandomSampler)
            with _experiments_allowed():
                return make(seed=settings.seed)


def _make_tpe(settings: SearchSettings, study: Study) -> optuna.samplers.BaseSampler:
    """TPE, which can tell apart dimensions that only some points have; of several objectives Optuna's."""
    multivariate, liar = settings.multivariate is not False, settings.constant_liar is not False
    group = multivariate if settings.group is None else settings.group
    if len(settings.objectives) == 1:
        return TpeSampler(
            study, seed=settings.seed, multivariate=multivariate, group=group, constant_liar=liar
        )
    with _experiments_allowed():
        return optuna.samplers.TPESampler(
            seed=settings.seed, multivariate=multivariate, group=group, constant_liar=liar
        )


@contextmanager
def _experiments_allowed() -> Iterator[None]:
    """A context in which Optuna does not say that what is used of it may change; its version is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


class PluginSampler(optuna.samplers.BaseSampler):
    """A plug-in's sampler; what it raises becomes a PluginError with its name."""

    def __init__(self, name: str, sampler: optuna.samplers.BaseSampler) -> None:
        self._name, self._sampler = name, sampler

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

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """A point has ended."""
        with told_by_name(SAMPLERS, self._name):
            self._sampler.after_trial(study, trial, state, values)
