"""The plot of one panel, with its scales, tick labels and axes, and helpers that place texts and lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..curve import Axis, Bar, Curve, Point
from .style import (
    ACCENT,
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
    from matplotlib.ticker import Locator, MaxNLocator

_MIN_LOG_TICKS = 3

_HOVER_SIZE = 7.0  # the smallest side of an area that a pointer meets easily


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear or logarithmic mapping from numbers to positions on an axis.

    A logarithmic axis has no place for 0 and shows it one `step` below the smallest positive number.
    """

    low: float  # the positions at which the axis begins and ends
    high: float
    log: bool = False
    min_positive: float = 1.0  # the smallest positive number
    step: float = 1.0  # the distance between 0 and the smallest
    ticks: tuple[tuple[float, str], ...] = ()

    def at(self, number: float) -> float:
        """Return the position of a number. A logarithmic axis shows negative numbers where it shows 0."""
        if not self.log:
            return number
        return math.log10(number if number > 0 else self.min_positive) - (self.step if number <= 0 else 0)


def make_scale(numbers: Iterable[float], axis: Axis, *, margin: float = 0.0) -> Scale:
    """Return the scale of an axis that shows these numbers.

    Both ends are extended by `margin`, a share of the axis's length. If there are fewer than two numbers, the
    scale has a range around them. Ticks of the axis are kept.
    """
    every = sorted(set(numbers)) or [0.0, 1.0]
    positive = [number for number in every if number > 0] or [1.0]
    step = _step([place for place, _ in axis.ticks if place > 0] or positive)
    bare = Scale(low=0, high=0, log=axis.log, min_positive=positive[0], step=step)
    low, high = bare.at(every[0]), bare.at(every[-1])
    if low == high:
        low, high = (low - 0.5, high + 0.5) if axis.log or not low else sorted((0.9 * low, 1.1 * high))
    room = margin * (high - low)
    found = replace(bare, low=low - room, high=high + room)
    ticks = axis.ticks
    if axis.log and not ticks:
        places = [0.0] * (every[0] <= 0) + _log_ticks(positive[0], positive[-1])
        ticks = zip(places, tick_texts(places), strict=True)
    elif not ticks:
        integers = all(float(number).is_integer() for number in every)
        places = _ticks(_round_numbers(integers=integers), found.low, found.high)
        ticks = zip(places, tick_texts(places), strict=True)
    return replace(found, ticks=tuple((found.at(place), text) for place, text in ticks))


def tick_texts(numbers: Sequence[float]) -> list[str]:
    """Return exact tick labels with few decimals. Large numbers (from 10,000) get SI prefixes."""
    if max(map(abs, numbers), default=0.0) >= 1e4:
        from matplotlib.ticker import EngFormatter  # noqa: PLC0415 -- slow to load, and data do without it

        prefixed = EngFormatter(sep="")
        return [prefixed(number) if abs(number) >= 1 else f"{number:g}" for number in numbers]

    def are_exact(digits: int) -> bool:
        return all(math.isclose(round(each, digits), each, rel_tol=1e-9, abs_tol=1e-12) for each in numbers)

    decimals = next(filter(are_exact, range(9)), 9)
    # the format option z avoids a negative zero
    return [format(number, f"z,.{decimals}f").replace("-", "−") for number in numbers]


def _step(positive: Sequence[float]) -> float:
    """Return how far below the smallest number a log axis shows 0: the mean distance in powers of ten."""
    places = sorted({math.log10(number) for number in positive})
    return max((places[-1] - places[0]) / (len(places) - 1), 0.1) if len(places) > 1 else 1.0


def _round_numbers(*, integers: bool = False) -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 -- as above

    return MaxNLocator(nbins=5, steps=[1, 2, 5, 10], min_n_ticks=1, integer=integers)


def _log_ticks(low: float, high: float) -> list[float]:
    """Return the positions of ticks on a logarithmic axis.

    They are powers of ten. If there are too few, 2 and 5 times these powers are added; if there are still too
    few, the ticks are round numbers.
    """
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 -- as above

    if low == high:
        return [low]
    for locator in (LogLocator(), LogLocator(subs=[1, 2, 5])):
        if len(found := _ticks(locator, low, high)) >= _MIN_LOG_TICKS:
            return found
    return _ticks(_round_numbers(), low, high)


def _ticks(locator: Locator, low: float, high: float) -> list[float]:
    return [
        float(tick)
        for tick in locator.tick_values(low, high)
        if low <= tick <= high or math.isclose(tick, low) or math.isclose(tick, high)
    ]


_BESIDE = (
    (-5.0, 0.0, "right"),
    (5.0, 9.0, "left"),
    (5.0, 0.0, "left"),
    (-5.0, -9.0, "right"),
    (5.0, -9.0, "left"),
    (-5.0, 9.0, "right"),
)
"""The offsets of a label from its point, each with the text's alignment, in the order of preference."""

_DOT_RADIUS = 3.5


def spread_labels(preferred: Sequence[float], height: float, low: float, high: float) -> list[float]:
    """Return label positions that do not overlap, near the preferred ones.

    They are at least `height` apart, within `low` and `high`. The squared distances from the preferred
    positions are as small as possible. If there are more labels than fit, they move closer together.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 -- slow to load, and data do without it

    if not preferred:
        return []
    order = sorted(range(len(preferred)), key=lambda index: (preferred[index], index))
    height = min(height, (high - low) / (len(preferred) - 1)) if len(preferred) > 1 else height
    # each label without the labels below it may not be lower than the one before
    bare = isotonic_regression([preferred[index] - height * number for number, index in enumerate(order)]).x
    most = high - height * (len(preferred) - 1)
    places = [0.0] * len(preferred)
    for number, (index, place) in enumerate(zip(order, bare.tolist(), strict=True)):
        places[index] = max(min(place, most), low) + height * number
    return places


def place_labels(
    anchors: Sequence[tuple[float, float]],
    widths: Sequence[float],
    height: float,
    *,
    dots: Sequence[tuple[float, float]],
    bounds: tuple[float, float],
) -> list[tuple[float, float, str]]:
    """Return the position and the alignment of a label beside each anchor point.

    Labels stay between 0 and the width and height in `bounds` before they avoid dots and each other.
    """
    from matplotlib.transforms import Bbox  # noqa: PLC0415 -- slow to load, and data do without it

    size, area = 2 * _DOT_RADIUS, Bbox.from_bounds(0, 0, *bounds)
    taken = [Bbox.from_bounds(x - _DOT_RADIUS, y - _DOT_RADIUS, size, size) for x, y in dots]
    spots: list[tuple[float, float, str]] = []
    for (x, y), width in zip(anchors, widths, strict=True):
        options: list[tuple[bool, int, tuple[float, float, str], Bbox]] = []
        for dx, dy, side in _BESIDE:
            left = x + dx - (width if side == "right" else 0.0)
            box = Bbox.from_bounds(left, y + dy - height / 2, width, height)
            is_outside = not all(area.contains(*corner) for corner in (box.min, box.max))
            options.append((is_outside, sum(map(box.overlaps, taken)), (x + dx, y + dy, side), box))
        *_, spot, box = min(options, key=lambda option: option[:2])
        spots.append(spot)
        taken.append(box)
    return spots


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLayout:
    """The margins and sizes (in points) and the scales that all panels of a figure share.

    The first panel of a row needs `left`, the last panel `end_margin`, and every panel `right` and `bottom`.
    A single plot has the width `width`; several plots share the available width, with at least `min_width`
    each.
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
class HoverArea:
    """A rectangle of a panel that shows `words` when the pointer is on it, in points from the lower left."""

    left: float
    bottom: float
    width: float
    height: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The plot of one panel, whose position in the figure is `left` and `bottom`. All sizes are in points."""

    figure: Figure
    axes: Axes
    left: float
    bottom: float
    width: float
    height: float
    first: bool  # with names and ticks on the left
    last: bool  # last of the first row
    layout: PanelLayout
    title: str = ""  # of the panel, for the words of its marks
    hover_areas: list[HoverArea]  # of the whole figure

    def hover(
        self, x: float, y: float, words: str, *, width: float = _HOVER_SIZE, height: float = _HOVER_SIZE
    ) -> None:
        """Show `words` when the pointer is on a mark of a figure in a page, whose middle is in points."""
        width, height = max(width, _HOVER_SIZE), max(height, _HOVER_SIZE)
        self.hover_areas.append(
            HoverArea(
                left=self.left + x - width / 2,
                bottom=self.bottom + y - height / 2,
                width=width,
                height=height,
                words=" · ".join(filter(None, (self.title, words))),
            )
        )

    def hover_points(self, points: Iterable[Point], curve: Curve, name: str = "") -> None:
        """Show the values of each point when the pointer is on it."""
        for point in points:
            self.hover(self.x(point.x), self.y(point.y), curve.point_words(point, name))

    def x(self, number: float) -> float:
        """Return the horizontal position of a number, in points from the plot's left edge."""
        scale = self.layout.x
        return (scale.at(number) - scale.low) / (scale.high - scale.low) * self.width

    def y(self, number: float) -> float:
        """Return the vertical position of a number, in points from the plot's lower edge."""
        scale = self.layout.y
        return (scale.at(number) - scale.low) / (scale.high - scale.low) * self.height

    def write(self, x: float, y: float, text: str, *, size: float = TEXT, **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
        """Write a text at a position in points, by default left-aligned and vertically centred."""
        write(self.figure, self.left + x, self.bottom + y, text, **{"va": "center", "size": size, **look})

    def trace(self, points: Sequence[Point], **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
        """Draw a line through data points."""
        across, up = self.layout.x, self.layout.y
        self.axes.plot([across.at(each.x) for each in points], [up.at(each.y) for each in points], **look)

    def band(self, points: Sequence[Point], color: str, *, alpha: float) -> None:
        """Draw the intervals of a line as one area; a single interval is a vertical line."""
        across, up = self.layout.x, self.layout.y
        area = [
            (across.at(point.x), up.at(point.low), up.at(point.high))
            for point in points
            if point.low is not None and point.high is not None
        ]
        if not area:
            return
        xs, lows, highs = zip(*area, strict=True)
        if len(area) == 1:
            self.axes.vlines(xs, lows, highs, color=color, alpha=2 * alpha, linewidth=2.6)
        self.axes.fill_between(xs, lows, highs, color=color, alpha=alpha, linewidth=0)

    def stroke(self, xs: list[float], ys: list[float], **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
        """Draw a line through positions in points. They may lie beyond the plot's edges."""
        from matplotlib.lines import Line2D  # noqa: PLC0415 -- slow to load, and data do without it

        width, height = (72 * size for size in self.figure.get_size_inches())
        # in the figure's coordinates, because the plot's edges would cut a line in its axes
        line = Line2D(
            [(self.left + x) / width for x in xs],
            [(self.bottom + y) / height for y in ys],
            transform=self.figure.transFigure,
            **look,
        )
        self.figure.add_artist(line)

    def frame(self, *, x: bool, y: bool) -> None:
        """Set the range of both axes. Draw the horizontal axis if `x`, and the vertical axis if `y`."""
        across, up = self.layout.x, self.layout.y
        self.axes.set_xlim(across.low, across.high)
        self.axes.set_ylim(up.low, up.high)
        for side, wanted in (("left", y), ("bottom", x), ("top", False), ("right", False)):
            self.axes.spines[side].set_visible(wanted)
        shown = ((self.axes.xaxis, across.ticks if x else ()), (self.axes.yaxis, up.ticks if y else ()))
        for axis, ticks in shown:
            axis.set_ticks([at for at, _ in ticks])
            axis.set_ticklabels(self._spaced_tick_texts(ticks, across=axis is self.axes.xaxis))
        if not self.first:
            self.axes.tick_params(labelleft=False)

    def _spaced_tick_texts(self, ticks: Sequence[tuple[float, str]], *, across: bool) -> list[str]:
        texts, end = [], -math.inf
        for at, text in ticks:
            scale = self.layout.x
            middle = (at - scale.low) / (scale.high - scale.low) * self.width
            half = text_width(text, TICK) / 2
            free = not across or middle - half >= end
            texts.append(replace_missing_glyphs(text) if free else "")
            end = middle + half + 3 if free else end
        return texts

    def mark(self, point: Point, *, size: float, face: str, edge: str, **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
        """Draw a mark at a data point, by default a dot above all lines."""
        known = {"marker": "o", "markeredgewidth": 0.8, "linestyle": "none", "clip_on": False, "zorder": 4}
        colors = {"markerfacecolor": face, "markeredgecolor": edge}
        self.trace([point], markersize=size, **{**known, **colors, **look})

    def whisker(self, point: Point, **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
        """Draw the vertical interval of a data point, if it has one."""
        if point.low is not None and point.high is not None:
            self.trace([replace(point, y=end) for end in (point.low, point.high)], **look)

    def interval(self, of: Point | Bar, row: float) -> None:
        """Draw the horizontal interval of a bar or point on its row, if it has one."""
        if of.low is not None and of.high is not None:
            look = {"color": INK, "linewidth": 0.9, "solid_capstyle": "butt", "clip_on": False}
            self.axes.plot([of.low, of.high], [row, row], **look)


def ticks_width(scale: Scale) -> float:
    """Return the width of a vertical axis's tick labels, including the gap to the plot."""
    return max((text_width(text, TICK) for _, text in scale.ticks), default=0.0) + 8


def layout_points(
    curve: Curve,
    points: Sequence[Point],
    *,
    margins: tuple[float, float],
    right: float,
    width: float,
    min_width: float,
    height: float,
) -> PanelLayout:
    """Return the layout of panels with points. The scales of both axes cover all points and intervals.

    Each scale is extended by its share in `margins`, the horizontal one first. There is room for ticks and a
    title below.
    """
    up = [y for point in points for y in point.numbers]
    scale = make_scale([y for y in up if y > 0 or not curve.y.log], curve.y, margin=margins[1])
    return PanelLayout(
        left=ticks_width(scale),
        right=right,
        bottom=24,
        width=width,
        min_width=min_width,
        height=height,
        x=make_scale([point.x for point in points], curve.x, margin=margins[0]),
        y=scale,
    )


def write(figure: Figure, x: float, y: float, text: str, **look: Any) -> None:  # noqa: ANN401 -- matplotlib's own
    """Write a text at a position in points from the figure's lower left corner."""
    width, height = (72 * size for size in figure.get_size_inches())
    figure.text(x / width, y / height, replace_missing_glyphs(text), **{"color": INK, **look})


_GAP = 5.0  # from a name at the left to the plot


def measure_names(names: Sequence[str]) -> tuple[float, float]:
    """Return the width of row names beside a plot, with the gap to the plot, and the height of each row."""
    lines = [wrap_text(name, MAX_NAME_WIDTH, TEXT, bold=True) for name in names]
    width = max((text_width(line, TEXT, bold=True) for each in lines for line in each), default=0.0)
    max_lines = max((len(each) for each in lines), default=1)
    return width + _GAP, 6.0 + 9.5 * max_lines


def row_positions(count: int) -> list[float]:
    """Return the vertical position of each row on the axis; the first row is at the top."""
    return [float(count - 1 - number) for number in range(count)]


def label_rows(plot: Plot, names: Sequence[tuple[str, bool]]) -> None:
    """Write the name of every row. Long names are on two lines, highlighted names in bold and colour."""
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
