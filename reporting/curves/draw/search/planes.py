"""Points of a search over two dimensions in each panel, in greys: darker is better, the best in the accent.

Where cells are shaded, the points on them are white. Names of options stand upright below the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.patches import Rectangle

from ...curve import Axis, Curve, Plane, Shaded
from ..axis_scale import Scale, make_scale
from ..panel import PanelLayout, Plot, ticks_width
from ..style import ACCENT, DIM, INK, TICK, crop_name, text_width
from .slices import MAX_NAME, is_upright, write_upright

_MIN_WIDTH = 120.0
_MAX_SIDE_NAME = 90.0  # of an option at the left
_LIGHT, _DARK = 0.95, 0.15  # the shades of the worst and the best


def measure(curve: Curve, contents: Sequence[Plane]) -> PanelLayout:
    """What planes need: names of options at the left, and the longest below."""
    side = _side_scale(contents[0])
    names = [name for each in contents if is_upright(each.x, _MIN_WIDTH) for _, name in each.x.ticks]
    longest = max((text_width(crop_name(name, MAX_NAME), TICK) for name in names), default=0.0)
    return PanelLayout(
        left=ticks_width(side),
        right=6,
        bottom=max(18.0, longest + 12),
        width=260,
        min_width=_MIN_WIDTH,
        height=max(110.0, 12.0 * len(contents[0].y.ticks)),
        x=_scale(contents[0], contents[0].x, [end for each in _every(contents[0]) for end in each.x]),
        y=side,
    )


def draw(plot: Plot, content: Plane, curve: Curve) -> None:
    """Draw cells, then every dot, the best last."""
    across = _scale(content, content.x, [end for each in _every(content) for end in each.x])
    plot = replace(plot, layout=replace(plot.layout, x=across))
    plot.frame(x=True, y=True)
    if is_upright(content.x, _MIN_WIDTH):
        write_upright(plot, content.x)
    up = plot.layout.y
    for cell in content.cells:
        left, right, low, high = (
            across.at(cell.x[0]),
            across.at(cell.x[1]),
            up.at(cell.y[0]),
            up.at(cell.y[1]),
        )
        shade = Rectangle((left, low), right - left, high - low, color=_shade(cell.share), linewidth=0)
        plot.axes.add_patch(shade)
    for number, point in enumerate(content.points, 1):
        best = number == len(content.points)
        face = ACCENT if best else "white" if content.cells else _shade(point.share)
        plot.axes.plot(
            [across.at(point.x[0])],
            [up.at(point.y[0])],
            marker="o",
            markersize=5.0 if best else 3.2 if content.cells else 4.2,
            markerfacecolor=face,
            markeredgecolor=ACCENT if best else DIM,
            markeredgewidth=0.6,
            linestyle="none",
            clip_on=False,
            zorder=4 if best else 3,
        )
    if not content.points:
        plot.write(plot.width / 2, plot.height / 2, "no point takes both", size=TICK, color=INK, ha="center")


def _every(content: Plane) -> tuple[Shaded, ...]:
    return content.cells or content.points


def _side_scale(content: Plane) -> Scale:
    names = tuple((at, crop_name(name, _MAX_SIDE_NAME)) for at, name in content.y.ticks)
    named = replace(content.y, ticks=names)
    return _scale(content, named, [end for each in _every(content) for end in each.y])


def _scale(content: Plane, axis: Axis, ends: Sequence[float]) -> Scale:
    """The scale of an axis; cells fill it, points have room around them."""
    margin = 0.0 if content.cells else 0.06
    places = [at + half for at, _ in axis.ticks for half in (-0.5, 0.5)]
    return make_scale([*ends, *places], axis, margin=margin)


def _shade(share: float) -> str:
    return f"{_LIGHT + share * (_DARK - _LIGHT):.2f}"
