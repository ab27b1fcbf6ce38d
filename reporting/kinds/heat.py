"""`heat`: heat maps in grey, darker for higher values.

Numbers are in the cells. If there are too many cells, a scale next to the map replaces them. All panels share
one scale. A cell without a value is white and shows the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import polars as pl

from ...studies.catalog.metrics import find_metric
from ...studies.presentation.figure_keys import INDEX_AXES, HeatFigure
from ...studies.schema.factors import short_level_names
from ...studies.study import Study
from ..curves.cell_figure import grouped_values
from ..curves.curve import Content, Curve
from ..curves.draw.panel import PanelLayout, Plot, Scale, label_rows, measure_names
from ..curves.draw.style import DIM, INK, TICK, text_width
from ..curves.figure_cells import FigureCells, collect_cells
from ..statistics.estimates import mean
from ..subject import ResultSubject

MAX_LABELLED_ROWS, MAX_LABELLED_COLUMNS = 48, 12
"""The maximum number of rows and of columns for which cells show numbers."""

_LIGHT, _DARK = 0.95, 0.15  # the shades of the lowest and the highest value
_STEEP = 55  # angle in degrees of names wider than their columns
_MAX_SIDE = 240.0  # largest size of a map without numbers


def curve(spec: HeatFigure, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
    """Return the heat maps."""
    cells = collect_cells(spec, ResultSubject(study, spec.select, outcomes), metrics)
    (rows, row_names), (columns, column_names) = _axis(cells, "y"), _axis(cells, "x")
    has_index = not {*INDEX_AXES}.isdisjoint(spec.roles.values())
    frames, noted = cells.frames(), cells.second_metric()
    means = [{(y, x): mean(values) for y, x, values in grouped_values(frame, "y", "x")} for frame in frames]
    every = [value for each in means for value in each.values()] or [0.0]
    ends = [(end, cells.metric.format(end)) for end in (min(every), max(every))]
    contents: list[Matrix] = []
    for panel, found in enumerate(means):
        texts = {} if has_index else cells.placeholders(panel)
        places = frames[panel].select("y", "x", "cell").unique().iter_rows()
        texts |= {(y, x): cells.mean_text(found[y, x], cell) for y, x, cell in places}
        marked = {str(index) for index in noted.get(panel, {})} if spec.x == INDEX_AXES[-1] else set()
        contents.append(
            Matrix(
                rows=tuple(row_names),
                columns=tuple(column_names),
                values=tuple(tuple(found.get((y, x)) for x in columns) for y in rows),
                texts=tuple(tuple(texts.get((y, x), "–") for x in columns) for y in rows),
                ends=(ends[0], ends[1]),
                pairs=tuple(number for number, x in enumerate(columns) if str(x) in marked),
            )
        )
    panels = cells.panels(contents)
    mark, diverged = ("Number", "*") if contents[0].is_readable else ("Shade", "Some shades")
    notes = cells.mean_notes(mark, diverged=diverged)
    if noted:
        title = find_metric(find_metric(spec.value).noted).title
        names = [" ".join(filter(None, (panel.row, panel.title))) for panel in panels]
        parts = (f"{names[panel]} {', '.join(each.values())}".strip() for panel, each in noted.items())
        if any(content.pairs for content in contents):
            notes.append("A line below two columns marks a pair in this list.")
        notes.append(f"{title}: {'; '.join(parts)}.")
    return cells.curve(panels, notes)


def _axis(cells: FigureCells, role: str) -> tuple[Sequence[object], Sequence[str]]:
    """Return the entries of an axis in the column `role`, in order, and their texts."""
    name = cells.spec.roles[role]
    if name in cells.levels:
        return range(len(cells.levels[name])), short_level_names(cells.levels[name])
    at, _ = cells.index_positions(role)
    order, labels = sorted(at, key=at.__getitem__), cells.index_labels(name)
    return order, [labels.get(str(index), str(index)) for index in order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix(Content):
    """A heat map: a value and its text for every row and column; None with the reason for a missing value."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # by row, then column
    texts: tuple[tuple[str, ...], ...]
    ends: tuple[tuple[float, str], tuple[float, str]]  # range of the shades over all panels
    shows_title: ClassVar[bool] = True
    pairs: tuple[int, ...] = ()  # the columns that are marked together with the next one, counted from 0

    @property
    def is_readable(self) -> bool:
        """Return whether there are few enough cells to write a number into each."""
        return len(self.rows) <= MAX_LABELLED_ROWS and len(self.columns) <= MAX_LABELLED_COLUMNS

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        """Return the layout of heat maps, with room for names at the left and below, and for numbers."""
        first = contents[0]
        down, across = max(len(first.rows), 1), max(len(first.columns), 1)
        name_width, pitch = measure_names(first.rows)
        numbers = [text for content in contents for row in content.texts for text in row]
        widest = max((text_width(name, TICK) for name in first.columns), default=0.0)
        if first.is_readable:
            cell = max((text_width(text, TICK) for text in numbers), default=0.0) + 8
            cell = max(cell, min(widest + 6, 60.0))
            height = pitch * down
        else:
            cell = min(_MAX_SIDE / max(across, down), 10.0)
            height = cell * down
        width = cell * across
        shades = 20 + max(text_width(text, TICK) for _, text in first.ends)
        return PanelLayout(
            left=max(name_width, text_width(curve.y.title, TICK) + 4),
            right=2,
            end_margin=0 if first.is_readable else shades,
            bottom=(12 if widest <= cell else 0.8 * widest + 8) + 12,
            width=width,
            min_width=width,
            height=height,
            x=Scale(low=0, high=across),
            y=Scale(low=-0.5, high=down - 0.5),
        )

    def draw(self, plot: Plot, curve: Curve) -> None:
        """Draw the cells of a panel, the first row at the top.

        Cells of one shade are one path, which keeps files small. Numbers that would be wider than their cells
        get smaller type.
        """
        from matplotlib.patches import PathPatch  # noqa: PLC0415 -- slow to load, and data do without it
        from matplotlib.path import Path  # noqa: PLC0415 -- as above
        from matplotlib.transforms import Affine2D  # noqa: PLC0415 -- as above

        plot.frame(x=False, y=False)
        low, high = (value for value, _ in self.ends)
        count, cells = len(self.rows), dict[str, list[Path]]()
        widest = max((text_width(text, TICK) for row in self.texts for text in row), default=1.0)
        size = min(TICK, TICK * (plot.width / max(len(self.columns), 1) - 2) / widest)
        for number, (values, texts) in enumerate(zip(self.values, self.texts, strict=True)):
            y = count - 1 - number
            for x, (value, text) in enumerate(zip(values, texts, strict=True)):
                share = None if value is None else (value - low) / (high - low) if high > low else 0.5
                shade = "white" if share is None else f"{_LIGHT + share * (_DARK - _LIGHT):.2f}"
                corner = Affine2D().translate(x, y - 0.5)
                cells.setdefault(shade, []).append(Path.unit_rectangle().transformed(corner))
                place = (plot.x(x + 0.5), plot.y(y))
                names = f"{curve.y.title} {self.rows[number]}, {curve.x.title} {self.columns[x]}"
                plot.hover(
                    *place, f"{names}: {text}", width=plot.width / len(texts), height=plot.height / count
                )
                if self.is_readable:
                    color = DIM if share is None else INK if share < 0.5 else "white"
                    plot.axes.text(x + 0.5, y, text, size=size, color=color, ha="center", va="center")
        edge = {"edgecolor": "white", "linewidth": 1} if self.is_readable else {"linewidth": 0}
        for shade, places in sorted(cells.items()):
            plot.axes.add_patch(PathPatch(Path.make_compound_path(*places), facecolor=shade, **edge))
        _names(plot, self, curve)
        if plot.last and not self.is_readable:
            steps, height = 24, min(plot.height, 80.0)  # of the scale beside the map
            for step in range(steps):
                # the overlap hides gaps when drawn
                ends = [height * step / steps, height * (step + 1.02) / steps]
                look = {"color": str(_LIGHT + step / (steps - 1) * (_DARK - _LIGHT)), "linewidth": 6}
                plot.stroke([plot.width + 11] * 2, ends, solid_capstyle="butt", **look)
            for (_, text), y in zip(self.ends, (3.0, height - 3), strict=True):
                plot.write(plot.width + 16, y, text, size=TICK, color=DIM)


def _names(plot: Plot, content: Matrix, curve: Curve) -> None:
    """Write the axis titles of a heat map, and the names of its columns and rows, or every fifth of many."""
    cell = plot.width / max(len(content.columns), 1)
    flat = all(text_width(name, TICK) <= cell for name in content.columns)
    for x in content.pairs:
        plot.stroke([x * cell + 2, (x + 2) * cell - 2], [-2, -2], color=INK, linewidth=1.5)
    step = 1 if cell >= 9 else 5
    for x, name in list(enumerate(content.columns))[::step]:
        look = {"ha": "center"} if flat or step > 1 else {"rotation": _STEEP, "ha": "right"}
        plot.write((x + 0.5) * cell, -4, name, size=TICK, va="top", rotation_mode="anchor", **look)
    if plot.first:
        if step == 1:
            label_rows(plot, [(name, False) for name in content.rows])
        else:
            for y, name in list(enumerate(content.rows))[::step]:
                plot.write(-4, plot.y(len(content.rows) - 1 - y), name, size=TICK, ha="right")
        plot.write(-4, -plot.layout.bottom + 4, curve.y.title, size=TICK, color=DIM, ha="right")
    plot.write(plot.width, -plot.layout.bottom + 4, curve.x.title, size=TICK, color=DIM, ha="right")
