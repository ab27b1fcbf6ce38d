"""A study's search dimensions, sampler and scheduler in Optuna's terms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from ..grammar.nodes import Dimension, Integer, Real
from ..grammar.space import label
from ..studies.settings import Level, SearchSettings

Point = dict[str, Level]
"""A value for every dimension of a search, by name."""


def contains(space: BaseDistribution, value: Level) -> bool:
    """Whether a stored value lies in a distribution."""
    try:
        return space._contains(space.to_internal_repr(value))
    except (ValueError, TypeError):
        return False


def distribution(dimension: Dimension) -> BaseDistribution:
    """Optuna's name for a dimension of the recipe language."""
    match dimension:
        case Integer():
            return IntDistribution(dimension.low, dimension.high, log=dimension.log, step=dimension.step)
        case Real():
            return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
        case _:
            return CategoricalDistribution([label(option) for option in dimension.options])


def enumerated(spaces: Mapping[str, BaseDistribution]) -> Iterator[Point]:
    """Every point of a space without real dimensions, the last one varying fastest."""
    axes: list[list[Any]] = []
    for space in spaces.values():
        if isinstance(space, IntDistribution):
            axes.append(list(range(space.low, space.high + 1, space.step)))
        else:
            assert isinstance(space, CategoricalDistribution), "the study refuses a grid over real dimensions"
            axes.append(list(space.choices))
    for values in itertools.product(*axes):
        yield dict(zip(spaces, values, strict=True))


def sampler(settings: SearchSettings) -> optuna.samplers.BaseSampler:
    """Optuna's sampler of a search; "grid" enumerates, and never asks it."""
    match settings.sampler:
        case "tpe":
            return optuna.samplers.TPESampler(seed=settings.seed)
        case "cmaes":
            return optuna.samplers.CmaEsSampler(seed=settings.seed)
        case "gp":
            return optuna.samplers.GPSampler(seed=settings.seed)
        case "nsga2":
            return optuna.samplers.NSGAIISampler(seed=settings.seed)
        case _:
            return optuna.samplers.RandomSampler(seed=settings.seed)


def pruner(settings: SearchSettings) -> optuna.pruners.BasePruner:
    """Optuna's form of the scheduler, for runs without Tune."""
    match settings.scheduler:
        case "asha":
            return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=4)
        case "hyperband":
            return optuna.pruners.HyperbandPruner()
        case "median":
            return optuna.pruners.MedianPruner()
        case "none":
            return optuna.pruners.NopPruner()
