"""Points of a search over one dimension in each panel, on axes of their own; the best in the accent.

Names of options stand upright below the axis where they have no room side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...curve import Axis, Curve, Point, Slice
from ..axis_scale import Scale, make_scale, point_scales
from ..panel import PanelLayout, Plot, ticks_width
from ..style import ACCENT, DIM, INK, TICK, crop_name, text_width

_MIN_WIDTH = 92.0
MAX_NAME = 76.0
"""The width of the name of an option that stands upright."""


def measure(curve: Curve, contents: Sequence[Slice]) -> PanelLayout:
    """What slices need: ticks at the left, and the longest name of an option below."""
    points = [point for content in contents for point in content.points]
    _, up = point_scales(curve, points, margins=(0.05, 0.06))
    names = [
        name for content in contents if is_upright(content.axis, _MIN_WIDTH) for _, name in content.axis.ticks
    ]
    longest = max((text_width(crop_name(name, MAX_NAME), TICK) for name in names), default=0.0)
    return PanelLayout(
        left=ticks_width(up),
        right=6,
        bottom=max(18.0, longest + 12),
        width=260,
        min_width=_MIN_WIDTH,
        height=110,
        x=_scale(contents[0]),
        y=up,
    )


def draw(plot: Plot, content: Slice, curve: Curve) -> None:
    """Draw every dot, the best last."""
    plot = replace(plot, layout=replace(plot.layout, x=_scale(content)))
    plot.frame(x=True, y=True)
    if is_upright(content.axis, _MIN_WIDTH):
        write_upright(plot, content.axis)
    _dots(plot, [point for point in content.points if point != content.best], DIM, "white")
    if content.best is not None:
        _dots(plot, [content.best], ACCENT, ACCENT)
    if not content.points:
        plot.write(plot.width / 2, plot.height / 2, "no point takes it", size=TICK, color=INK, ha="center")


def _scale(content: Slice) -> Scale:
    numbers = [*(point.x for point in content.points), *(at for at, _ in content.axis.ticks)]
    return make_scale(numbers, content.axis, margin=0.25 if content.axis.ticks else 0.06)


def is_upright(axis: Axis, width: float) -> bool:
    """Whether the names of options have no room side by side in a panel so narrow."""
    return sum(text_width(name, TICK) + 5 for _, name in axis.ticks) > width


def write_upright(plot: Plot, axis: Axis) -> None:
    """Write the names of options upright below a plot, in place of the labels of its ticks."""
    plot.axes.xaxis.set_ticklabels([])
    for at, name in axis.ticks:
        look = {"rotation": 90, "ha": "center", "va": "top"}
        plot.write(plot.x(at), -5, crop_name(name, MAX_NAME), size=TICK, color=DIM, **look)


def _dots(plot: Plot, points: Sequence[Point], edge: str, face: str) -> None:
    across, up = plot.layout.x, plot.layout.y
    plot.axes.plot(
        [across.at(point.x) for point in points],
        [up.at(point.y) for point in points],
        marker="o",
        markersize=3.2,
        markerfacecolor=face,
        markeredgecolor=edge,
        markeredgewidth=0.8,
        linestyle="none",
        clip_on=False,
        zorder=4 if edge == ACCENT else 3,
    )
