"""Densities of points by Parzen's estimator: a mixture of kernels around some of them, and one around all.

The kernels are those of Optuna's multivariate TPE (Watanabe 2023): products over the dimensions, of normal
distributions within the range whose width is the distance to the neighbours, and of options that are likelier
if a point has them. Of 25 points and more the older ones weigh less.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy.special import ndtr, ndtri

Numbers = NDArray[np.float64]

LATE = 25
"""So many of the last points weigh as much as any."""

NARROWEST = 100
"""No kernel is narrower than the range divided by this, or by how many there are."""

_ROOT = float(np.sqrt(2 * np.pi))


class ParzenEstimator:
    """A density over some dimensions, by points with a row each, the oldest first.

    Numbers are as Optuna has them inside: that of an option is its place.
    """

    def __init__(self, space: Sequence[BaseDistribution], points: Numbers) -> None:
        self._kernels = [_kernels_of(each, points[:, axis]) for axis, each in enumerate(space)]
        self._weights = _weights(len(points))

    def draw(self, count: int, rng: np.random.Generator) -> Numbers:
        """So many points, a row for each."""
        chosen = rng.choice(len(self._weights), size=count, p=self._weights)
        return np.stack([each.draw(chosen, rng.random(count)) for each in self._kernels], axis=1)

    def density(self, points: Numbers) -> Numbers:
        """How dense it is at points."""
        each = (kernels.density(points[:, axis]) for axis, kernels in enumerate(self._kernels))
        return reduce(np.multiply, each) @ self._weights


class Kernels(Protocol):
    """What a dimension has around each point, and last around all."""

    def draw(self, chosen: NDArray[np.int64], shares: Numbers) -> Numbers:
        """Numbers of the chosen kernels, below which they have these shares."""
        ...

    def density(self, numbers: Numbers) -> Numbers:
        """How dense each kernel, in a column, is at each number, in a row."""
        ...


class _Options:
    """Options of a choice: each point makes its own likelier."""

    def __init__(self, options: int, numbers: Numbers) -> None:
        kernels = len(numbers) + 1
        found = np.full((kernels, options), 1 / kernels)
        found[np.arange(len(numbers)), numbers.astype(np.int64)] += 1
        self._shares = found / found.sum(1, keepdims=True)

    def draw(self, chosen: NDArray[np.int64], shares: Numbers) -> Numbers:
        below = self._shares[chosen].cumsum(1)[:, :-1]  # the last option takes what rounding leaves
        return (below < shares[:, None]).sum(1).astype(np.float64)

    def density(self, numbers: Numbers) -> Numbers:
        return self._shares[:, numbers.astype(np.int64)].T


class _Normals:
    """Normal distributions within a range; of whole numbers what lies nearer to each than to others."""

    def __init__(self, dimension: IntDistribution | FloatDistribution, numbers: Numbers) -> None:
        self._dimension = dimension
        half = dimension.step / 2 if isinstance(dimension, IntDistribution) else 0.0
        self._half = half
        self._low, self._high = self._scaled(np.array([dimension.low - half, dimension.high + half]))
        middles, spread = self._scaled(numbers), self._high - self._low
        self._middles = np.append(middles, (self._low + self._high) / 2)
        self._widths = np.append(widths(middles, self._low, self._high), spread)
        self._below, above = self._share_below(np.array([[self._low], [self._high]]))
        self._within = above - self._below

    def draw(self, chosen: NDArray[np.int64], shares: Numbers) -> Numbers:
        places = ndtri(self._below[chosen] + shares * self._within[chosen])
        scaled = np.clip(self._middles[chosen] + self._widths[chosen] * places, self._low, self._high)
        found, low = np.exp(scaled) if self._dimension.log else scaled, self._dimension.low
        if self._half:
            found = low + 2 * self._half * np.round((found - low) / (2 * self._half))
        return np.clip(found, low, self._dimension.high)

    def density(self, numbers: Numbers) -> Numbers:
        if self._half:
            below = [
                self._share_below(self._scaled(numbers + side)[:, None]) for side in (-self._half, self._half)
            ]
            return (below[1] - below[0]) / self._within
        apart = (self._scaled(numbers)[:, None] - self._middles) / self._widths
        return np.exp(-0.5 * apart**2) / (_ROOT * self._widths * self._within)

    def _share_below(self, scaled: Numbers) -> Numbers:
        """What of each kernel lies below numbers."""
        return ndtr((scaled - self._middles) / self._widths)

    def _scaled(self, numbers: Numbers) -> Numbers:
        return np.log(numbers) if self._dimension.log else numbers


@lru_cache(maxsize=1024)
def _weights(count: int) -> Numbers:
    """The shares of the kernels of so many points, the oldest first, and of the one around all."""
    old = np.linspace(1 / count, 1.0, count - LATE) if count >= LATE else np.empty(0)
    found = np.concatenate([old, np.ones(min(count, LATE)), [1.0]])
    return found / found.sum()


def widths(middles: Numbers, low: float, high: float) -> Numbers:
    """How wide the kernels around numbers are: as far as the farther of the two neighbours is."""
    order = np.argsort(middles, kind="stable")
    gaps = np.diff(np.concatenate([[low], middles[order], [high]]))
    found = np.maximum(gaps[:-1], gaps[1:])
    if len(middles) > 1:  # the ends of the range are no neighbours
        found[0], found[-1] = gaps[1], gaps[-2]
    narrowest = (high - low) / min(NARROWEST, 2 + len(middles))
    back = np.empty_like(found)
    back[order] = np.clip(found, narrowest, high - low)
    return back


def _kernels_of(dimension: BaseDistribution, numbers: Numbers) -> Kernels:
    if isinstance(dimension, CategoricalDistribution):
        return _Options(len(dimension.choices), numbers)
    assert isinstance(dimension, IntDistribution | FloatDistribution), f"no search has {dimension!r}"
    return _Normals(dimension, numbers)
