"""Which coordinates of a unit cube a response varies with, by a functional ANOVA of a forest of trees.

Hutter, Hoos and Leyton-Brown (2014), "An efficient approach for assessing hyperparameter importance": a tree
is a sum of constant boxes, so that the mean over all other coordinates and its variance are counted exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

MIN_LEAF = 3
"""A box has at least so many points, drawn ones counted as often as they are drawn."""

MAX_DEPTH = 6
"""A point passes at most so many splits."""


def variance_shares(
    places: Floats, values: Floats, *, trees: int, generator: np.random.Generator
) -> Floats | None:
    """For each coordinate the share of the variance that it accounts for by itself, the mean over a forest.

    `places` has points by row, from 0 to 1 at each coordinate. Each tree is of points drawn anew. None where
    no tree varies.
    """
    found: list[Floats] = []
    for _ in range(trees):
        drawn = generator.integers(len(values), size=len(values))
        shares = _tree_shares(*_boxes(places[drawn], values[drawn]))
        found += [] if shares is None else [shares]
    return np.mean(found, axis=0) if found else None


def expected_values(
    places: Floats,
    values: Floats,
    at: Floats,
    axes: Sequence[int],
    *,
    trees: int,
    generator: np.random.Generator,
) -> Floats:
    """What a forest expects where `axes` have the places in a row of `at`, on average over all others."""
    columns, found = list(axes), np.zeros(len(at))
    for _ in range(trees):
        drawn = generator.integers(len(values), size=len(values))
        lows, highs, means = _boxes(places[drawn], values[drawn])
        sizes = highs - lows
        shares = sizes.prod(axis=1) / sizes[:, columns].prod(axis=1)  # of a box in all that has these places
        inside = (lows[:, columns] <= at[:, None]) & (at[:, None] < highs[:, columns])
        found += inside.all(axis=2) @ (means * shares)
    return found / trees


def _boxes(places: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """The boxes of a regression tree: their lower and upper corners, and the mean of each."""
    leaves = list(_leaves(places, values, np.zeros(places.shape[1]), np.ones(places.shape[1]), MAX_DEPTH))
    lows, highs, means = zip(*leaves, strict=True)
    return np.array(lows), np.array(highs), np.array(means)


def _leaves(
    places: Floats, values: Floats, low: Floats, high: Floats, depth: int
) -> Iterator[tuple[Floats, Floats, float]]:
    """The leaves below a node, whose box this is."""
    split = _best_split(places, values) if depth and len(values) >= 2 * MIN_LEAF else None
    if split is None:
        yield low, high, float(values.mean())
        return
    axis, limit = split
    left = places[:, axis] <= limit
    below, above = high.copy(), low.copy()
    below[axis] = above[axis] = limit
    yield from _leaves(places[left], values[left], low, below, depth - 1)
    yield from _leaves(places[~left], values[~left], above, high, depth - 1)


def _best_split(places: Floats, values: Floats) -> tuple[int, float] | None:
    """The coordinate and the limit whose two sides vary least; None where nothing is gained."""
    count = len(values)
    order = np.argsort(places, axis=0, kind="stable")
    sorted_places = np.take_along_axis(places, order, axis=0)
    sums = np.cumsum(values[order] - values.mean(), axis=0)[:-1]  # of those on the left, of all together 0
    left = np.arange(1, count)[:, None]
    gains = sums**2 * (1 / left + 1 / (count - left))
    allowed = (np.diff(sorted_places, axis=0) > 1e-12) & (left >= MIN_LEAF) & (count - left >= MIN_LEAF)
    gains = np.where(allowed, gains, -1.0)
    row, axis = np.unravel_index(int(gains.argmax()), gains.shape)
    if gains[row, axis] <= 1e-12 * max(float(((values - values.mean()) ** 2).sum()), 1e-300):
        return None
    return int(axis), float((sorted_places[row, axis] + sorted_places[row + 1, axis]) / 2)


def _tree_shares(lows: Floats, highs: Floats, means: Floats) -> Floats | None:
    """The share of each coordinate in the variance of a tree over the cube."""
    sizes = highs - lows
    volumes = sizes.prod(axis=1)
    center = float(volumes @ means)
    variance = float(volumes @ (means - center) ** 2)
    if variance <= 0:
        return None
    shares = np.zeros(lows.shape[1])
    for axis in range(lows.shape[1]):
        edges = np.unique(np.concatenate([lows[:, axis], highs[:, axis]]))
        middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        inside = (lows[:, axis] <= middles[:, None]) & (middles[:, None] < highs[:, axis])
        marginal = inside @ (means * volumes / sizes[:, axis])
        shares[axis] = float(widths @ (marginal - center) ** 2) / variance
    return shares
