"""Contours of Pathfinder, grown in many images at once without touching each other or themselves."""

from __future__ import annotations

from math import ceil, pi
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from ....studies.catalog.tasks import TaskError
from ....studies.catalog.tasks.synthetic import PathfinderSettings
from ....studies.catalog.tasks.synthetic.pathfinder import Geometry

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]

PADDING = 1
"""The width of the border without contours, in pixels."""

_TURNS, _PLACES, _TRIES = 8, 8, 4
"""Candidate turns for each link, start positions for a distractor, and attempts for a distractor."""

_AHEAD = np.array([-0.8, 0, 0.8])
"""Turns of the link after the next that are checked for free space, relative to the largest turn."""

_PATIENCE, _BEGINNINGS = 4, 2000
"""An image restarts after this many turns for each paddle, and fails after this many starts."""

_FAR = 1e6
"""The coordinate in pixels that stands for a missing point."""


class Scenes(NamedTuple):
    """Contours of images as the corners of their chains: (row, column) in pixels; (0, 0) is the first centre.

    `contours` (images, 2, links + 1, 2); a chain extends half a gap beyond its first and last paddle.
    `distractors` (images, some, links + 1, 2) are NaN for those that found no room.
    """

    contours: Floats
    distractors: Floats


def draw_scenes(task: PathfinderSettings, count: int, paddles: int, generator: Generator) -> Scenes:
    """Draw images with two long contours and distractors; raise TaskError if the long ones do not fit."""
    space = _Space(task, generator)
    contours = _Pairs(space, count, paddles).grow()
    return Scenes(contours, _draw_distractors(space, contours, *task.distractors_beside(paddles)))


def find_ends(geometry: Geometry, chains: Floats) -> Floats:
    """Return the two outer ends of each chain's strokes (..., 2, 2)."""
    share = geometry.gap / 2 / geometry.link
    first = chains[..., 0, :] + share * (chains[..., 1, :] - chains[..., 0, :])
    last = chains[..., -1, :] + share * (chains[..., -2, :] - chains[..., -1, :])
    return np.stack([first, last], -2)


class _Obstacles(NamedTuple):
    """Points (images, n, 2), and the minimum distance from each (n,)."""

    points: Floats
    clearance: Floats

    def keep(self, rows: Rows) -> _Obstacles:
        """Select the obstacles of some images."""
        return _Obstacles(self.points[rows], self.clearance)

    def join(self, *more: _Obstacles) -> _Obstacles:
        """Combine these obstacles with others of the same images."""
        parts = [self, *more]
        points = np.concatenate([part.points for part in parts], 1)
        return _Obstacles(points, np.concatenate([part.clearance for part in parts]))


class _Space:
    """The free space in the images of a task, and its random numbers."""

    def __init__(self, task: PathfinderSettings, generator: Generator) -> None:
        self.task, self.geometry, self.side = task, task.geometry, task.side
        self._generator = generator
        self.steps = ceil(1.8 * self.geometry.link / self.geometry.clearance)
        self._shares = (np.arange(self.steps) + 1)[:, None] / self.steps

    def random(self, *shape: int) -> Floats:
        """Return uniform numbers."""
        return torch.rand(shape, generator=self._generator, dtype=torch.float64).numpy()

    def sample(self, starts: Floats, ends: Floats) -> Floats:
        """Return points along links (..., steps, 2); the last point is the link's end."""
        return starts[..., None, :] + (ends - starts)[..., None, :] * self._shares

    def avoid(self, points: Floats, lengths: Rows) -> _Obstacles:
        """Return obstacles along chains of points (images, n, 2), each of `lengths` links (images,)."""
        there = np.arange(points.shape[1]) <= self.steps * lengths[:, None]
        return self.far_from(np.where(there[:, :, None], points, _FAR), self.geometry.clearance)

    def far_from(self, points: Floats, clearance: float) -> _Obstacles:
        """Return points (images, n, 2) as obstacles, with the required distance of link points from them.

        A line may pass nearer than its points, by at most the square of half their distance.
        """
        safe = clearance + (self.geometry.link / self.steps) ** 2 / (8 * clearance)
        return _Obstacles(points, np.full(points.shape[1], safe))

    def is_inside(self, points: Floats) -> Flags:
        """Return whether points (..., 2) are away from the border."""
        inside = (points >= PADDING) & (points <= self.side - 1 - PADDING)
        return inside[..., 0] & inside[..., 1]

    def is_free(self, links: Floats, obstacles: _Obstacles) -> Flags:
        """Return which links (images, links, points, 2) are inside and unobstructed: (images, links)."""
        inside = self.is_inside(links).all(2)
        rows, columns = (links[..., None, axis] - obstacles.points[:, None, None, :, axis] for axis in (0, 1))
        rows *= rows
        columns *= columns
        rows += columns
        return inside & (rows.min(2) >= obstacles.clearance**2).all(2)

    def turn(self, corners: Floats, headings: Floats, final: Flags) -> tuple[Floats, Floats, Floats]:
        """Draw candidate next links at corners (images, 2): ends, headings, and the density of each turn.

        The density is 0 if no further link would stay inside, except for final links.
        """
        continuity, shift = self.geometry.continuity, self.random(len(corners), 1)
        turns = (2 * (np.arange(_TURNS) + shift) / _TURNS - 1) * pi / 2 / continuity
        angles = headings[:, None] + turns
        ends = corners[:, None] + self.geometry.link * directions(angles)
        ahead = angles[:, :, None] + _AHEAD * pi / 2 / continuity
        next_ends = ends[:, :, None] + self.geometry.link * directions(ahead)
        going_on = self.is_inside(next_ends).any(2)
        return ends, angles, np.cos(continuity * turns) ** 2 * (going_on | final[:, None])

    def choose(self, weights: Floats) -> tuple[Rows, Flags]:
        """Choose an element of each row by weight; also return whether there is one."""
        totals = weights.cumsum(1)
        return (totals > self.random(len(weights), 1) * totals[:, -1:]).argmax(1), totals[:, -1] > 0


def directions(angles: Floats) -> Floats:
    """Return unit vectors (..., 2) as (row, column)."""
    return np.stack([np.sin(angles), np.cos(angles)], -1)


class _Pairs:
    """Two contours in each image, which grow in turns by one link.

    A contour without a free next link drops some links. An image that takes too long starts again.
    """

    def __init__(self, space: _Space, count: int, paddles: int) -> None:
        self._space, self._paddles = space, paddles
        self._points = np.zeros((count, 2, space.steps * paddles + 1, 2))
        self._headings = np.zeros((count, 2, paddles + 1))  # of the link that ends at a corner
        self._lengths = np.zeros((count, 2), dtype=np.intp)
        self._first = np.zeros((count, 2, 2))  # where strokes begin, and a mark may be
        self._last = np.full((count, 2, 2), _FAR)
        self._turns = np.zeros(count, dtype=np.intp)  # since an image has begun
        self._beginnings = np.zeros(count, dtype=np.intp)

    def grow(self) -> Floats:
        """Grow and return all chains (images, 2, links + 1, 2)."""
        rows = np.arange(len(self._points))
        while len(rows):
            late = self._turns[rows] > _PATIENCE * self._paddles
            self._begin(rows[late | (self._lengths[rows, 0] == 0)])
            for path in (0, 1):
                lengths = self._lengths[rows, path]
                self._grow(rows[(lengths > 0) & (lengths < self._paddles)], path)
            self._turns[rows] += 1
            rows = rows[(self._lengths[rows] < self._paddles).any(1)]
        return self._points[:, :, :: self._space.steps]

    def _begin(self, rows: Rows) -> None:
        """Draw first links near the middle; an image whose link is not free gets none."""
        space, geometry, drawn = self._space, self._space.geometry, self._space.random(5, len(rows))
        border = min(2 * geometry.apart, space.side * 7 / 16)
        first = np.empty((len(rows), 2, 2))
        first[:, 0] = border + drawn[:2].T * (space.side - 1 - 2 * border)
        first[:, 1] = first[:, 0] + geometry.apart * directions(2 * pi * drawn[2])
        headings = 2 * pi * drawn[3:].T
        starts = first - geometry.gap / 2 * directions(headings)
        links = space.sample(starts, starts + geometry.link * directions(headings))
        points = np.concatenate([starts[:, :, None], links], 2)
        self._points[rows, :, : space.steps + 1], self._headings[rows, :, 1] = points, headings
        self._first[rows], self._last[rows] = first, _FAR
        free, one = np.ones(len(rows), dtype=np.bool_), np.ones(len(rows), dtype=np.intp)
        for path in (0, 1):
            other = space.avoid(points[:, 1 - path], one).join(self._marks(rows, 1 - path))
            free &= space.is_free(points[:, path, None], other)[:, 0]
        self._lengths[rows], self._turns[rows] = free[:, None], 0
        self._beginnings[rows] += 1
        if (tried := int(self._beginnings.max(initial=0))) > _BEGINNINGS:
            raise TaskError(
                f"{space.task.name}: expected room for two contours of {self._paddles} paddles in "
                f"{space.side} x {space.side} pixels, got none in {tried - 1:,} attempts"
            )

    def _grow(self, rows: Rows, path: int) -> None:
        if not len(rows):
            return
        space, length, points = self._space, self._lengths[rows, path], self._points[rows]
        corners = points[np.arange(len(rows)), path, space.steps * length]
        final = length == self._paddles - 1
        ends, angles, weights = space.turn(corners, self._headings[rows, path, length], final)
        links = space.sample(np.broadcast_to(corners[:, None], ends.shape), ends)
        far = np.where(length[:, None, None] > 1, self._first[rows, path, None], _FAR)  # two links are near
        obstacles = space.avoid(points[:, path], length - 1).join(
            space.avoid(points[:, 1 - path], self._lengths[rows, 1 - path]),
            space.far_from(far, space.geometry.mark_clearance),
            self._marks(rows, 1 - path),
        )
        weights *= space.is_free(links, obstacles)
        tips = ends[final] - space.geometry.gap / 2 * directions(angles[final])
        weights[final] *= self._may_be_marked(rows[final], path, tips)
        chosen, free = space.choose(weights)
        grown, chosen, place = rows[free], chosen[free], space.steps * length[free]
        self._lengths[grown, path] += 1
        self._headings[grown, path, length[free] + 1] = angles[free, chosen]
        steps = place[:, None] + np.arange(space.steps) + 1
        self._points[grown[:, None], path, steps] = links[free, chosen]
        last = final[free]
        self._last[grown[last], path] = tips[free[final], chosen[last]]
        self._go_back(rows[~free], path)

    def _go_back(self, rows: Rows, path: int) -> None:
        """Remove some links of a contour, rather few than many, but never the first."""
        lengths = self._lengths[rows, path]
        some = 1 + (self._space.random(len(rows)) ** 2 * lengths).astype(np.intp)
        self._lengths[rows, path] = np.maximum(lengths - some, 1)

    def _marks(self, rows: Rows, path: int) -> _Obstacles:
        places = np.stack([self._first[rows, path], self._last[rows, path]], 1)
        return self._space.far_from(places, self._space.geometry.mark_clearance)

    def _may_be_marked(self, rows: Rows, path: int, tips: Floats) -> Flags:
        """Return whether marks at last ends (images, some, 2) keep clear of contours and first marks.

        The last two links before an end are exempt.
        """
        space, points, length = self._space, self._points[rows], self._lengths[rows]
        near = space.avoid(points[:, path], length[:, path] - 1).join(
            space.avoid(points[:, 1 - path], length[:, 1 - path])
        )
        contours = space.far_from(near.points, space.geometry.mark_clearance)
        marks = space.far_from(self._first[rows], space.geometry.mark_distance)
        return space.is_free(tips[:, :, None], contours.join(marks))


def _draw_distractors(space: _Space, pairs: Floats, most: int, paddles: int) -> Floats:
    """Draw short contours (images, most, links + 1, 2); NaN if several attempts found no room."""
    found = np.full((len(pairs), most, paddles + 1, 2), np.nan)
    ends = find_ends(space.geometry, pairs).reshape(len(pairs), 4, 2)
    links = space.sample(pairs[:, :, :-1], pairs[:, :, 1:])
    points = np.concatenate([pairs[:, :, 0], links.reshape(len(pairs), -1, 2)], 1)
    obstacles = space.far_from(points, space.geometry.clearance).join(
        space.far_from(ends, space.geometry.mark_clearance)
    )
    for index in range(most):
        rows, new = np.arange(len(pairs)), np.full((len(pairs), space.steps * paddles + 1, 2), _FAR)
        for _ in range(_TRIES):
            points, free = _draw_distractor(space, obstacles.keep(rows), paddles)
            new[rows[free]] = points[free]
            found[rows[free], index] = points[free, :: space.steps]
            rows = rows[~free]
        obstacles = obstacles.join(space.far_from(new, space.geometry.clearance))
    return found


def _draw_distractor(space: _Space, obstacles: _Obstacles, paddles: int) -> tuple[Floats, Flags]:
    """Draw a short contour in each image (images, n, 2); also return whether it found room."""
    geometry, rows = space.geometry, np.arange(len(obstacles.points))
    drawn = space.random(3, len(rows), _PLACES)
    starts, angles = PADDING + (space.side - 1 - 2 * PADDING) * np.stack([*drawn[:2]], -1), 2 * pi * drawn[2]
    links = space.sample(starts, starts + geometry.link * directions(angles))
    links = np.concatenate([starts[:, :, None], links], 2)
    chosen, alive = space.choose(space.is_free(links, obstacles).astype(np.float64))
    points, headings = links[rows, chosen], angles[rows, chosen]
    for link in range(1, paddles):
        corners = points[:, -1]
        ends, angles, weights = space.turn(corners, headings, np.full(len(rows), link == paddles - 1))
        links = space.sample(np.broadcast_to(corners[:, None], ends.shape), ends)
        own = space.avoid(points, np.full(len(rows), link - 1))
        chosen, free = space.choose(weights * space.is_free(links, obstacles.join(own)))
        points, headings = np.concatenate([points, links[rows, chosen]], 1), angles[rows, chosen]
        alive &= free
    return points, alive
