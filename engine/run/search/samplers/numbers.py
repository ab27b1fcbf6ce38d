"""Values of a dimension and their places in its range, from 0 to 1, in Optuna's terms."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)


def draw(distribution: BaseDistribution, rng: Random) -> Any:  # noqa: ANN401 -- a value of any kind
    """Return a uniformly drawn value, on the logarithmic scale where the range has one."""
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
