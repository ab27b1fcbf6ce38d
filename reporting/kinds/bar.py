"""`bar`: horizontal bars with whiskers and numbers.

Bars always begin at 0. If that would hide small differences, points replace the bars, on an axis that does
not begin at 0. A bar with its number needs no axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from ...studies.catalog.published import PublishedTable, match_published, match_published_keys
from ...studies.presentation.figure_keys import BarFigure
from ...studies.schema.factors import level_names, level_text
from ...studies.study import Study
from ..curves.cell_figure import grouped_values, mean_interval
from ..curves.curve import Axis, Bar, Content, Curve, Point
from ..curves.draw.panel import (
    PanelLayout,
    Plot,
    Scale,
    label_rows,
    make_scale,
    measure_names,
    row_positions,
)
from ..curves.draw.style import ACCENT, DIM, FAINT, INK, TICK, text_width
from ..curves.figure_cells import FigureCells, collect_cells
from ..subject import ResultSubject
from ..tables.published import warn_of_unmatched

MAX_BAR_RATIO = 0.6
"""The ratio of smallest to largest value above which bars from 0 hide differences."""


_GREY = "#b4b4b4"


def curve(spec: BarFigure, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
    """Return the figure of bars."""
    cells = collect_cells(spec, ResultSubject(study, spec.select, outcomes), metrics)
    panels: list[list[Bar]] = []
    published = _published(spec, cells)
    for panel, frame in enumerate(cells.frames()):
        values = {x: (cell, each) for x, cell, each in grouped_values(frame, "x", "cell")}
        words = cells.placeholders(panel)
        panels.append([])
        for number, name in enumerate(cells.full_names(spec.x)):
            bar = Bar(name=name, text=words.get((0, number), "–"), accent=cells.accent == number)
            if number in values:
                cell, each = values[number]
                value, low, high = mean_interval(each, spec.spread, cells.metric)
                bar = replace(bar, text=cells.mean_text(value, cell), value=value, low=low, high=high)
            panels[-1].append(replace(bar, published=published.get((panel, number))))
    every = [bar for bars in panels for bar in bars]
    means = [bar.value for bar in every if bar.value is not None]
    points = len(means) > 1 and min(means) > MAX_BAR_RATIO * max(means) > 0
    notes = cells.mean_notes("Point" if points else "Bar", "whisker")
    if any(bar.published is not None for bar in every):
        notes.append(f"Diamonds: published, {_paper(spec, cells).title}.")
    contents = (Bars(bars=tuple(bars), points=points) for bars in panels)
    return cells.curve(cells.panels(contents), notes)


def _paper(spec: BarFigure, cells: FigureCells) -> PublishedTable:
    (paper,) = cells.subject.study.published.find(spec.published or "")
    return paper


def _published(spec: BarFigure, cells: FigureCells) -> dict[tuple[int, int], float]:
    """Return the paper's numbers in the metric's unit, by the panel and the level of `x` of their bars.

    The rows are the first factor with a level that is a row of the paper, and the columns another one with a
    level that is a column; a factor that has one level here may be either.
    """
    if spec.published is None:
        return {}
    paper, known = _paper(spec, cells), dict[str, dict[str, str]]()
    for factor in dict.fromkeys((spec.x, spec.panels, spec.rows, *cells.levels)):
        levels = cells.levels.get(factor or "", ())
        if factor in (spec.x, spec.panels, spec.rows) or len(levels) == 1:
            known[factor or ""] = dict(zip(map(level_text, levels), level_names(levels), strict=True))
    row = next((name for name, levels in known.items() if match_published_keys(levels, paper.rows)), None)
    others = {name: levels for name, levels in known.items() if name != row}
    column = next(
        (name for name, levels in others.items() if match_published_keys(levels, paper.columns)), ""
    )
    varied = any(len(levels) > 1 for levels in others.values())
    # nothing names the only column of the paper, or of several levels its row
    unnamed = varied and not column and len(paper.columns) == 1
    rows = {} if row is None or unnamed else known[row]
    match = match_published(paper, rows, [spec.value], known.get(column, {}))
    every = [level for levels in known.values() for level in levels]
    warn_of_unmatched([[match]], every, [*every, spec.value])
    if row is None or unnamed:
        return {}
    found: dict[tuple[int, int], float] = {}
    for panel in range(len(cells.frames())):
        # panels are numbered row by row
        down, across = divmod(panel, len(cells.levels.get(spec.panels or "", ())) or 1)
        for number in range(len(cells.levels.get(spec.x, ()))):
            at = {spec.rows: down, spec.panels: across, spec.x: number}
            texts = {name: list(known[name])[at.get(name, 0)] for name in (row, column) if name}
            published = match.number_at(texts[row], spec.value, texts.get(column, ""))
            if (
                published is not None
                and published.value is not None
                and not published.unit_note(cells.metric)
            ):
                found[panel, number] = published.value
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Content):
    """The bars of one panel for the levels of a factor in study order, or points instead of bars."""

    bars: tuple[Bar, ...]
    points: bool

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        every = [bar for content in contents for bar in content.bars]
        numbers = [number for bar in every for number in bar.numbers]
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

    def draw(self, plot: Plot, curve: Curve) -> None:
        plot.frame(x=self.points, y=False)
        rows = row_positions(len(self.bars))
        if not self.points:
            plot.axes.axvline(0, color=FAINT, linewidth=0.8)
        for bar, row in zip(self.bars, rows, strict=True):
            _row(plot, bar, row, points=self.points)
            if bar.value is not None:
                start, end = plot.x(bar.value if self.points else 0), plot.x(bar.value)
                words, pitch = curve.bar_words(bar), plot.height / len(rows)
                plot.hover((start + end) / 2, plot.y(row), words, width=abs(end - start), height=pitch)
        if plot.first:
            label_rows(plot, [(bar.name, bar.accent) for bar in self.bars])


def _row(plot: Plot, bar: Bar, row: float, *, points: bool) -> None:
    axes, color = plot.axes, ACCENT if bar.accent else _GREY
    end = plot.x(plot.layout.x.low if points else 0)
    if bar.value is not None:
        if points:
            dark = ACCENT if bar.accent else INK
            axes.plot([bar.value], [row], marker="o", markersize=4, color=dark, linestyle="none")
        else:
            axes.barh(row, bar.value, height=0.62, color=color)
        plot.interval(bar, row)
        end = plot.x(max(bar.value if points else 0, bar.value, bar.high or bar.value))
    if bar.published is not None:
        diamond = Point(x=bar.published, y=row)
        plot.mark(diamond, size=4.2, face="white", edge=INK, marker="D", zorder=5)
        mark = plot.x(bar.published)
        # a diamond that would cover the bar's number moves the number to the right
        if end - 4 < mark < end + text_width(bar.text, TICK, bold=True) + 8:
            end = mark + 3
    look = {"color": INK} if bar.value is not None else {"color": DIM, "style": "italic"}
    plot.write(end + 4, plot.y(row), bar.text, size=TICK, weight="bold" if bar.accent else "normal", **look)
