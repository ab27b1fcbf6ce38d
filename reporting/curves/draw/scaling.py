"""Cells by cost and result on logarithmic axes, with the band and the line of each series' law.

Beside the end of each line stand the series' name and, below it, the exponent.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..curve import Curve, Law, Scaling, ScalingSeries
from .axis_scale import point_scales
from .label_placement import spread_labels
from .panel import AXIS_COLOR, PanelLayout, Plot, ticks_width
from .style import (
    ACCENTED,
    DIM,
    INK,
    LIGHT,
    STROKES,
    TEXT,
    TICK,
    Dash,
    crop_name,
    text_width,
)

_NAME = 8.0  # from the plot to a name
_LINE = 20.0  # from one name to the next


def measure(curve: Curve, contents: Sequence[Scaling]) -> PanelLayout:
    """What a figure of laws needs: ticks at the left and below, names with exponents at the right."""
    every = [series for content in contents for series in content.series]
    points = [
        point for series in every for point in (*series.points, *(series.law.line if series.law else ()))
    ]
    across, up = point_scales(curve, points, margins=(0.04, 0.06))
    widths = [text_width(crop_name(series.name), TEXT, bold=True) for series in every]
    widths += [text_width(exponent_text(series.law), TICK) for series in every if series.law]
    return PanelLayout(
        left=ticks_width(up),
        right=_NAME + max(widths, default=0.0),
        bottom=24,
        width=300,
        min_width=120,
        height=200,
        x=across,
        y=up,
    )


def draw(plot: Plot, content: Scaling, curve: Curve) -> None:
    """Draw bands, then lines, then cells, the accented series last."""
    plot.frame(x=True, y=True)
    for series in sorted(content.series, key=lambda series: series.accent):
        _series(plot, series, _stroke(series, alone=len(content.series) == 1))
    named = [series for series in content.series if series.name or series.law]
    ends = [(series.law.line if series.law else series.points)[-1] for series in named]
    places = spread_labels([plot.y(end.y) for end in ends], _LINE, 4, plot.height - 4)
    for series, end, place in zip(named, ends, places, strict=True):
        _name(plot, series, (plot.x(end.x), plot.y(end.y)), place, alone=len(content.series) == 1)
    plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def exponent_text(law: Law) -> str:
    """The exponent as it stands below a name."""
    half = "" if law.half_width is None else f" ± {law.half_width:.3f}"
    return f"exponent {law.exponent:.3f}{half}".replace("-", "−")


def _stroke(series: ScalingSeries, *, alone: bool) -> tuple[str, Dash, float]:
    if series.accent:
        return ACCENTED
    return (INK, "-", 1.5) if alone else STROKES[series.number % len(STROKES)]


def _series(plot: Plot, series: ScalingSeries, stroke: tuple[str, Dash, float]) -> None:
    """One series: its law with the band, and its cells with their whiskers."""
    color, dashes, width = stroke
    across, up = plot.layout.x, plot.layout.y
    if series.law:
        known = [(p.x, p.low, p.high) for p in series.law.line if p.low is not None and p.high is not None]
        if known:
            xs = [across.at(x) for x, _, _ in known]
            lows, highs = [up.at(low) for _, low, _ in known], [up.at(high) for _, _, high in known]
            plot.axes.fill_between(xs, lows, highs, color=color, alpha=0.15, linewidth=0)
        plot.trace(series.law.line, color=color, linestyle=dashes, linewidth=width)
    for point in series.points:
        x, y = across.at(point.x), up.at(point.y)
        if point.low is not None and point.high is not None:
            plot.axes.plot([x, x], [up.at(point.low), up.at(point.high)], color=color, linewidth=0.8)
        look = {"markerfacecolor": "white", "markeredgecolor": color, "markeredgewidth": 0.9}
        plot.axes.plot(
            [x], [y], marker="o", markersize=3.5, linestyle="none", clip_on=False, zorder=4, **look
        )


def _name(plot: Plot, series: ScalingSeries, end: tuple[float, float], place: float, *, alone: bool) -> None:
    """The name of a series and its exponent, with a thin leader from the end of its line."""
    color = _stroke(series, alone=alone)[0]
    color, x = DIM if color == LIGHT else color, plot.width + _NAME
    plot.stroke([end[0] + 3, x - 2], [end[1], place], color=AXIS_COLOR, linewidth=0.5)
    weight = "bold" if series.accent else "normal"
    if series.name:
        plot.write(x, place + 4.5 * bool(series.law), crop_name(series.name), color=color, weight=weight)
    if series.law:
        plot.write(x, place - 4.5 * bool(series.name), exponent_text(series.law), size=TICK, color=DIM)
