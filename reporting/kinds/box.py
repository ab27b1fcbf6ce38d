"""`box`: box plots of values, one for each level or each index of a metric.

`attention[3]` is a metric with the index 3. Boxes are horizontal for levels and vertical for indices. The
median is the thick line; a few values are drawn individually instead of their quartiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import quantiles
from typing import Self

import polars as pl

from ...studies.catalog.metrics import find_metric
from ...studies.presentation.figure_keys import BoxFigure
from ...studies.study import Study
from ..curves.cell_figure import grouped_values
from ..curves.curve import Axis, Content, Curve, format_four_digits
from ..curves.draw.panel import (
    PanelLayout,
    Plot,
    Scale,
    label_rows,
    make_scale,
    measure_names,
    row_positions,
    ticks_width,
)
from ..curves.draw.style import ACCENT, DIM, INK, TICK
from ..curves.figure_cells import collect_cells
from ..subject import ResultSubject

MIN_BOX_VALUES = 10
"""The minimum number of values of a box; fewer values are drawn individually."""


_FILL = "#dcdcdc"


def curve(spec: BoxFigure, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
    """Return the figure of box plots."""
    cells = collect_cells(spec, ResultSubject(study, spec.select, outcomes), metrics)
    names = cells.full_names(spec.x)
    at, ticks = ({}, ()) if names else cells.index_positions("x")
    panels: list[list[Box]] = []
    for panel, frame in enumerate(cells.frames()):
        values, words = dict(grouped_values(frame, "x")), cells.placeholders(panel)
        if names:
            found = [
                _make_box(name, number, values.get(number, ()), accent=cells.accent == number)
                for number, name in enumerate(names)
            ]
            found = [box if box.n else replace(box, text=words.get((0, box.at), "–")) for box in found]
        else:
            found = [_make_box(str(x), at[x], each, accent=False) for x, each in values.items()]
        panels.append(sorted(found, key=lambda box: box.at))
    return cells.curve(
        cells.panels(Boxes(boxes=tuple(boxes), rows=bool(names)) for boxes in panels),
        cells.nothing or _notes(spec, [box.n for boxes in panels for box in boxes if box.n]),
        ticks=ticks,
    )


def _notes(spec: BoxFigure, counts: Sequence[int]) -> Iterator[str]:
    of = "quantiles" if find_metric(spec.value).has_quantiles else "values"
    n = f"{counts[0]:,}" if len(set(counts)) == 1 else f"{min(counts):,} to {max(counts):,}"
    if max(counts) >= MIN_BOX_VALUES:
        yield f"Box: median and quartiles of {n} {of}."
        yield "Whisker: to the last value within 1.5 interquartile ranges; dots: those beyond."
    if min(counts) < MIN_BOX_VALUES:
        yield f"Dots: single values, if fewer than {MIN_BOX_VALUES}."


def _make_box(name: str, at: float, ordered: Sequence[float], *, accent: bool) -> Box:
    if len(ordered) < MIN_BOX_VALUES:
        return Box(name=name, at=at, n=len(ordered), values=tuple(ordered), accent=accent)
    low, middle, high = quantiles(ordered, method="inclusive")
    reach = 1.5 * (high - low)
    inside = [value for value in ordered if low - reach <= value <= high + reach]
    return Box(
        name=name,
        at=at,
        n=len(ordered),
        quartiles=(low, middle, high),
        whiskers=(inside[0], inside[-1]),
        values=tuple(value for value in ordered if not inside[0] <= value <= inside[-1]),
        accent=accent,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Quartiles and outliers of `n` values.

    The whiskers end at the last value within 1.5 interquartile ranges. If there are fewer than MIN_BOX_VALUES
    values, all are in `values`, and there are no quartiles. If there are no values, `text` gives the reason.
    """

    name: str
    at: float  # the number of its level, or the place of its index
    n: int
    text: str = ""
    quartiles: tuple[float, float, float] | None = None
    whiskers: tuple[float, float] | None = None
    values: tuple[float, ...] = ()  # values beyond the whiskers, or all if they are few
    accent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes(Content):
    """The boxes of a panel: in rows for levels, or side by side for indices, as in `metric[1]`."""

    boxes: tuple[Box, ...]
    rows: bool

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        every = [box for content in contents for box in content.boxes]
        numbers = [number for box in every for number in (*box.values, *(box.whiskers or ()))]
        values = make_scale(numbers, Axis(title=""), margin=0.03)
        if contents[0].rows:
            name_width, pitch = measure_names([box.name for box in contents[0].boxes])
            count = max(len(contents[0].boxes), 1)
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

    def draw(self, plot: Plot, curve: Curve) -> None:
        plot.frame(x=True, y=not self.rows)
        places = row_positions(len(self.boxes)) if self.rows else [box.at for box in self.boxes]
        half = 0.3 if self.rows else 0.32 * _gap(sorted(set(places)))
        for box, at in zip(self.boxes, places, strict=True):
            _box(plot, box, at, half, upright=not self.rows)
            _hover(plot, box, curve, at, upright=not self.rows)
            if self.rows:
                plot.write(4, plot.y(at), box.text, size=TICK, color=DIM, style="italic")
        if not self.rows:
            plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")
        elif plot.first:
            label_rows(plot, [(box.name, box.accent) for box in self.boxes])


def _gap(places: Sequence[float]) -> float:
    return min((b - a for a, b in pairwise(places)), default=1.0)


def _box(plot: Plot, box: Box, at: float, half: float, *, upright: bool) -> None:
    """Draw one box with its outliers, upright or lying.

    `at` is its position on the axis of levels. If there are too few values for a box, draw the values as
    points.
    """
    from matplotlib.patches import Rectangle  # noqa: PLC0415 -- slow to load, and data do without it

    def line(along: tuple[float, float], values: tuple[float, float], color: str, width: float) -> None:
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


def _hover(plot: Plot, box: Box, curve: Curve, at: float, *, upright: bool) -> None:
    """Show the quartiles of a box, or single values, when the pointer is on them."""
    name = box.name or f"{curve.x.title} {format_four_digits(box.at)}"
    if box.quartiles:
        low, middle, high = box.quartiles
        words = (
            f"{name}: median {format_four_digits(middle)},"
            f" quartiles {format_four_digits(low)} and {format_four_digits(high)}, n = {box.n}"
        )
        marks = [(middle, high - low, words)]
    else:
        marks = [(value, 0.0, f"{name}: {format_four_digits(value)}") for value in box.values]
    for value, length, words in marks:
        if upright:
            plot.hover(plot.x(at), plot.y(value), words, height=plot.y(length) - plot.y(0))
        else:
            plot.hover(plot.x(value), plot.y(at), words, width=plot.x(length) - plot.x(0))
