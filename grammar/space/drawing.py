"""Numbers drawn from dimensions."""

from __future__ import annotations

import math
from random import Random

from ..nodes import Integer, Real, Scalar, Value, children
from .canonical import rebuilt
from .numbers import length, span


def settled(part: Value, rng: Random) -> Value:
    """The part with a number drawn from each range of real numbers in it, each by itself."""
    if isinstance(part, Real):
        return _real(part, rng)
    inside = children(part)
    return rebuilt(part, [settled(one, rng) for one in inside]) if inside else part


def _real(dimension: Real, rng: Random) -> float:
    """A number of the range, or one whose logarithm is drawn evenly."""
    low, high = dimension.low, dimension.high
    if not dimension.log:
        return rng.uniform(low, high)
    return min(max(math.exp(rng.uniform(math.log(low), math.log(high))), low), high)


def other(dimension: Integer | Real, value: Scalar, rng: Random) -> Scalar:
    """Another number of the dimension; the same where it has only one."""
    if isinstance(dimension, Real):
        return _real(dimension, rng)
    numbers = span(dimension)
    if length(numbers) == 1:
        return value
    place = rng.randrange(length(numbers) - 1)
    return numbers[place + (place >= numbers.index(value))]  # pyright: ignore[reportArgumentType] -- a whole number
