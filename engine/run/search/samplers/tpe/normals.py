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
        self._edges = {  # between whole numbers, by axis
            axis: np.arange(each.low, each.high + 2 * each.step, each.step) - each.step / 2
            for axis, each in enumerate(space)
            if isinstance(each, IntDistribution) and (each.high - each.low) // each.step < MOST_KEPT
        }
        self._edges = {axis: np.log(at) if space[axis].log else at for axis, at in self._edges.items()}
        ends = np.cumsum([1, *(len(at) - 1 for at in self._edges.values())])
        self._rows = dict(zip(self._edges, ends[:-1].tolist(), strict=True))  # of their first numbers
        self._kept = np.ones((ends[-1], 0))  # first ones, for points that lack a dimension
        self._middles = self._widths = self._below = self._within = np.empty((len(space), 0))

    def learn(self, numbers: Numbers) -> None:
        """Take points' numbers, a row for each dimension; NaN is what a point lacks."""
        numbers = self._scaled(numbers)
        centre, spread = ((self._low + self._high) / 2)[:, None], (self._high - self._low)[:, None]
        is_lacking = np.isnan(numbers)
        middles = np.concatenate([centre, np.where(is_lacking, centre, numbers)], axis=1)
        width = np.where(is_lacking, spread, widths(numbers, self._low, self._high))
        width = np.concatenate([spread, width], axis=1)
        count, known = middles.shape[1], min(middles.shape[1], self._middles.shape[1])
        has_moved = np.ones(middles.shape, dtype=bool)
        has_moved[:, :known] = (middles[:, :known] != self._middles[:, :known]) | (
            width[:, :known] != self._widths[:, :known]
        )
        self._middles, self._widths = middles, width
        below, within = np.empty_like(middles), np.empty_like(middles)
        below[:, :known], within[:, :known] = self._below[:, :known], self._within[:, :known]
        axes, kernels = has_moved.nonzero()
        middle, wide = middles[axes, kernels], width[axes, kernels]
        below[axes, kernels] = least = ndtr((self._low[axes] - middle) / wide)
        within[axes, kernels] = ndtr((self._high[axes] - middle) / wide) - least
        self._below, self._within = below, within
        if count > self._kept.shape[1]:
            room = np.ones((len(self._kept), (count // ROOM + 1) * ROOM))
            room[:, : self._kept.shape[1]] = self._kept
            self._kept = room
        for axis, row in self._rows.items():
            self._keep(axis, row, np.flatnonzero(has_moved[axis]))

    def _keep(self, axis: int, row: int, kernels: NDArray[np.int64]) -> None:
        """Keep what kernels of a dimension have at each of its whole numbers."""
        if len(kernels):
            edges = self._edges[axis][:, None]
            below = ndtr((edges - self._middles[axis, kernels]) / self._widths[axis, kernels])
            shares = (below[1:] - below[:-1]) / self._within[axis, kernels]
            self._kept[row : row + len(shares), kernels] = shares

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
        lacking, kept = np.isnan(numbers), list(self._rows)
        places = (numbers[:, kept] - self._first[kept]) / self._step[kept] + list(self._rows.values())
        rows = np.where(lacking[:, kept], 0.0, np.round(places)).astype(np.int64)
        found = self._kept.take(rows, axis=0)[:, :, : self._middles.shape[1]].prod(axis=1)
        for axis in range(numbers.shape[1]):
            if axis not in self._rows:
                taken = np.flatnonzero(~lacking[:, axis])
                found[taken] *= self._density_at(axis, numbers[taken, axis])
        return found

    def _density_at(self, axis: int, numbers: Numbers) -> Numbers:
        """The same of one dimension."""
        middles, width, half = self._middles[axis], self._widths[axis], self._step[axis] / 2
        scale = np.log if self._log[axis] else np.positive
        if half:
            below = [ndtr((scale(numbers + side)[:, None] - middles) / width) for side in (-half, half)]
            return (below[1] - below[0]) / self._within[axis]
        apart = (scale(numbers)[:, None] - middles) / width
        return np.exp(-0.5 * apart**2) / (_ROOT * width * self._within[axis])

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
