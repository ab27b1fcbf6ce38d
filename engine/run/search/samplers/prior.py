"""Priors: values that are likely to be near the best point, given before anything is known.

A prior is a mixture: with `confidence` the best point is near the named values, otherwise it is anywhere. Its
weight falls as points are tried, as in πBO (Hvarfner et al. 2022): with confidence c it is c · 10 / (10 + n)
after n points, so that a wrong prior is overcome.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from statistics import NormalDist
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from .numbers import at, draw, place_of

WIDTH = 0.15
"""The standard deviation of the best value around a named number, as a share of its range."""

NAMED = 0.8
"""The probability that the best point has the named option, if the prior is right."""

LASTING = 10.0
"""The number of points after which a prior has half of its weight."""

_NORMAL = NormalDist()


class Prior:
    """Likely values by dimension; other dimensions may have any value."""

    def __init__(self, values: Mapping[str, Any], confidence: float) -> None:
        self._values, self._confidence = dict(values), confidence

    def trust(self, begun: int) -> float:
        """Return the confidence that is left after so many points."""
        return self._confidence * LASTING / (LASTING + begun)

    def draw(self, name: str, distribution: BaseDistribution, rng: Random) -> Any:  # noqa: ANN401 -- any kind
        """Draw a value near the named one, if there is one."""
        if name not in self._values or distribution.single():
            return draw(distribution, rng)
        value = self._values[name]
        if isinstance(distribution, CategoricalDistribution):
            return value if rng.random() < NAMED else draw(distribution, rng)
        assert isinstance(distribution, IntDistribution | FloatDistribution), (
            f"no search has {distribution!r}"
        )
        low, high = _bounds(place_of(distribution, value))
        return at(
            distribution, place_of(distribution, value) + WIDTH * _NORMAL.inv_cdf(rng.uniform(low, high))
        )

    def log_ratio(self, values: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> float:
        """Return the logarithm of how much likelier the prior makes a point."""
        return math.log(self._confidence * self.likelihood(values, space) + 1 - self._confidence)

    def likelihood(self, values: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> float:
        """Return how much likelier a point is near the named values than anywhere."""
        return math.prod(self._ratio(name, space[name], value) for name, value in values.items())

    def _ratio(self, name: str, distribution: BaseDistribution, value: Any) -> float:  # noqa: ANN401 -- any kind
        """Return how much likelier a value is near the named one than anywhere."""
        if name not in self._values or distribution.single():
            return 1.0
        named = self._values[name]
        if isinstance(distribution, CategoricalDistribution):
            return (1 - NAMED) + (NAMED * len(distribution.choices) if value == named else 0.0)
        assert isinstance(distribution, IntDistribution | FloatDistribution), (
            f"no search has {distribution!r}"
        )
        middle = place_of(distribution, named)
        low, high = _bounds(middle)
        return _NORMAL.pdf((place_of(distribution, value) - middle) / WIDTH) / WIDTH / (high - low)


def _bounds(middle: float) -> tuple[float, float]:
    """Return the quantiles at the ends of a range of a normal distribution around a place."""
    return _NORMAL.cdf(-middle / WIDTH), _NORMAL.cdf((1 - middle) / WIDTH)
