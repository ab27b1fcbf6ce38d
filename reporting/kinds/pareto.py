"""`pareto`: a dot for each cell, with cost and result as axes.

A coloured line is the Pareto front. Dots on the front are filled, the others hollow. Each name is next to the
last cell of its series. If possible, it covers no dot and no other name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import polars as pl

from ...studies.catalog.metrics import METRICS_AND_COSTS
from ...studies.presentation.figure_keys import ParetoFigure
from ...studies.study import Study
from ..curves.cell_figure import grouped_values, mean_interval
from ..curves.curve import Content, Curve, Line, Point
from ..curves.draw.panel import PanelLayout, Plot, layout_points, place_labels
from ..curves.draw.style import ACCENT, DIM, FAINT, INK, TEXT, TICK, crop_names, text_width
from ..curves.figure_cells import collect_cells
from ..statistics.estimates import mean
from ..subject import ResultSubject

_DOT = 3.5  # the size of a mark
_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}  # behind a name


def curve(spec: ParetoFigure, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
    """Return the figure of results against costs."""
    cells = collect_cells(spec, ResultSubject(study, spec.select, outcomes), metrics)
    cost = METRICS_AND_COSTS.get(spec.x)
    signs = 1 if cost and cost.higher_is_better else -1, 1 if cells.metric.higher_is_better else -1
    contents, names = list[Cloud](), cells.full_names(spec.series)
    for frame in cells.frames():
        found: dict[tuple[str, bool], list[Point]] = {}
        for series, cell, values in grouped_values(frame, "series", "cell", of=("x", "value")):
            name = names[series] if names else cells.cell_name(cell, (spec.panels, spec.rows))
            xs, ys = zip(*values, strict=True)
            value, low, high = mean_interval(ys, spec.spread, cells.metric)
            x, lost = mean(sorted(xs)), cells.diverged[cell]
            point = Point(x=x, y=value, low=low, high=high, n=len(ys), diverged=lost)
            found.setdefault((name, cells.accent == series), []).append(point)
        lines = tuple(
            Line(name=name, points=tuple(sorted(points, key=lambda point: point.x)), accent=accent)
            for (name, accent), points in found.items()
        )
        sound = [point for points in found.values() for point in points if not point.diverged]
        front = pareto_front(sound, signs)
        contents.append(Cloud(lines=lines, front=front, steps="post" if signs[0] < 0 else "pre"))
    steps = ["Steps: the Pareto front."] if any(len(each.front) > 1 for each in contents) else []
    notes = cells.mean_notes("Point", "whisker", diverged="Cross, never on the front")
    return cells.curve(cells.panels(contents), [*notes, *steps, *cells.lost_note()])


def pareto_front(points: Sequence[Point], signs: tuple[int, int]) -> tuple[Point, ...]:
    """Return the points that no other point beats in both values.

    They are from left to right. The `signs` of x and y are positive if higher values are better.
    """
    kept: list[Point] = []
    # from the best x on, a point is on the front if its y is better than all before
    for point in sorted(points, key=lambda point: (-signs[0] * point.x, -signs[1] * point.y)):
        if not kept or signs[1] * point.y > signs[1] * kept[-1].y:
            kept.append(point)
    return tuple(sorted(kept, key=lambda point: point.x))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud(Content):
    """The content of one panel: a dot for each cell, a line for each series, and the Pareto front."""

    lines: tuple[Line, ...]
    front: tuple[Point, ...]  # from left to right
    steps: Literal["post", "pre"]  # whether front steps extend to the right of their points, or to the left

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        points = [point for content in contents for line in content.lines for point in line.points]
        alone = len(contents) == 1
        return layout_points(
            curve,
            points,
            margins=(0.05, 0.06),
            right=40 if alone else 12,
            width=330,
            min_width=170,
            height=210 if alone else 140,
        )

    def draw(self, plot: Plot, curve: Curve) -> None:
        plot.frame(x=True, y=True)
        if len(self.front) > 1:
            plot.trace(self.front, color=ACCENT, linewidth=1.5, drawstyle=f"steps-{self.steps}")
        for line in self.lines:
            plot.trace(line.points, color=INK if line.accent else FAINT, linewidth=0.9)
            for point in line.points:
                best = point in self.front
                plot.whisker(point, color=FAINT, linewidth=0.8, zorder=3)
                edge, marker = INK if best else DIM, "x" if point.diverged else "o"
                plot.mark(point, size=_DOT, face=INK if best else "white", edge=edge, marker=marker)
            plot.hover_points(line.points, curve, line.name)
        _names(plot, self)
        plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def _names(plot: Plot, content: Cloud) -> None:
    named = [line for line in content.lines if line.name]
    names = crop_names(line.name for line in named)
    spots = place_labels(
        [(plot.x(line.points[-1].x), plot.y(line.points[-1].y)) for line in named],
        [text_width(names[line.name], TEXT) for line in named],
        9.0,
        dots=[(plot.x(point.x), plot.y(point.y)) for line in content.lines for point in line.points],
        bounds=(plot.width + plot.layout.right, plot.height),
    )
    for line, (x, y, side) in zip(named, spots, strict=True):
        weight = "bold" if line.accent else "normal"
        plot.write(x, y, names[line.name], ha=side, weight=weight, bbox=_PAPER)
