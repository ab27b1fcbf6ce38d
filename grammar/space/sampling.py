"""Numbers drawn from dimensions."""

from __future__ import annotations

import math
from random import Random

from ..nodes import IntegerDimension, RealDimension, Scalar, Value, children
from .partition_integers import as_range, range_length
from .rebuild import rebuild


def sample_reals(part: Value, rng: Random) -> Value:
    """The part with a number drawn from each range of real numbers in it, each by itself."""
    if isinstance(part, RealDimension):
        return _sample_real(part, rng)
    inside = children(part)
    return rebuild(part, [sample_reals(one, rng) for one in inside]) if inside else part


def _sample_real(dimension: RealDimension, rng: Random) -> float:
    """A number of the range, or one whose logarithm is drawn evenly."""
    low, high = dimension.low, dimension.high
    if not dimension.log:
        return rng.uniform(low, high)
    return min(max(math.exp(rng.uniform(math.log(low), math.log(high))), low), high)


def sample_other(dimension: IntegerDimension | RealDimension, value: Scalar, rng: Random) -> Scalar:
    """Another number of the dimension; the same where it has only one."""
    if isinstance(dimension, RealDimension):
        return _sample_real(dimension, rng)
    numbers = as_range(dimension)
    if range_length(numbers) == 1:
        return value
    place = rng.randrange(range_length(numbers) - 1)
    return numbers[place + (place >= numbers.index(value))]  # pyright: ignore[reportArgumentType] -- a whole number
