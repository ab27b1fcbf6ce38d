"""How members begin, and how one that copies another is changed: by the seed of the search alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

from ...grammar.nodes import ChoiceDimension, Dimension, IntegerDimension, RealDimension
from ..schema.search import representative_values
from ..schema.settings import Level

FACTORS = (0.8, 1.2)
"""By one of these a number is multiplied."""

REDRAWN = 0.25
"""How often a value is drawn anew instead."""

_DIGITS = 4
"""Real numbers have so many digits: more of them decide nothing, and are hard to read."""


def draw_values(dimensions: Mapping[str, Dimension], rng: Random) -> dict[str, Level]:
    """A value of each dimension, all alike; of a range in logarithms, by these."""
    return {name: _draw(each, rng) for name, each in dimensions.items()}


def explore_values(
    values: Mapping[str, Level], dimensions: Mapping[str, Dimension], rng: Random
) -> dict[str, Level]:
    """Values near these, within their dimensions: a number times a factor, an option that is a neighbour.

    One in four is drawn anew.
    """
    return {
        name: _draw(each, rng) if rng.random() < REDRAWN else _step(values[name], each, rng)
        for name, each in dimensions.items()
    }


def _draw(dimension: Dimension, rng: Random) -> Level:
    match dimension:
        case ChoiceDimension():
            return rng.choice(representative_values(dimension))
        case IntegerDimension(low=low, high=high, step=step, log=False):
            return rng.randrange(low, high + 1, step)
        case _:
            low, high, place = dimension.low, dimension.high, rng.random()
            if dimension.log:
                return _within(math.exp(math.log(low) + place * math.log(high / low)), dimension)
            return _within(low + place * (high - low), dimension)


def _step(value: Level, dimension: Dimension, rng: Random) -> Level:
    if isinstance(dimension, ChoiceDimension):
        options = representative_values(dimension)
        place = options.index(value)
        near = [each for each in (place - 1, place + 1) if 0 <= each < len(options)]
        return options[rng.choice(near)] if near else value
    assert not isinstance(value, str), "the value of a range"
    factor = rng.choice(FACTORS)
    if isinstance(dimension, IntegerDimension):
        least = dimension.step if factor > 1 else -dimension.step  # a small number moves as well
        return _within(max(value * factor, value + least, key=lambda each: abs(each - value)), dimension)
    return _within(value * factor, dimension)


def _within(number: float, dimension: IntegerDimension | RealDimension) -> Level:
    """The value of a dimension that is nearest to a number."""
    low, high = dimension.low, dimension.high
    if isinstance(dimension, RealDimension):
        return float(min(max(float(f"{number:.{_DIGITS}g}"), low), high))
    steps = round((min(max(number, low), high) - low) / dimension.step)
    return low + min(steps, (high - low) // dimension.step) * dimension.step
