"""Optuna distributions of a study's search dimensions, and relative positions in their ranges."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from .....grammar.dimensions import option_label
from .....grammar.nodes import ChoiceDimension, Dimension, IntegerDimension, RealDimension
from .....studies.schema.settings import Level


def draw(distribution: BaseDistribution, rng: Random) -> Any:  # noqa: ANN401 -- a value of any kind
    """Draw a value uniformly; on the logarithmic scale if the range has one."""
    match distribution:
        case CategoricalDistribution():
            return rng.choice(distribution.choices)
        case IntDistribution(log=False):
            return rng.randrange(distribution.low, distribution.high + 1, distribution.step)
        case IntDistribution() | FloatDistribution():
            return at(distribution, rng.random())
        case _:
            raise TypeError(f"expected a distribution of a search, got {distribution!r}")


def place_of(numbers: IntDistribution | FloatDistribution, value: float) -> float:
    """Return the relative position of a number in its range, from 0 to 1."""
    low, high, value = (_scaled(numbers, each) for each in (numbers.low, numbers.high, value))
    return (value - low) / (high - low)


def at(numbers: IntDistribution | FloatDistribution, place: float) -> float:
    """Return the number at a relative position of its range."""
    low, high = _scaled(numbers, numbers.low), _scaled(numbers, numbers.high)
    value = low + place * (high - low)
    value = min(max(math.exp(value) if numbers.log else value, numbers.low), numbers.high)
    if isinstance(numbers, FloatDistribution):
        return value
    return numbers.low + round((value - numbers.low) / numbers.step) * numbers.step


def _scaled(numbers: IntDistribution | FloatDistribution, value: float) -> float:
    return math.log(value) if numbers.log else value


def suggest(trial: optuna.Trial, name: str, dimension: Dimension) -> Level:
    """Return Optuna's suggestion for a dimension; the other dimensions need not be known."""
    match dimension:
        case IntegerDimension():
            return trial.suggest_int(
                name, dimension.low, _aligned_high(dimension), step=dimension.step, log=dimension.log
            )
        case RealDimension():
            return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)
        case _:
            found = trial.suggest_categorical(name, _labels(dimension))
            assert found is not None, "no option of a choice is None"
            return found


def distribution(dimension: Dimension) -> BaseDistribution:
    """Return the Optuna distribution of a dimension of the recipe language."""
    match dimension:
        case IntegerDimension():
            return IntDistribution(
                dimension.low, _aligned_high(dimension), log=dimension.log, step=dimension.step
            )
        case RealDimension():
            return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
        case _:
            return CategoricalDistribution(_labels(dimension))


def _labels(choice: ChoiceDimension) -> list[Level]:
    return [option_label(option) for option in choice.options]


def _aligned_high(dimension: IntegerDimension) -> int:
    return dimension.high - (dimension.high - dimension.low) % dimension.step
