"""A line for each level of one factor over the levels of another, which are words with equal distances.

Points stand a little beside each other, so that their whiskers can be told apart. Lines that are not parallel
are an interaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..curve import Axis, Curve, Interaction
from .axis_scale import Scale, make_scale
from .lines import label_lines, line_strokes
from .panel import PanelLayout, Plot, ticks_width
from .style import DIM, TEXT, TICK, crop_name, text_width, wrap_text

_WIDTH = 300.0
_APART = 4.0  # points from one line's mark to the next
_NAME = 8.0


def measure(curve: Curve, contents: Sequence[Interaction]) -> PanelLayout:
    """What the lines need: ticks at the left, names below on as many lines as needed, series at the right."""
    content = contents[0]
    points = [point for line in content.lines for point in line.points]
    numbers = [n for point in points for n in (point.y, point.low, point.high) if n is not None]
    up = make_scale(numbers, Axis(title=""), margin=0.05)
    width = (
        max(text_width(crop_name(line.name), TEXT, bold=True) for line in content.lines)
        if content.lines
        else 0.0
    )
    high = max((len(_wrapped(content, name)) for name in content.levels), default=1)
    return PanelLayout(
        left=ticks_width(up),
        right=_NAME + width,
        bottom=14 + 8.5 * high,
        width=_WIDTH,
        min_width=_WIDTH,
        height=180,
        x=Scale(low=-0.35, high=max(len(content.levels), 1) - 0.65),
        y=up,
    )


def draw(plot: Plot, content: Interaction, curve: Curve) -> None:
    """Draw the lines with their whiskers, then the names."""
    plot.frame(x=True, y=True)
    if not content.lines:
        return
    strokes = dict(line_strokes(content.lines))
    unit = 1 / (plot.x(1) - plot.x(0))
    for number, line in enumerate(content.lines):
        color, dashes, width = strokes[line.name]
        shift = (number - (len(content.lines) - 1) / 2) * _APART * unit
        xs = [point.x + shift for point in line.points]
        plot.axes.plot(
            xs,
            [point.y for point in line.points],
            color=color,
            linestyle=dashes,
            linewidth=width,
            marker="o",
            markersize=3.2,
            clip_on=False,
        )
        for x, point in zip(xs, line.points, strict=True):
            if point.low is not None and point.high is not None:
                plot.axes.plot([x, x], [point.low, point.high], color=color, linewidth=0.9, clip_on=False)
    label_lines(plot, content.lines, strokes)
    for at, name in enumerate(content.levels):
        plot.write(
            plot.x(at), -5, "\n".join(_wrapped(content, name)), size=TICK, color=DIM, ha="center", va="top"
        )
    plot.write(plot.width, 4 - plot.layout.bottom, curve.x.title, size=TICK, color=DIM, ha="right")


def _wrapped(content: Interaction, name: str) -> list[str]:
    """The name of a level on lines as wide as its share of the axis."""
    return wrap_text(name, _WIDTH / max(len(content.levels), 1) - 6, TICK)
