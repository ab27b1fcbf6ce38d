"""The plot of one panel: axes, and text and lines around them placed in points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..curve import Point
from .axis_scale import Scale
from .style import (
    ACCENT,
    FAINT,
    INK,
    MAX_NAME_WIDTH,
    TEXT,
    TICK,
    replace_missing_glyphs,
    text_width,
    wrap_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLayout:
    """The space that the panels of a figure need, in points: around each plot, and for the plot itself.

    `left` is only needed by the first panel of a row and `end_margin` by the last; `right` and `bottom` by
    each. A single plot is `width` wide; several share the available width, with at least `min_width` each.
    """

    left: float
    right: float
    bottom: float
    width: float
    min_width: float
    height: float
    x: Scale
    y: Scale
    end_margin: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One panel's plot in its figure; `left` and `bottom` are its position, all in points."""

    figure: Figure
    axes: Axes
    left: float
    bottom: float
    width: float
    height: float
    first: bool  # of its row, so that it has names at the left
    last: bool  # of the first row
    layout: PanelLayout

    def x(self, number: float) -> float:
        """Return the horizontal position of a number, in points of the plot."""
        scale = self.layout.x
        return (scale.at(number) - scale.low) / (scale.high - scale.low) * self.width

    def y(self, number: float) -> float:
        """Return the vertical position of a number, in points of the plot."""
        scale = self.layout.y
        return (scale.at(number) - scale.low) / (scale.high - scale.low) * self.height

    def write(self, x: float, y: float, text: str, *, size: float = TEXT, **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
        """Write a text at a position in points, by default left-aligned and vertically centred."""
        write(self.figure, self.left + x, self.bottom + y, text, **{"va": "center", "size": size, **look})

    def trace(self, points: Sequence[Point], **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
        """Draw a line through data points."""
        across, up = self.layout.x, self.layout.y
        self.axes.plot([across.at(each.x) for each in points], [up.at(each.y) for each in points], **look)

    def stroke(self, xs: list[float], ys: list[float], **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
        """Draw a line through positions in points, also beyond the plot's edges."""
        from matplotlib.lines import Line2D  # noqa: PLC0415 -- slow to load, and data do without it

        width, height = (72 * size for size in self.figure.get_size_inches())
        line = Line2D(
            [(self.left + x) / width for x in xs],
            [(self.bottom + y) / height for y in ys],
            transform=self.figure.transFigure,
            **look,
        )
        self.figure.add_artist(line)

    def frame(self, *, x: bool, y: bool) -> None:
        """Set the limits, and show the selected axes with their ticks."""
        across, up = self.layout.x, self.layout.y
        self.axes.set_xlim(across.low, across.high)
        self.axes.set_ylim(up.low, up.high)
        for side, wanted in (("left", y), ("bottom", x), ("top", False), ("right", False)):
            self.axes.spines[side].set_visible(wanted)
        for axis, ticks, wanted in ((self.axes.xaxis, across.ticks, x), (self.axes.yaxis, up.ticks, y)):
            axis.set_ticks([at for at, _ in ticks] if wanted else [])
            axis.set_ticklabels(
                self._spaced_tick_texts(ticks, across=ticks is across.ticks) if wanted else []
            )
        if not self.first:
            self.axes.tick_params(labelleft=False)

    def _spaced_tick_texts(self, ticks: Sequence[tuple[float, str]], *, across: bool) -> list[str]:
        """Return the tick labels; one that would overlap the previous one is empty."""
        texts, end = [], -math.inf
        for at, text in ticks:
            scale = self.layout.x
            middle = (at - scale.low) / (scale.high - scale.low) * self.width
            half = text_width(text, TICK) / 2
            free = not across or middle - half >= end
            texts.append(replace_missing_glyphs(text) if free else "")
            end = middle + half + 3 if free else end
        return texts

    def mark_published(self, x: float, y: float, color: str) -> None:
        """Mark a published number at a data position."""
        look = {"markerfacecolor": "white", "markeredgecolor": color, "markeredgewidth": 0.8}
        self.axes.plot(
            [x], [y], marker="D", markersize=4.2, linestyle="none", clip_on=False, zorder=5, **look
        )


def ticks_width(scale: Scale) -> float:
    """Return the width of a vertical axis's tick labels, with the gap to the plot."""
    return max((text_width(text, TICK) for _, text in scale.ticks), default=0.0) + 8


def write(figure: Figure, x: float, y: float, text: str, **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
    """Write a text at a position in points from the figure's lower left corner."""
    width, height = (72 * size for size in figure.get_size_inches())
    figure.text(x / width, y / height, replace_missing_glyphs(text), **{"color": INK, **look})


AXIS_COLOR = FAINT
"""The colour of lines without data: axes, and leader lines of labels."""


_GAP = 5.0  # from a name at the left to the plot


def measure_names(names: Sequence[str]) -> tuple[float, float]:
    """Return the width of names with the gap to the plot, and the height of a row."""
    lines = [wrap_text(name, MAX_NAME_WIDTH, TEXT, bold=True) for name in names]
    width = max((text_width(line, TEXT, bold=True) for each in lines for line in each), default=0.0)
    max_lines = max((len(each) for each in lines), default=1)
    return width + _GAP, 6.0 + 9.5 * max_lines


def row_positions(count: int) -> list[float]:
    """Return the vertical position of each row."""
    return [float(count - 1 - number) for number in range(count)]


def label_rows(plot: Plot, names: Sequence[tuple[str, bool]]) -> None:
    """Write the name of every row: long ones on two lines, the accented one in colour and bold."""
    for (name, accent), row in zip(names, row_positions(len(names)), strict=True):
        plot.write(
            -_GAP,
            plot.y(row),
            "\n".join(wrap_text(name, MAX_NAME_WIDTH, TEXT, bold=True)),
            ha="right",
            multialignment="right",
            linespacing=1.1,
            color=ACCENT if accent else INK,
            weight="bold" if accent else "normal",
        )
