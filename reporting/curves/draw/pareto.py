"""Results against their cost: the cells of one series joined, the front as steps in the accent colour.

Dots on the front are full, the others hollow. A name stands beside the last cell of its series, where it
covers neither dots nor lines, as far as there is such a place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..curve import Cloud, Curve, Point
from .axis_scale import point_scales
from .label_placement import Rectangle, place_labels
from .panel import AXIS_COLOR, PanelLayout, Plot, ticks_width
from .style import ACCENT, DIM, FAINT, INK, TEXT, TICK, crop_name, text_width

_DOT = 3.5  # the size of a mark


def measure(curve: Curve, contents: Sequence[Cloud]) -> PanelLayout:
    """What a cloud needs: ticks at the left and below; names stand inside, or a little beyond."""
    points = [point for content in contents for line in content.lines for point in line.points]
    across, up = point_scales(curve, points, margins=(0.05, 0.06))
    alone = len(contents) == 1
    return PanelLayout(
        left=ticks_width(up),
        right=40 if alone else 12,
        bottom=24,
        width=330,
        min_width=170,
        height=210 if alone else 140,
        x=across,
        y=up,
    )


def draw(plot: Plot, content: Cloud, curve: Curve) -> None:
    """Draw the front below, then the joined cells with their whiskers, then the names."""
    plot.frame(x=True, y=True)
    if len(content.front) > 1:
        plot.trace(content.front, color=ACCENT, linewidth=1.5, drawstyle=f"steps-{content.steps}")
    for line in content.lines:
        plot.trace(line.points, color=INK if line.accent else FAINT, linewidth=0.9)
        for point in line.points:
            _cell(plot, point, best=point in content.front)
    _names(plot, content)
    plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def _cell(plot: Plot, point: Point, *, best: bool) -> None:
    """One cell: a full dot on the front, else a hollow one."""
    x, y = plot.layout.x.at(point.x), plot.layout.y.at(point.y)
    if point.low is not None and point.high is not None:
        ends = [plot.layout.y.at(point.low), plot.layout.y.at(point.high)]
        plot.axes.plot([x, x], ends, color=AXIS_COLOR, linewidth=0.8, zorder=3)
    plot.axes.plot(
        [x],
        [y],
        marker="o",
        markersize=_DOT,
        markerfacecolor=INK if best else "white",
        markeredgecolor=INK if best else DIM,
        markeredgewidth=0.8,
        linestyle="none",
        clip_on=False,
        zorder=4,
    )


def _line_obstacles(plot: Plot, content: Cloud) -> Iterator[Rectangle]:
    """Small rectangles along all lines, for names to keep off."""
    front = [(plot.x(point.x), plot.y(point.y)) for point in content.front]
    for (x, y), (next_x, next_y) in pairwise(front):
        corner = (next_x, y) if content.steps == "post" else (x, next_y)
        yield from _dotted((x, y), corner)
        yield from _dotted(corner, (next_x, next_y))
    for line in content.lines:
        ends = [(plot.x(point.x), plot.y(point.y)) for point in line.points]
        for start, end in pairwise(ends):
            yield from _dotted(start, end)
        for point, (x, _) in zip(line.points, ends, strict=True):
            if point.low is not None and point.high is not None:
                yield (x - 0.5, plot.y(point.low), x + 0.5, plot.y(point.high))


def _dotted(start: tuple[float, float], end: tuple[float, float]) -> Iterator[Rectangle]:
    """Rectangles along a straight line, one every two points."""
    count = max(int(math.dist(start, end) // 2), 1)
    for number in range(count + 1):
        x, y = (a + (b - a) * number / count for a, b in zip(start, end, strict=True))
        yield (x - 1, y - 1, x + 1, y + 1)


def _names(plot: Plot, content: Cloud) -> None:
    """Write the name of every series beside its last cell, off the others and off the cells."""
    named = [line for line in content.lines if line.name]
    anchors = [(plot.x(line.points[-1].x), plot.y(line.points[-1].y)) for line in named]
    dots = [(plot.x(point.x), plot.y(point.y)) for line in content.lines for point in line.points]
    taken: list[Rectangle] = [(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for x, y in dots]
    taken += _line_obstacles(plot, content)
    spots = place_labels(
        anchors,
        [text_width(crop_name(line.name), TEXT) for line in named],
        9.0,
        obstacles=taken,
        bounds=(0, 0, plot.width + plot.layout.right, plot.height),
    )
    for line, spot in zip(named, spots, strict=True):
        weight = "bold" if line.accent else "normal"
        plot.write(spot.x, spot.y, crop_name(line.name), ha=spot.side, weight=weight)
