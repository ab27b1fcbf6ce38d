"""Exact regression with a Gaussian process (Rasmussen and Williams 2006, chapter 2), point after point.

The kernel is a Gaussian one of the distance between points, in which each of several groups of their numbers
has a length of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

Numbers = NDArray[np.float64]

_ROOM = 64
"""For so many points more there is room each time that a process is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSettings:
    """The length scale of each group of numbers, and the variance of the noise relative to the signal's."""

    lengths: tuple[float, ...]
    noise: float

    def scaled(self, points: Sequence[Numbers]) -> Numbers:
        """Return the numbers of all groups divided by their length scales, a row for each point."""
        pairs = zip(points, self.lengths, strict=True)
        return np.hstack([each / length for each, length in pairs])


def kernel(distances: Sequence[Numbers], settings: KernelSettings) -> Numbers:
    """Return the correlation of points from their squared distances in each group."""
    scaled = [each / length**2 for each, length in zip(distances, settings.lengths, strict=True)]
    return np.exp(-0.5 * reduce(np.add, scaled))


def squared_distances(first: Numbers, second: Numbers) -> Numbers:
    """Return the squared distances between the rows of two matrices."""
    lengths = squared_lengths(first)[:, None] + squared_lengths(second)[None]
    return np.maximum(lengths - 2 * first @ second.T, 0.0)


def squared_lengths(rows: Numbers) -> Numbers:
    """Return the squared length of each row."""
    return (rows**2).sum(1)


class GaussianProcess:
    """A Gaussian process on observed points.

    The values' mean is 0, the variance of the signal is estimated. Later points take rows of preallocated
    room: nothing is copied unless it is full. For watched points it keeps what their predictions need, a
    row for each observed point.
    """

    def __init__(self, points: Sequence[Numbers], settings: KernelSettings) -> None:
        """`points` has an array for each group of numbers, with a row for each point."""
        self._settings, self._size = settings, len(points[0])
        widths = [each.shape[1] for each in points]
        self._divisors = np.repeat(np.array(settings.lengths), widths)
        scaled = settings.scaled(points)
        distances = [squared_distances(each, each) for each in points]
        self._columns = _with_room(scaled.T, (0, _ROOM))  # a row for each number
        self._lengths = _with_room(squared_lengths(scaled), (_ROOM,))
        inverse = np.asarray(np.linalg.inv(_cholesky(distances, settings)), dtype=np.float64)
        self._inverse = _with_room(inverse, (_ROOM, _ROOM))
        self.watch([each[:0] for each in points])

    def __len__(self) -> int:
        return self._size

    def add(self, point: Sequence[Numbers]) -> None:
        """Know one point more, a row in each group: the last row of the inverse root is new."""
        rows, noise, size = np.hstack(point), self._settings.noise, self._size
        scaled = rows[0] / self._divisors
        inner = self._root @ self._across(rows)[:, 0]
        last = 1 / math.sqrt(max(1 + noise - inner @ inner, noise))
        new = -last * (inner @ self._root)
        if size == len(self._lengths):
            self._columns = _with_room(self._columns, (0, _ROOM))
            self._lengths = _with_room(self._lengths, (_ROOM,))
            self._inverse = _with_room(self._inverse, (_ROOM, _ROOM))
            self._watched = _with_room(self._watched, (_ROOM, 0))
        self._columns[:, size], self._lengths[size] = scaled, scaled @ scaled
        self._inverse[size, :size], self._inverse[size, size] = new, last
        used = np.flatnonzero(scaled)
        distances = (
            self._watched_lengths + self._lengths[size] - 2 * scaled[used] @ self._watched_columns[used]
        )
        across = np.exp(-0.5 * np.maximum(distances, 0.0))
        self._watched[size] = last * (across - inner @ self._watched[:size])
        self._size += 1

    def forget_last(self, count: int) -> None:
        """Forget so many points: those that were added last."""
        self._size -= count

    def watch(self, points: Sequence[Numbers]) -> None:
        """Be asked for predictions at these points again and again, instead of at earlier ones."""
        rows = np.hstack(points)
        scaled = rows / self._divisors
        self._watched_columns, self._watched_lengths = np.ascontiguousarray(scaled.T), squared_lengths(scaled)
        room = len(self._lengths) - self._size
        self._watched = _with_room(self._root @ self._across(rows), (room, 0))  # a column for each of them

    def predict_watched(self, values: Numbers) -> tuple[Numbers, Numbers]:
        """Return `predict` for the watched points."""
        return _moments(self._root @ values, self._watched[: self._size])

    def predict(self, points: Sequence[Numbers], values: Numbers) -> tuple[Numbers, Numbers]:
        """Return the mean and the standard deviation of the signal at points, from the observed values."""
        return _moments(self._root @ values, self._root @ self._across(np.hstack(points)))

    def smooth(self, values: Numbers) -> Numbers:
        """Return the mean at the observed points: their values without noise."""
        return values - self._settings.noise * (self._root.T @ (self._root @ values))

    @property
    def _root(self) -> Numbers:
        """The inverse of the root of the covariance of the points that are known."""
        return self._inverse[: self._size, : self._size]

    def _across(self, rows: Numbers) -> Numbers:
        """Return the correlation of each observed point with others, given all numbers of these."""
        used = np.flatnonzero(rows.any(0))  # of the many labels that points may have
        scaled = rows[:, used] / self._divisors[used]
        found = self._columns[used, : self._size].T @ scaled.T
        found *= -2
        found += self._lengths[: self._size, None] + squared_lengths(scaled)[None]
        np.maximum(found, 0.0, out=found)
        found *= -0.5
        return np.exp(found, out=found)


def _moments(whitened: Numbers, inner: Numbers) -> tuple[Numbers, Numbers]:
    """Means and deviations by the known values and the correlations with them, times the inverse root."""
    signal = (whitened @ whitened) / len(whitened)
    return inner.T @ whitened, np.sqrt(signal * np.maximum(1 - (inner**2).sum(0), 1e-12))


def _with_room(numbers: Numbers, room: tuple[int, ...]) -> Numbers:
    """Return the numbers padded with `room` zeros on each axis."""
    return np.pad(numbers, [(0, more) for more in room])


def likeliest(points: Sequence[Numbers], values: Numbers, grid: Iterable[KernelSettings]) -> KernelSettings:
    """Return the settings with the greatest likelihood of the values; the first among equals.

    It maximises `log_likelihood`, computing the kernel of each group and length once, in place.
    """
    distances = [squared_distances(each, each) for each in points]
    covariance = np.empty((len(values), len(values)), order="F")
    diagonal = np.einsum("ii->i", covariance)

    @cache
    def of_group(group: int, length: float) -> Numbers:
        return np.exp(-0.5 * (distances[group] / length**2))

    def likelihood(settings: KernelSettings) -> float:
        covariance[...] = 1.0
        for group, length in enumerate(settings.lengths):
            np.multiply(covariance, of_group(group, length).T, out=covariance)  # both in Fortran's order
        diagonal[...] += settings.noise
        root, failed = lapack.dpotrf(covariance, lower=True, clean=False, overwrite_a=True)  # pyright: ignore[reportAttributeAccessIssue] -- scipy makes its names when it is loaded
        if failed:
            raise np.linalg.LinAlgError("a covariance is not positive definite")
        return _log_likelihood(root, values)

    return max(grid, key=likelihood)


def log_likelihood(distances: Sequence[Numbers], values: Numbers, settings: KernelSettings) -> float:
    """Return the log marginal likelihood of the values at the best variance, up to a constant."""
    return _log_likelihood(_cholesky(distances, settings), values)


def _log_likelihood(root: Numbers, values: Numbers) -> float:
    """Return the same, given the lower triangular root of the covariance."""
    whitened = solve_triangular(root, values, lower=True, check_finite=False)
    signal = max((whitened @ whitened) / len(values), 1e-300)
    return float(-np.log(np.diag(root)).sum() - len(values) / 2 * math.log(signal))


def settings_grid(lengths: Sequence[Sequence[float]], noises: Sequence[float]) -> list[KernelSettings]:
    """Return all combinations of length scales of the groups, and of noises."""
    return [KernelSettings(lengths=tuple(each), noise=noise) for *each, noise in product(*lengths, noises)]


def _cholesky(distances: Sequence[Numbers], settings: KernelSettings) -> Numbers:
    """Return the root of the covariance of points with these distances, with the noise."""
    covariance = kernel(distances, settings) + settings.noise * np.eye(len(distances[0]))
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
