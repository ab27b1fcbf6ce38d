"""Points of a search in order as dots, the best so far as steps in the accent, the baseline dashed."""

from __future__ import annotations

from collections.abc import Sequence

from ...curve import Curve, Point, PointTrace
from ..axis_scale import point_scales
from ..panel import PanelLayout, Plot, ticks_width
from ..style import ACCENT, DIM, FAINT, LIGHT, TEXT, TICK, text_width

_NAME = 8.0  # from the plot to a name


def measure(curve: Curve, contents: Sequence[PointTrace]) -> PanelLayout:
    """What a trace needs: ticks at the left and below, names at the right."""
    points = [
        point for content in contents for point in (*content.points, *content.best, *_baseline(content))
    ]
    across, up = point_scales(curve, points, margins=(0.02, 0.06))
    return PanelLayout(
        left=ticks_width(up),
        right=_NAME + max(text_width(name, TEXT, bold=True) for name in ("best", "baseline")),
        bottom=24,
        width=330,
        min_width=170,
        height=180,
        x=across,
        y=up,
    )


def draw(plot: Plot, content: PointTrace, curve: Curve) -> None:
    """Draw what chance comes to, dots, the baseline, and the best so far on top."""
    plot.frame(x=True, y=True)
    up, x = plot.layout.y, plot.layout.x
    for baseline in _baseline(content):
        if baseline.low is not None and baseline.high is not None:
            ends = (up.at(baseline.low), up.at(baseline.high))
            plot.axes.axhspan(*ends, color=LIGHT, alpha=0.18, linewidth=0)
        plot.axes.axhline(up.at(baseline.y), color=DIM, linewidth=1.0, linestyle=(0, (4, 1.5)))
        plot.write(plot.width + _NAME, plot.y(baseline.y), "baseline", color=DIM)
    plot.axes.plot(
        [x.at(point.x) for point in content.points],
        [up.at(point.y) for point in content.points],
        marker="o",
        markersize=3.0,
        markerfacecolor="white",
        markeredgecolor=FAINT,
        markeredgewidth=0.8,
        linestyle="none",
        clip_on=False,
    )
    plot.trace(content.best, color=ACCENT, linewidth=1.8, clip_on=False, zorder=4)
    if content.best:
        end = content.best[-1]
        plot.write(plot.width + _NAME, plot.y(end.y), "best", color=ACCENT, weight="bold")
    plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def _baseline(content: PointTrace) -> tuple[Point, ...]:
    return () if content.baseline is None else (content.baseline,)
