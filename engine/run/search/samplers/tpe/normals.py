"""Kernels of numbers: normal distributions within a range, as wide as their neighbours are far.

Of whole numbers a kernel has what lies nearer to each than to others. Where a dimension has few of them that
is kept for all of them, and made anew only for kernels that have moved, or whose neighbours have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution, IntDistribution
from scipy.special import ndtr, ndtri

Numbers = NDArray[np.float64]

NARROWEST = 100
"""No kernel is narrower than the range divided by this, or by how many there are."""

MOST_KEPT = 256
"""Of a dimension with at most so many whole numbers the density at each of them is kept."""

ROOM = 64
"""Room is made for so many kernels at once."""

LEAST = -700.0
"""No smaller exponents are taken: e to the power of this is 1e-304, and of less takes much longer."""

_ROOT = float(np.sqrt(2 * np.pi))


class Normals:
    """The kernels of some dimensions, first the one around all points, then one around each."""

    def __init__(self, space: Sequence[IntDistribution | FloatDistribution]) -> None:
        self._log = np.array([each.log for each in space], dtype=bool)
        self._step = np.array([each.step if isinstance(each, IntDistribution) else 0.0 for each in space])
        self._first = np.array([each.low for each in space], dtype=np.float64)
        self._last = np.array([each.high for each in space], dtype=np.float64)
        self._low = self._scaled(self._first - self._step / 2)
        self._high = self._scaled(self._last + self._step / 2)
        self._keeps = [isinstance(each, IntDistribution) and _count(each) <= MOST_KEPT for each in space]
        edges = [
            each.low + each.step * np.arange(_count(each) + 1) - each.step / 2  # between whole numbers
            if isinstance(each, IntDistribution) and keeps
            else np.array([self._first[axis] - self._step[axis] / 2, self._last[axis] + self._step[axis] / 2])
            for axis, (each, keeps) in enumerate(zip(space, self._keeps, strict=True))
        ]
        sizes = np.array([len(each) for each in edges], dtype=np.int64)
        self._axis = np.repeat(np.arange(len(space)), sizes)  # of each edge
        self._least = np.searchsorted(self._axis, np.arange(len(space)))  # the first edge of each dimension
        self._most = self._least + sizes - 1
        flat = np.concatenate([*edges, np.empty(0)])
        is_log = self._log[self._axis]
        flat[is_log] = np.log(flat[is_log])
        self._edges = flat[:, None]
        self._shares = np.ones((len(flat) + 1, 0))  # of kernels, from each edge to the next; at last ones
        self._below = self._within = self._middles = self._widths = np.empty((len(space), 0))

    def learn(self, numbers: Numbers) -> None:
        """Take points' numbers, a row for each dimension; NaN is what a point lacks."""
        numbers = self._scaled(numbers)
        centre, spread = ((self._low + self._high) / 2)[:, None], (self._high - self._low)[:, None]
        is_lacking = np.isnan(numbers)
        middles = np.concatenate([centre, np.where(is_lacking, centre, numbers)], axis=1)
        width = np.where(is_lacking, spread, widths(numbers, self._low, self._high))
        width = np.concatenate([spread, width], axis=1)
        count, known = middles.shape[1], min(middles.shape[1], self._middles.shape[1])
        stays = (middles[:, :known] == self._middles[:, :known]) & (
            width[:, :known] == self._widths[:, :known]
        )
        moved = np.concatenate([np.flatnonzero(~stays.all(axis=0)), np.arange(known, count)])
        self._middles, self._widths = middles, width
        self._make_room(count)
        self._integrate(moved)

    def _make_room(self, count: int) -> None:
        """Have room for so many kernels."""
        if count > self._shares.shape[1]:
            room = (count // ROOM + 1) * ROOM - self._shares.shape[1]
            self._shares, self._below, self._within = (
                np.pad(each, ((0, 0), (0, room)), constant_values=1.0)
                for each in (self._shares, self._below, self._within)
            )

    def _integrate(self, kernels: NDArray[np.int64]) -> None:
        """What some kernels have within the range, and of it at each whole number."""
        middles, width = self._middles[:, kernels], self._widths[:, kernels]
        below = ndtr((self._edges - middles[self._axis]) / width[self._axis])
        least = below[self._least]
        within = below[self._most] - least
        self._below[:, kernels], self._within[:, kernels] = least, within
        self._shares[:-2, kernels] = (below[1:] - below[:-1]) / within[self._axis[:-1]]

    def draw(self, chosen: NDArray[np.int64], shares: Numbers) -> Numbers:
        """Numbers of the chosen kernels, below which they have these shares."""
        places = ndtri(self._below[:, chosen].T + shares * self._within[:, chosen].T)
        found = np.clip(
            self._middles[:, chosen].T + self._widths[:, chosen].T * places, self._low, self._high
        )
        found = np.where(self._log, np.exp(np.where(self._log, found, 0.0)), found)
        step = np.where(self._step, self._step, 1.0)
        whole = self._first + step * np.round((found - self._first) / step)
        return np.clip(np.where(self._step, whole, found), self._first, self._last)

    def density(self, numbers: Numbers) -> Numbers:
        """How dense each kernel, in a column, is at each point, in a row."""
        lacking, count = np.isnan(numbers), self._middles.shape[1]
        places = (numbers - self._first) / np.where(self._step, self._step, 1.0)
        rows = np.where(lacking, -1, self._least + np.round(np.where(lacking, 0.0, places)))
        kept = rows[:, self._keeps].astype(np.int64)
        found = self._shares.take(kept, axis=0)[:, :, :count].prod(axis=1)
        for axis in np.flatnonzero(~np.array(self._keeps, dtype=bool)):
            taken = np.flatnonzero(~lacking[:, axis])
            found[taken] *= self._density_at(axis, numbers[taken, axis])
        return found

    def _density_at(self, axis: np.int64, numbers: Numbers) -> Numbers:
        """The same of one dimension."""
        middles, width, half = self._middles[axis], self._widths[axis], self._step[axis] / 2
        within = self._within[axis, : len(middles)]
        scale = np.log if self._log[axis] else np.positive
        if half:
            below = [ndtr((scale(numbers + side)[:, None] - middles) / width) for side in (-half, half)]
            return (below[1] - below[0]) / within
        apart = (scale(numbers)[:, None] - middles) / width
        exponents = np.maximum(-0.5 * apart * apart, LEAST)
        return np.exp(exponents) / (_ROOT * width * within)

    def _scaled(self, numbers: Numbers) -> Numbers:
        """Numbers, of some dimensions by their logarithms."""
        found = np.array(numbers)
        found[self._log] = np.log(found[self._log])
        return found


def widths(middles: Numbers, low: Numbers, high: Numbers) -> Numbers:
    """How wide the kernels around numbers are: as far as the farther of the two neighbours is.

    Each row has the numbers of a dimension from `low` to `high`; NaN is what a point lacks.
    """
    if not middles.size:
        return middles
    low, high, points = low[:, None], high[:, None], middles.shape[1]
    order = np.argsort(middles, axis=1, kind="stable")  # NaN last
    order += points * np.arange(len(middles))[:, None]
    ordered = middles.ravel()[order]
    is_lacking = np.isnan(ordered)
    ends = np.concatenate([low, np.where(is_lacking, high, ordered), high], axis=1)
    gaps = ends[:, 1:] - ends[:, :-1]
    found = np.maximum(gaps[:, :-1], gaps[:, 1:])
    count = points - is_lacking.sum(1)
    (several,) = np.nonzero(count > 1)  # the ends of the range are no neighbours
    last = count[several] - 1
    found[several, 0] = gaps[several, 1]
    found[several, last] = gaps[several, last]
    spread = high - low
    narrowest = spread / np.minimum(NARROWEST, 2 + count)[:, None]
    back = np.empty_like(found)
    back.ravel()[order] = np.minimum(np.maximum(found, narrowest), spread)
    return back


def _count(dimension: IntDistribution) -> int:
    """How many whole numbers a dimension has."""
    return (dimension.high - dimension.low) // dimension.step + 1
