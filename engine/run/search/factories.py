"""Factories of a search's sampler and scheduler by name: built-in, Optuna's, or a plug-in's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from random import Random
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

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
from .samplers.search_observations import PerStudyCache, Proposals, whole_study

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
