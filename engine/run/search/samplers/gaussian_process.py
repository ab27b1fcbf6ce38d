"""Exact Gaussian process regression (Rasmussen and Williams 2006, chapter 2).

The kernel is Gaussian; each of several groups of features has its own length scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSettings:
    """The length scale of each group of features, and the noise variance relative to the signal's."""

    lengths: tuple[float, ...]
    noise: float

    def scaled(self, points: Sequence[Numbers]) -> Numbers:
        """Return the features of all groups divided by their length scales, a row for each point."""
        pairs = zip(points, self.lengths, strict=True)
        return np.hstack([each / length for each, length in pairs])


def kernel(distances: Sequence[Numbers], settings: KernelSettings) -> Numbers:
    """Return the correlation of points from their squared distances in each group."""
    scaled = [each / length**2 for each, length in zip(distances, settings.lengths, strict=True)]
    return np.exp(-0.5 * reduce(np.add, scaled))


def squared_distances(first: Numbers, second: Numbers) -> Numbers:
    """Return the squared distances between the rows of two matrices."""
    lengths = (first**2).sum(1)[:, None] + (second**2).sum(1)[None]
    return np.maximum(lengths - 2 * first @ second.T, 0.0)


class GaussianProcess:
    """A zero-mean Gaussian process fitted to values at points; the signal variance is estimated.

    `points` has an array for each group of features, with a row for each point.
    """

    def __init__(self, points: Sequence[Numbers], values: Numbers, settings: KernelSettings) -> None:
        self._settings, self._points, self._values = settings, settings.scaled(points), values
        distances = [squared_distances(each, each) for each in points]
        self._root = _cholesky(distances, settings)
        self._whitened = solve_triangular(self._root, values, lower=True, check_finite=False)

    def predict(self, points: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
        """Return the mean and the standard deviation of the signal at points."""
        across = np.exp(-0.5 * squared_distances(self._points, self._settings.scaled(points)))
        inner = solve_triangular(self._root, across, lower=True, check_finite=False)
        signal = (self._whitened @ self._whitened) / len(self._whitened)
        return inner.T @ self._whitened, np.sqrt(signal * np.maximum(1 - (inner**2).sum(0), 1e-12))

    def smooth(self) -> Numbers:
        """Return the posterior mean at the observed points: their values without noise."""
        solved = solve_triangular(self._root, self._whitened, lower=True, trans=1, check_finite=False)
        return self._values - self._settings.noise * solved


def likeliest(points: Sequence[Numbers], values: Numbers, grid: Iterable[KernelSettings]) -> KernelSettings:
    """Return the settings with the highest likelihood of the values; the first among equals."""
    distances = [squared_distances(each, each) for each in points]
    return max(grid, key=lambda settings: log_likelihood(distances, values, settings))


def log_likelihood(distances: Sequence[Numbers], values: Numbers, settings: KernelSettings) -> float:
    """Return the log marginal likelihood at the best signal variance, up to a constant."""
    root = _cholesky(distances, settings)
    whitened = solve_triangular(root, values, lower=True, check_finite=False)
    signal = max((whitened @ whitened) / len(values), 1e-300)
    return float(-np.log(np.diag(root)).sum() - len(values) / 2 * math.log(signal))


def settings_grid(lengths: Sequence[Sequence[float]], noises: Sequence[float]) -> list[KernelSettings]:
    """Return all combinations of the groups' length scales and the noise levels."""
    return [KernelSettings(lengths=tuple(each), noise=noise) for *each, noise in product(*lengths, noises)]


def _cholesky(distances: Sequence[Numbers], settings: KernelSettings) -> Numbers:
    covariance = kernel(distances, settings) + settings.noise * np.eye(len(distances[0]))
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
