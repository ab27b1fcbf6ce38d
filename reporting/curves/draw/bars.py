"""Bars in rows with their whiskers and numbers; points where bars would hide differences.

Bars always begin at 0. With the number at its end a bar needs no axis; points have one, since theirs does not
begin at 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..curve import Axis, Bar, Bars, Curve
from .axis_scale import Scale, make_scale
from .panel import AXIS_COLOR, PanelLayout, Plot
from .row_labels import label_rows, measure_names, row_positions
from .style import ACCENT, DIM, INK, TICK, text_width

_GREY = "#b4b4b4"


def measure(curve: Curve, contents: Sequence[Bars]) -> PanelLayout:
    """What bars need: names at the left, the widest number at the right; an axis only below points."""
    every = [bar for content in contents for bar in content.bars]
    numbers = [n for bar in every for n in (bar.value, bar.low, bar.high, bar.published) if n is not None]
    points = contents[0].points
    across = make_scale(
        [*numbers, *([] if points else [0.0])], Axis(title=""), margin=0.04 if points else 0.0
    )
    names = [bar.name for bar in contents[0].bars]
    name_width, pitch = measure_names(names)
    alone = len(contents) == 1
    return PanelLayout(
        left=name_width,
        right=6 + max((text_width(bar.text, TICK, bold=True) for bar in every), default=0.0),
        bottom=13 if points else 2,
        width=220 if alone else 300,
        min_width=60,
        height=pitch * max(len(names), 1),
        x=across,
        y=Scale(low=-0.5, high=max(len(names), 1) - 0.5),
    )


def draw(plot: Plot, content: Bars, curve: Curve) -> None:
    """Draw the rows of a panel, from top to bottom."""
    plot.frame(x=content.points, y=False)
    rows = row_positions(len(content.bars))
    if not content.points:
        plot.axes.axvline(0, color=AXIS_COLOR, linewidth=0.8)
    for bar, row in zip(content.bars, rows, strict=True):
        _row(plot, bar, row, points=content.points)
    if plot.first:
        label_rows(plot, [(bar.name, bar.accent) for bar in content.bars])


def _row(plot: Plot, bar: Bar, row: float, *, points: bool) -> None:
    """One bar or point with its whisker, its number and the paper's.

    The number stands to the right of the whisker, and of the published mark where that is near.
    """
    axes, color = plot.axes, ACCENT if bar.accent else _GREY
    end = plot.x(0 if not points else plot.layout.x.low)
    if bar.value is not None:
        if points:
            dark = ACCENT if bar.accent else INK
            axes.plot([bar.value], [row], marker="o", markersize=4, color=dark, linestyle="none")
        else:
            axes.barh(row, bar.value, height=0.62, color=color)
        if bar.low is not None and bar.high is not None:
            axes.plot(
                [bar.low, bar.high],
                [row, row],
                color=INK,
                linewidth=0.9,
                solid_capstyle="butt",
                clip_on=False,
            )
        end = plot.x(max(0 if not points else bar.value, bar.value, bar.high or bar.value))
    if bar.published is not None:
        plot.mark_published(bar.published, row, INK)
        mark = plot.x(bar.published)
        if end - 4 < mark < end + text_width(bar.text, TICK, bold=True) + 8:
            end = mark + 3
    look = {"color": INK} if bar.value is not None else {"color": DIM, "style": "italic"}
    plot.write(end + 4, plot.y(row), bar.text, size=TICK, weight="bold" if bar.accent else "normal", **look)
