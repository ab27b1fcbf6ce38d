"""Factories of a search's sampler and scheduler by name: built-in, Optuna's, or a plug-in's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from ....plugins import PluginError, Registry
from ....studies.catalog.samplers import SAMPLERS, SCHEDULERS
from ....studies.schema.search import default_sampler
from ....studies.schema.search_settings import (
    EvolutionSettings,
    GpTreesSettings,
    RungSettings,
    SearchSettings,
    TpeSettings,
)
from ....studies.study import Study
from .samplers.evolution import EvolutionSampler
from .samplers.gp_trees import Prior, TreeSampler
from .samplers.restartable import CmaEsSampler, MakeSampler, RestartableSampler, SobolSampler


def made_by_plugin(registry: Registry[Any], name: str, make: Callable[[], object], base: type[Any]) -> Any:  # noqa: ANN401 -- an instance of the base
    """Return the object that a plug-in makes. Raise PluginError if it is not an instance of the base."""
    with named_errors(registry, name):
        found = make()
    if not isinstance(found, base):
        raise PluginError(
            f"{registry.owner(name)}: {registry.kind} '{name}': "
            f"expected an optuna {base.__name__}, got {type(found).__name__}"
        )
    return found


@contextmanager
def named_errors(registry: Registry[Any], name: str) -> Iterator[None]:
    """Convert errors of a plug-in's code to a PluginError with its owner and its name."""
    try:
        yield
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise PluginError(f"{registry.owner(name)}: {registry.kind} '{name}': {fault}") from error


def make_sampler(settings: SearchSettings, study: Study) -> optuna.samplers.BaseSampler:
    """Return the sampler of a study's search; a "grid" search never calls it.

    Raise PluginError if it cannot be made.
    """
    sampler, seed = settings.sampler or default_sampler(settings), settings.seed
    if (make := SAMPLERS[sampler.name].make) is not None:
        return RestartableSampler(
            lambda seed, _: made_by_plugin(
                SAMPLERS, sampler.name, lambda: make(seed), optuna.samplers.BaseSampler
            ),
            seed,
            partial(named_errors, SAMPLERS, sampler.name),
        )
    if isinstance(sampler, GpTreesSettings):
        prior = Prior(sampler.prior, sampler.confidence) if sampler.prior else None
        return TreeSampler(study, seed=seed, prior=prior)
    if isinstance(sampler, EvolutionSettings):
        return EvolutionSampler(seed=seed, population=sampler.population, sample=sampler.sample)
    if isinstance(sampler, TpeSettings):
        return RestartableSampler(lambda seed, _: _make_tpe(sampler, seed), seed)
    if sampler.name == "quasi_random":
        return RestartableSampler(lambda drawn, place: SobolSampler(seed, place, draw_seed=drawn), seed)
    return RestartableSampler(_OPTUNAS[sampler.name], seed)


def restored_attributes(sampler: optuna.samplers.BaseSampler, ended: int) -> dict[str, int]:
    """Return the generation of the point that ended after `ended` others, for Optuna's genetic samplers.

    They store it on each trial when they propose it; for points from the store it follows from their order.
    """
    genetic = sampler.genetic if isinstance(sampler, RestartableSampler) else None
    if genetic is None or genetic.population_size is None:
        return {}
    return {f"{type(genetic).__name__}:generation": ended // genetic.population_size}


def _make_tpe(settings: TpeSettings, seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.TPESampler(
        seed=seed,
        n_startup_trials=settings.n_startup_trials,
        multivariate=settings.multivariate,
        group=settings.multivariate,  # dimensions that only some points have are chosen together as well
    )


_OPTUNAS: dict[str, MakeSampler] = {
    "random": lambda seed, _: optuna.samplers.RandomSampler(seed=seed),
    "grid": lambda seed, _: optuna.samplers.RandomSampler(seed=seed),  # which is never asked
    "cmaes": lambda seed, _: CmaEsSampler(seed),
    "gp": lambda seed, _: optuna.samplers.GPSampler(seed=seed),
    "nsga2": lambda seed, _: optuna.samplers.NSGAIISampler(seed=seed),
}


def make_pruner(settings: SearchSettings) -> optuna.pruners.BasePruner:
    """Return the pruner of a search. Raise PluginError if it cannot be made."""
    scheduler = settings.scheduler
    make = SCHEDULERS[scheduler.name].make
    if make is not None:
        found = made_by_plugin(SCHEDULERS, scheduler.name, make, optuna.pruners.BasePruner)
        return PluginPruner(scheduler.name, found)
    if isinstance(scheduler, RungSettings) and settings.compares_epochs:
        first, reduction = scheduler.min_fidelity or 1, scheduler.reduction_factor
        if scheduler.name == "hyperband":
            return optuna.pruners.HyperbandPruner(min_resource=first, reduction_factor=reduction)
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=reduction)
    return optuna.pruners.MedianPruner() if scheduler.name == "median" else optuna.pruners.NopPruner()


class PluginPruner(optuna.pruners.BasePruner):
    """A plug-in's scheduler; its errors become a PluginError with its name."""

    def __init__(self, name: str, pruner: optuna.pruners.BasePruner) -> None:
        self._name, self._pruner = name, pruner

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        with named_errors(SCHEDULERS, self._name):
            return bool(self._pruner.prune(study, trial))
