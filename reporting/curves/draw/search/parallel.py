"""Points of a search as lines over parallel axes: pale, the best tenth dark, the best in the accent.

A point that does not take a dimension passes below its axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...curve import Coordinate, Curve, Parallel
from ..axis_scale import Scale
from ..panel import AXIS_COLOR, PanelLayout, Plot
from ..style import ACCENT, DIM, INK, PALE, TICK, crop_name, text_width

_BELOW = -0.12  # where lines pass that have no value
_PITCH = 88.0  # from axis to axis, at most
_MAX_WIDTH = 380.0


def measure(curve: Curve, contents: Sequence[Parallel]) -> PanelLayout:
    """What parallel axes need: room for the names at the right of each."""
    axes = contents[0].axes
    last = max(text_width(name, TICK) for name in (*(text for _, text in axes[-1].ticks), axes[-1].title))
    count = max(len(axes) - 1, 1)
    return PanelLayout(
        left=8,
        right=last + 12,
        bottom=14,
        width=min(_PITCH * count, _MAX_WIDTH),
        min_width=170,
        height=170,
        x=Scale(low=0.0, high=float(count)),
        y=Scale(low=_BELOW - 0.03, high=1.14),
    )


def draw(plot: Plot, content: Parallel, curve: Curve) -> None:
    """Draw the lines, the best last, then the axes with their names above them."""
    plot.frame(x=False, y=False)
    for line in content.lines:
        heights = [_BELOW if height is None else height for height in line.heights]
        color, width = (ACCENT, 2.0) if line.is_best else (INK, 1.0) if line.is_good else (PALE, 0.7)
        order = 4 if line.is_best else 3 if line.is_good else 2
        plot.axes.plot(
            range(len(heights)), heights, color=color, linewidth=width, zorder=order, clip_on=False
        )
    pitch = plot.width / max(len(content.axes) - 1, 1)
    for number, axis in enumerate(content.axes):
        _axis(plot, axis, number, pitch)


def _axis(plot: Plot, axis: Coordinate, number: int, pitch: float) -> None:
    """One axis with its title and its ticks."""
    x = plot.x(number)
    plot.stroke([x, x], [plot.y(0.0), plot.y(1.0)], color=AXIS_COLOR, linewidth=0.8)
    title = crop_name(axis.title, pitch - 6)
    plot.write(x, plot.y(1.07), title, size=TICK, color=INK, ha="left" if number == 0 else "center")
    for at, text in axis.ticks:
        plot.stroke([x, x + 2.5], [plot.y(at), plot.y(at)], color=AXIS_COLOR, linewidth=0.6)
        shown = crop_name(text, pitch - 8)
        look = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6}
        plot.write(x + 4.5, plot.y(at), shown, size=TICK, color=DIM, bbox=look, zorder=6)
