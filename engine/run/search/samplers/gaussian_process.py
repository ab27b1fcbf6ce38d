"""Exact regression with a Gaussian process (Rasmussen and Williams 2006, chapter 2), point after point.

The kernel is a Gaussian one of the distance between points, in which each of several groups of their numbers
has a length of its own.
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
    """The length of each group of numbers, and the variance of the noise where that of the signal is 1."""

    lengths: tuple[float, ...]
    noise: float

    def scaled(self, points: Sequence[Numbers]) -> Numbers:
        """The numbers of all groups, each in its length, a row for each point."""
        pairs = zip(points, self.lengths, strict=True)
        return np.hstack([each / length for each, length in pairs])


def kernel(distances: Sequence[Numbers], settings: KernelSettings) -> Numbers:
    """The correlation of points, by the squared distances between them in each group of their numbers."""
    scaled = [each / length**2 for each, length in zip(distances, settings.lengths, strict=True)]
    return np.exp(-0.5 * reduce(np.add, scaled))


def squared_distances(first: Numbers, second: Numbers) -> Numbers:
    """The squared distance of each row of the one from each row of the other."""
    lengths = squared_lengths(first)[:, None] + squared_lengths(second)[None]
    return np.maximum(lengths - 2 * first @ second.T, 0.0)


def squared_lengths(rows: Numbers) -> Numbers:
    """The squared length of each row."""
    return (rows**2).sum(1)


class GaussianProcess:
    """What is known of points by others; the values' mean is 0, the variance of the signal is estimated."""

    def __init__(self, points: Sequence[Numbers], settings: KernelSettings) -> None:
        """`points` has an array for each group of numbers, with a row for each point."""
        self._settings, self._points = settings, settings.scaled(points)
        self._lengths = squared_lengths(self._points)
        distances = [squared_distances(each, each) for each in points]
        self._root = np.linalg.inv(_cholesky(distances, settings))

    def __len__(self) -> int:
        return len(self._root)

    def add(self, point: Sequence[Numbers]) -> GaussianProcess:
        """The process that knows one point more, a row in each group: the last of its inverse root is new."""
        scaled, noise, size = self._settings.scaled(point), self._settings.noise, len(self)
        inner = self._root @ self._across(scaled)[:, 0]
        last = 1 / math.sqrt(max(1 + noise - inner @ inner, noise))
        found = object.__new__(GaussianProcess)
        found._settings, found._points = self._settings, np.vstack([self._points, scaled])
        found._lengths = np.concatenate([self._lengths, squared_lengths(scaled)])
        found._root = np.zeros((size + 1, size + 1))
        found._root[:size, :size] = self._root
        found._root[size, :size], found._root[size, size] = -last * (inner @ self._root), last
        return found

    def predict(self, points: Sequence[Numbers], values: Numbers) -> tuple[Numbers, Numbers]:
        """The mean and the standard deviation of the signal at points, by the values of those known."""
        whitened, inner = self._root @ values, self._root @ self._across(self._settings.scaled(points))
        signal = (whitened @ whitened) / len(values)
        return inner.T @ whitened, np.sqrt(signal * np.maximum(1 - (inner**2).sum(0), 1e-12))

    def smooth(self, values: Numbers) -> Numbers:
        """The mean at the known points: their values without the noise."""
        return values - self._settings.noise * (self._root.T @ (self._root @ values))

    def _across(self, scaled: Numbers) -> Numbers:
        """The correlation of each known point with each of others."""
        used = scaled.any(0)  # of the many labels that points may have
        products = self._points[:, used] @ scaled[:, used].T
        distances = self._lengths[:, None] + squared_lengths(scaled)[None] - 2 * products
        return np.exp(-0.5 * np.maximum(distances, 0.0))


def likeliest(points: Sequence[Numbers], values: Numbers, grid: Iterable[KernelSettings]) -> KernelSettings:
    """The settings under which the values of the points are likeliest; of equals the first."""
    distances = [squared_distances(each, each) for each in points]
    return max(grid, key=lambda settings: log_likelihood(distances, values, settings))


def log_likelihood(distances: Sequence[Numbers], values: Numbers, settings: KernelSettings) -> float:
    """The logarithm of the marginal likelihood of the values, at the likeliest variance, up to a constant."""
    root = _cholesky(distances, settings)
    whitened = solve_triangular(root, values, lower=True, check_finite=False)
    signal = max((whitened @ whitened) / len(values), 1e-300)
    return float(-np.log(np.diag(root)).sum() - len(values) / 2 * math.log(signal))


def settings_grid(lengths: Sequence[Sequence[float]], noises: Sequence[float]) -> list[KernelSettings]:
    """All combinations of lengths of the groups, and of noises."""
    return [KernelSettings(lengths=tuple(each), noise=noise) for *each, noise in product(*lengths, noises)]


def _cholesky(distances: Sequence[Numbers], settings: KernelSettings) -> Numbers:
    """The root of the covariance of points of these distances, with the noise."""
    covariance = kernel(distances, settings) + settings.noise * np.eye(len(distances[0]))
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
