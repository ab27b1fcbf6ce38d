"""Box plots: in rows for levels, upright along the index of a metric.

The median is the thick line; few values are drawn one by one instead of their quartiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.patches import Rectangle

from ..curve import Axis, Box, Boxes, Curve
from .axis_scale import Scale, make_scale
from .panel import PanelLayout, Plot, ticks_width
from .row_labels import label_rows, measure_names, row_positions
from .style import ACCENT, DIM, INK, TICK

_FILL = "#dcdcdc"


def measure(curve: Curve, contents: Sequence[Boxes]) -> PanelLayout:
    """What boxes need: names or ticks at the left, the other axis below."""
    every = [box for content in contents for box in content.boxes]
    numbers = [number for box in every for number in (*box.values, *(box.whiskers or ()))]
    values = make_scale(numbers, Axis(title=""), margin=0.03)
    if contents[0].rows:
        return _measure_rows(contents[0], values)
    places = sorted({box.at for box in every}) or [0.0]
    gap, ticks = _gap(places), make_scale(places, curve.x).ticks
    return PanelLayout(
        left=ticks_width(values),
        right=4,
        bottom=24,
        width=360,
        min_width=160,
        height=170 if len(contents) == 1 else 110,
        x=Scale(low=places[0] - gap, high=places[-1] + gap, ticks=ticks),
        y=values,
    )


def _measure_rows(content: Boxes, values: Scale) -> PanelLayout:
    """What boxes in rows need, the same in every panel."""
    name_width, pitch = measure_names([box.name for box in content.boxes])
    count = max(len(content.boxes), 1)
    return PanelLayout(
        left=name_width,
        right=8,
        bottom=13,
        width=270,
        min_width=80,
        height=(pitch + 2) * count,
        x=values,
        y=Scale(low=-0.5, high=count - 0.5),
    )


def draw(plot: Plot, content: Boxes, curve: Curve) -> None:
    """Draw the boxes of a panel."""
    plot.frame(x=True, y=not content.rows)
    if not content.rows:
        half = 0.32 * _gap(sorted({box.at for box in content.boxes}))
        for box in content.boxes:
            _box(plot, box, box.at, half, upright=True)
        plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")
        return
    for box, row in zip(content.boxes, row_positions(len(content.boxes)), strict=True):
        _box(plot, box, row, 0.3, upright=False)
        plot.write(4, plot.y(row), box.text, size=TICK, color=DIM, style="italic")
    if plot.first:
        label_rows(plot, [(box.name, box.accent) for box in content.boxes])


def _gap(places: Sequence[float]) -> float:
    """The distance from one box to the next."""
    return min((b - a for a, b in pairwise(places)), default=1.0)


def _box(plot: Plot, box: Box, at: float, half: float, *, upright: bool) -> None:
    """One box across its place, or the values one by one."""

    def line(along: tuple[float, float], values: tuple[float, float], color: str, width: float) -> None:
        """A line from two places along the boxes to two values, whichever way the boxes lie."""
        plot.axes.plot(
            *((along, values) if upright else (values, along)),
            color=color,
            linewidth=width,
            solid_capstyle="butt",
        )

    edge = ACCENT if box.accent else INK
    if box.quartiles and box.whiskers:
        low, middle, high = box.quartiles
        line((at, at), (box.whiskers[0], low), edge, 0.8)
        line((at, at), (high, box.whiskers[1]), edge, 0.8)
        x, y, width, height = at - half, low, 2 * half, high - low
        corner, size = ((x, y), (width, height)) if upright else ((y, x), (height, width))
        plot.axes.add_patch(Rectangle(corner, *size, facecolor=_FILL, edgecolor=edge, linewidth=0.8))
        line((at - half, at + half), (middle, middle), edge, 2.0)
    if box.values:
        spots = ([at] * len(box.values), box.values)
        plot.axes.plot(
            *(spots if upright else spots[::-1]),
            marker="o",
            markersize=1.6 if box.quartiles else 3,
            markerfacecolor=edge,
            markeredgewidth=0,
            alpha=0.6,
            linestyle="none",
        )
