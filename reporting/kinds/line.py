"""`line`: lines of a metric, with bands that show the spread.

The horizontal axis shows a factor's levels, training time or an index of the metric.

Lines differ in shade and dashes as well as in colour. Names follow the order of the lines' ends. Overlapping
names are moved apart, and a thin leader connects a moved name to its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import polars as pl

from ...studies.presentation.figure_keys import INDEX_AXES, LineFigure
from ...studies.schema.factors import level_text
from ...studies.study import Study
from ..curves.cell_figure import grouped_values, mean_interval
from ..curves.curve import Content, Curve, Line, Panel, Point, Ticks
from ..curves.draw.panel import PanelLayout, Plot, layout_points, spread_labels
from ..curves.draw.style import (
    ACCENT,
    DIM,
    FAINT,
    LIGHT,
    PALE,
    TEXT,
    TICK,
    Stroke,
    crop_names,
    line_strokes,
    text_width,
)
from ..curves.figure_cells import FigureCells, collect_cells
from ..subject import ResultSubject

MAX_LINES = 5
"""The maximum number of lines in one panel; if there are more, each line gets a panel, with the other lines
in grey.
"""


_MAX_MARKED_POINTS = 16  # lines with fewer points get marks
_NAME = 8.0  # gap from the plot to a name
_LINE = 9.5  # gap between names


def curve(spec: LineFigure, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
    """Return the figure of lines."""
    cells = collect_cells(spec, ResultSubject(study, spec.select, outcomes), metrics)
    names, (at, ticks) = cells.full_names(spec.series), _positions(spec, cells)
    panels: list[tuple[Line, ...]] = []
    for frame in cells.frames():
        found: dict[int, list[Point]] = {}
        for series, x, cell, values in grouped_values(frame, "series", "x", "cell"):
            value, low, high = mean_interval(values, spec.spread, cells.metric)
            lost = cells.diverged[cell]
            point = Point(x=at[x], y=value, low=low, high=high, n=len(values), diverged=lost)
            found.setdefault(series, []).append(point)
        panels.append(
            tuple(
                Line(
                    name=names[series] if names else "",
                    number=series,
                    points=tuple(sorted(points, key=lambda point: point.x)),
                    accent=cells.accent == series,
                )
                for series, points in sorted(found.items())
            )
        )
    notes = [*cells.mean_notes("Line", "band", diverged="Hollow"), *cells.lost_note()]
    if len(panels) > 1:
        made = cells.panels(Lines(lines=lines) for lines in panels)
    else:
        made = _panels_of(panels[0])
        if len(made) > 1:
            accented = [f"; in colour: {line.name}" for line in panels[0] if line.accent]
            notes.append(f"Grey: the other panels' lines{''.join(accented)}.")
    # what a loss can reach, and what training costs, depend on the task
    own_scales = spec.panels == "task" and spec.rows is None and cells.metric.higher_is_better is False
    return cells.curve(made, notes, ticks=ticks, own_scales=own_scales and len(panels) > 1)


def _positions(spec: LineFigure, cells: FigureCells) -> tuple[Mapping[object, float], Ticks]:
    """Return the positions of the entries of the column `x` on the horizontal axis, and its ticks."""
    if spec.is_course:
        return {x: float(x) for x in cells.frame["x"].unique()}, ()
    if spec.x in INDEX_AXES:
        return cells.index_positions("x")
    numbers = [float(level) for level in cells.levels[spec.x]]
    texts = map(level_text, cells.levels[spec.x])
    return dict(enumerate(numbers)), tuple(sorted(zip(numbers, texts, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Content):
    """The lines of one panel.

    `context` has the lines of the other panels, which are drawn in the background.
    """

    lines: tuple[Line, ...]
    context: tuple[Line, ...] = ()

    @property
    def is_accented(self) -> bool:
        return [line.accent for line in self.lines] == [True]

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        """Return the layout of all panels with lines: ticks on the left and below, names on the right."""
        every = [line for content in contents for line in (*content.lines, *content.context)]
        points = [point for line in every for point in line.points]
        names = [
            name
            for content in contents
            if not content.context
            for name in crop_names(line.name for line in content.lines).values()
        ]
        alone = len(contents) == 1
        return layout_points(
            curve,
            points,
            margins=(0.015, 0.04),
            right=_NAME + max((text_width(name, TEXT, bold=True) for name in names), default=0.0),
            width=300 if alone else 400,
            min_width=90,
            height=180 if alone else 90,
        )

    def draw(self, plot: Plot, curve: Curve) -> None:
        plot.frame(x=True, y=True)
        for line in self.context:
            _line(plot, line, (ACCENT if line.accent else PALE, "-", 1.0 if line.accent else 0.8))
        strokes = line_strokes(self.lines)
        # the accented line is drawn last, so that it lies above the others
        order = sorted(self.lines, key=lambda line: line.accent)
        for line in order:
            plot.band(line.points, strokes[line.name][0], alpha=0.15)
        for line in order:
            _line(plot, line, strokes[line.name], marked=len(line.points) < _MAX_MARKED_POINTS)
            plot.hover_points(line.points, curve, line.name)
        if not self.context:
            label_lines(plot, self.lines, strokes)
        plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def _panels_of(lines: tuple[Line, ...]) -> tuple[Panel, ...]:
    """Return a panel with these lines; if they are too many, a panel for each, with the others in grey."""
    if len(lines) <= MAX_LINES:
        return (Panel(title="", content=Lines(lines=lines)),)
    return tuple(
        Panel(
            title=line.name,
            content=Lines(lines=(line,), context=tuple(other for other in lines if other is not line)),
        )
        for line in lines
    )


def label_lines(plot: Plot, lines: Sequence[Line], strokes: dict[str, Stroke]) -> None:
    """Write the name of every line next to its right end, without overlaps."""
    named = [line for line in lines if line.name]
    names = crop_names(line.name for line in named)
    ends = [(plot.x(line.points[-1].x), plot.y(line.points[-1].y)) for line in named]
    places = spread_labels([y for _, y in ends], _LINE, 0, plot.height)
    for line, (x, y), place in zip(named, ends, places, strict=True):
        color = DIM if strokes[line.name][0] == LIGHT else strokes[line.name][0]
        if abs(y - place) > 2 or x < plot.width - 8:
            plot.stroke([x + 3, plot.width + _NAME - 2], [y, place], color=FAINT, linewidth=0.5)
        weight = "bold" if line.accent else "normal"
        plot.write(plot.width + _NAME, place, names[line.name], color=color, weight=weight)


def _line(plot: Plot, line: Line, stroke: Stroke, *, marked: bool = False) -> None:
    color, dashes, width = stroke
    plot.trace(
        line.points,
        color=color,
        linestyle=dashes,
        linewidth=width,
        solid_capstyle="round",
        marker="o" if marked else None,
        markersize=2.6,
        clip_on=False,
    )
    lost = [point for point in line.points if point.diverged]
    for point in lost if marked else lost[-1:]:
        plot.mark(point, size=4.2, face="white", edge=color)
