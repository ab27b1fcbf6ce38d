"""Densities of points by Parzen's estimator: a mixture of kernels around some of them, and one around all.

The kernels are those of Optuna's multivariate TPE (Watanabe 2023): products over the dimensions, of normal
distributions within the range whose width is the distance to the neighbours, and of options that are likelier
if a point has them. Of 25 points and more the older ones weigh less. A point that lacks a dimension says
nothing of it: its kernel is there the one around all. A point whose density is asked for has that of the
dimensions which it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from .normals import Normals

Numbers = NDArray[np.float64]

LATE = 25
"""So many of the last points weigh as much as any."""


class ParzenEstimator:
    """A density over some dimensions, by points with a row each, the oldest first.

    Numbers are as Optuna has them inside: that of an option is its place. NaN is what a point lacks; a row of
    nothing else is no point. To learn from other points takes the less time the more rows stay as they were,
    and comes to the same.
    """

    def __init__(self, space: Sequence[BaseDistribution]) -> None:
        self._choices = [axis for axis, each in enumerate(space) if isinstance(each, CategoricalDistribution)]
        self._numbers = [axis for axis in range(len(space)) if axis not in self._choices]
        numbers = [_number(space[axis]) for axis in self._numbers]
        self._kernels = (
            (self._choices, _Options([len(_choice(space[axis]).choices) for axis in self._choices])),
            (self._numbers, Normals(numbers)),
        )
        self._points = np.full((1, len(space)), np.nan)
        self.learn(self._points[:0])

    def learn(self, points: Numbers) -> None:
        """Be the density by these points from now on."""
        if np.array_equal(points, self._points, equal_nan=True):
            return
        self._points = points
        is_point = np.concatenate([[True], ~np.isnan(points).all(axis=1)])
        self._weights = np.zeros(len(is_point))
        self._weights[is_point] = _weights(np.count_nonzero(is_point) - 1)
        for axes, kernels in self._kernels:
            kernels.learn(np.ascontiguousarray(points[:, axes].T))

    def draw(self, count: int, rng: np.random.Generator) -> Numbers:
        """So many points with all dimensions, a row for each."""
        chosen = rng.choice(len(self._weights), size=count, p=self._weights)
        points = np.empty((count, len(self._choices) + len(self._numbers)))
        for axes, kernels in self._kernels:
            points[:, axes] = kernels.draw(chosen, rng.random((count, len(axes))))
        return points

    def density(self, points: Numbers) -> Numbers:
        """How dense it is at points."""
        (choices, options), (numbers, normals) = self._kernels
        return (options.density(points[:, choices]) * normals.density(points[:, numbers])) @ self._weights


class _Options:
    """Options of choices, first around all points, then around each: each point makes its own likelier."""

    def __init__(self, options: Sequence[int]) -> None:
        self._counts = np.array(options, dtype=np.int64)
        self._first = np.cumsum(self._counts) - self._counts  # rows of the first options
        self._choice = np.repeat(np.arange(len(options)), self._counts)  # of each row
        self._option = np.arange(len(self._choice)) - self._first[self._choice]

    def learn(self, places: Numbers) -> None:
        """Take options' places, a row for each choice."""
        around_all = np.full((len(places), 1), np.nan)
        self._places = np.concatenate([around_all, places], axis=1)
        lacking = np.isnan(self._places)
        kernels = self._places.shape[1] - lacking.sum(1) + 1
        self._own = kernels / (kernels + self._counts)  # beyond it all options are alike
        is_own = self._places[self._choice] == self._option[:, None]
        other = 1 / (kernels + self._counts)
        shares = np.where(is_own, (self._own + other)[self._choice, None], other[self._choice, None])
        shares = np.where(lacking[self._choice], 1 / self._counts[self._choice, None], shares)
        self._shares = np.concatenate([shares, np.ones((1, self._places.shape[1]))])

    def draw(self, chosen: NDArray[np.int64], shares: Numbers) -> Numbers:
        """Options of the chosen kernels, by shares that are drawn evenly."""
        places = self._places[:, chosen].T
        is_lacking = np.isnan(places)
        rest = np.where(is_lacking, shares, (shares - self._own) / (1 - self._own))
        drawn = np.minimum(np.floor(rest * self._counts), self._counts - 1)
        return np.where(is_lacking | (shares >= self._own), drawn, places)

    def density(self, places: Numbers) -> Numbers:
        """How dense each kernel, in a column, is at each point, in a row."""
        lacking = np.isnan(places)
        rows = np.where(lacking, len(self._choice), self._first + np.where(lacking, 0, places))
        return self._shares.take(rows.astype(np.int64), axis=0).prod(axis=1)


@lru_cache(maxsize=1024)
def _weights(count: int) -> Numbers:
    """The shares of the kernels around all and around each of so many points, the oldest first."""
    old = np.linspace(1 / count, 1.0, count - LATE) if count >= LATE else np.empty(0)
    found = np.concatenate([[1.0], old, np.ones(min(count, LATE))])
    return found / found.sum()


def _choice(dimension: BaseDistribution) -> CategoricalDistribution:
    assert isinstance(dimension, CategoricalDistribution)
    return dimension


def _number(dimension: BaseDistribution) -> IntDistribution | FloatDistribution:
    assert isinstance(dimension, IntDistribution | FloatDistribution), f"no search has {dimension!r}"
    return dimension
