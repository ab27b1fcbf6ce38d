"""The means at the levels of every factor: points in rows below the factor's name, joined by a thin line."""

from __future__ import annotations

from collections.abc import Sequence

from ..curve import Axis, Bar, Curve, Effects
from .axis_scale import Scale, make_scale
from .panel import AXIS_COLOR, PanelLayout, Plot
from .row_labels import measure_names
from .style import DIM, FAINT, INK, MAX_NAME_WIDTH, TEXT, TICK, text_width, wrap_text

_HEAD = 1.15  # rows that a factor's name takes, with the space above
_GAP = 5.0


def measure(curve: Curve, contents: Sequence[Effects]) -> PanelLayout:
    """What the means need: names at the left, numbers at the right, an axis below."""
    content = contents[0]
    means = [mean for factor in content.factors for mean in factor.means]
    numbers = [n for mean in means for n in (mean.value, mean.low, mean.high) if n is not None]
    numbers += [] if content.center is None else [content.center]
    names, pitch = measure_names([mean.name for mean in means])
    heads = max((text_width(factor.name, TEXT, bold=True) for factor in content.factors), default=0.0)
    rows = max(len(means) + _HEAD * len(content.factors), 1.0)
    return PanelLayout(
        left=max(names, heads + _GAP),
        right=8 + max((text_width(mean.text, TICK) for mean in means), default=0.0),
        bottom=24,
        width=260,
        min_width=120,
        height=pitch * rows,
        x=make_scale(numbers, Axis(title=""), margin=0.04),
        y=Scale(low=-rows, high=0.0),
    )


def draw(plot: Plot, content: Effects, curve: Curve) -> None:
    """Draw the rows from top to bottom, over the mean of all."""
    plot.frame(x=True, y=False)
    if content.center is not None:
        plot.axes.axvline(content.center, color=AXIS_COLOR, linewidth=0.8, linestyle=(0, (1, 2)))
    at = 0.0
    for factor in content.factors:
        head = at - _HEAD / 2 - 0.08
        plot.write(-_GAP, plot.y(head), factor.name, ha="right", weight="bold")
        plot.write(plot.width, plot.y(head), factor.text, ha="right", size=TICK, color=DIM)
        rows = [at - _HEAD - number - 0.5 for number in range(len(factor.means))]
        known = [
            (mean.value, row) for mean, row in zip(factor.means, rows, strict=True) if mean.value is not None
        ]
        if known:
            plot.axes.plot(*zip(*known, strict=True), color=FAINT, linewidth=0.8, zorder=1)
        for mean, row in zip(factor.means, rows, strict=True):
            _row(plot, mean, row)
        at = rows[-1] - 0.5
    plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def _row(plot: Plot, mean: Bar, row: float) -> None:
    """A level's name, its point with its whisker, and its number."""
    name = "\n".join(wrap_text(mean.name, MAX_NAME_WIDTH, TEXT, bold=True))
    plot.write(-_GAP, plot.y(row), name, ha="right", multialignment="right", linespacing=1.1)
    look = {"color": INK} if mean.value is not None else {"color": DIM, "style": "italic"}
    if mean.value is None:
        plot.write(4, plot.y(row), mean.text, size=TICK, **look)
        return
    if mean.low is not None and mean.high is not None:
        plot.axes.plot(
            [mean.low, mean.high], [row, row], color=INK, linewidth=0.9, solid_capstyle="butt", clip_on=False
        )
    plot.axes.plot([mean.value], [row], marker="o", markersize=4, color=INK, linestyle="none", clip_on=False)
    plot.write(plot.width + 8, plot.y(row), mean.text, size=TICK, **look)
