"""Placement of labels near their marks without overlaps: along a line, or anywhere in the plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Rectangle = tuple[float, float, float, float]
"""Left, bottom, right, top."""

_AROUND = tuple(
    (distance * math.cos(angle), distance * math.sin(angle))
    for distance in (5.0, 10.0, 16.0, 23.0)
    for angle in (math.radians(degrees) for degrees in (0, 180, 90, 270, 35, -35, 145, -145))
)
"""Label positions around a point: right, left, above, below, then between these, then farther away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPosition:
    """The position of a label: the middle of its near edge, and which edge that is."""

    x: float
    y: float
    side: str  # left, center or right, as text is aligned


def spread_labels(preferred: Sequence[float], height: float, low: float, high: float) -> list[float]:
    """Return positions at least `height` apart and near the preferred ones, within `low` and `high`.

    Labels that would overlap form a group around the mean of their preferred positions. If there are more
    labels than fit, they move closer together.
    """
    order = sorted(range(len(preferred)), key=lambda index: (preferred[index], index))
    height = min(height, (high - low) / (len(preferred) - 1)) if len(preferred) > 1 else height
    groups: list[tuple[float, list[int]]] = []  # each with the place of its lowest member
    for index in order:
        groups.append((min(max(preferred[index], low), high), [index]))
        while len(groups) > 1 and groups[-2][0] + height * len(groups[-2][1]) > groups[-1][0]:
            members = groups[-2][1] + groups[-1][1]
            groups[-2:] = [(_lowest(members, preferred, height, low, high), members)]
    places = [0.0] * len(preferred)
    for bottom, members in groups:
        for number, index in enumerate(members):
            places[index] = bottom + height * number
    return places


def _lowest(
    members: Sequence[int], preferred: Sequence[float], height: float, low: float, high: float
) -> float:
    """Return the position of a group's lowest member that minimises the sum of squared distances."""
    count = len(members)
    free = sum(preferred[index] - height * number for number, index in enumerate(members)) / count
    return max(min(free, high - height * (count - 1)), low)


def place_labels(
    anchors: Sequence[tuple[float, float]],
    widths: Sequence[float],
    height: float,
    *,
    obstacles: Sequence[Rectangle],
    bounds: Rectangle,
) -> list[LabelPosition]:
    """Return a position for each anchor's label.

    Labels avoid obstacles and each other, and stay within bounds if possible.
    """
    full = list(obstacles)
    spots = []
    for (x, y), width in zip(anchors, widths, strict=True):
        options = [_candidate(x + dx, y + dy, width, height, dx) for dx, dy in _AROUND]
        costs = [
            _outside(box, bounds) * 100 + sum(_overlap(box, other) for other in full) + rank * 0.8
            for rank, (_, box) in enumerate(options)
        ]
        spot, box = options[costs.index(min(costs))]
        spots.append(spot)
        full.append(box)
    return spots


def _candidate(
    x: float, y: float, width: float, height: float, toward: float
) -> tuple[LabelPosition, Rectangle]:
    """Return a label at a position on one side of it, and the rectangle that it covers."""
    side = "center" if abs(toward) < 0.1 else "left" if toward > 0 else "right"
    left = x - {"left": 0.0, "center": width / 2, "right": width}[side]
    return LabelPosition(x=x, y=y, side=side), (left, y - height / 2, left + width, y + height / 2)


def _overlap(one: Rectangle, other: Rectangle) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def _outside(one: Rectangle, bounds: Rectangle) -> float:
    over = (bounds[0] - one[0], bounds[1] - one[1], one[2] - bounds[2], one[3] - bounds[3])
    return sum(max(each, 0.0) for each in over)
