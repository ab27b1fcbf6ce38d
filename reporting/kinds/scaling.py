"""`scaling`: a figure and a table of a metric against a cost, with fitted power laws.

A cell counts once, at the geometric means of its seeds. The series' name and, below it, the exponent are next
to the end of each line of the figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import polars as pl
from pydantic import Field

from ...errors import nearest_hint
from ...studies.catalog.metrics import METRICS_AND_COSTS, Metric, metric_family
from ...studies.presentation.kinds import (
    CurveKind,
    KeyFault,
    TableExtras,
    TableKind,
    describe_levels,
    factor_faults,
    metric_faults,
    select_faults,
)
from ...studies.schema.design import Design
from ...studies.schema.factors import SEED, level_key, level_name, named_levels, one_line, short_level_names
from ...studies.schema.settings import Names
from ...studies.study import Study
from ...studies.text.units import number_range
from ..curves.curve import Axis, Content, Curve, Line, Panel, Point, subject_curve
from ..curves.draw.panel import PanelLayout, Plot, layout_points, spread_labels
from ..curves.draw.style import DIM, FAINT, LIGHT, TEXT, TICK, Stroke, crop_names, line_strokes, text_width
from ..picked_levels import PickKeys, Place, pick_cells, pick_note, place_of
from ..statistics.estimates import Interval, mean
from ..subject import Observation, Observations, ResultSubject
from ..tables.table import NOT_RUN, Cell, CellStatus, ColumnKey, Table, interval_cell, number_cell

if TYPE_CHECKING:
    from ..statistics.power_law import PowerLaw


_STEPS = 24  # points of a law's line
_NAME, _LINE = 8.0, 20.0  # gap from the plot to a name, and between names


class LawKeys(PickKeys):
    """Base class for figures and tables of power laws, with the study-file keys that they share."""

    kind: Literal["scaling"]
    x: str
    """a cost such as `parameters` or `flops`, or another metric"""
    series: str | None = None
    """the factor with one law for each level, at most 6"""
    offset: bool = False
    """whether the law has an offset that is its limit, y = e + a xᵇ; it needs at least four cells"""
    held_out: int = Field(default=0, ge=0, le=20)
    """how many of the most expensive cells of each series are predicted instead of fitted"""

    @property
    def metric(self) -> str:
        """Return the metric that the power law predicts from the cost."""
        return next(name for _, name in super().named_metrics())

    def named_metrics(self) -> Iterator[KeyFault]:
        yield from super().named_metrics()
        yield ("x",), self.x

    def law_faults(self, design: Design) -> list[KeyFault]:
        """Return the faults of the keys, such as unknown metrics and factors, or too many series."""
        factors = design.known_levels
        faults = [*select_faults(self.select, factors), *metric_faults([self.metric])]
        if metric_family(self.x) not in METRICS_AND_COSTS:
            hint = nearest_hint(self.x, METRICS_AND_COSTS)
            faults.append((("x",), f"expected a cost or a metric, got '{self.x}'{hint}"))
        elif self.x == self.metric:
            faults.append((("x",), f"expected a metric or a cost other than value, got '{self.x}'"))
        faults += factor_faults([(("series",), self.series)] if self.series else [], factors)
        faults += self.over_faults(factors)
        for number, name in enumerate(self.over):
            if name in design.ladder:
                faults.append((("over", number), f"expected a factor other than sizes, got '{name}'"))
        if self.series == SEED:
            faults.append((("series",), "expected a factor other than seeds, got 'seed'"))
        return faults or [*(self.series_faults(self.series, factors) if self.series else ())]


class ScalingTable(LawKeys, TableKind):
    """`[[table]] kind = "scaling"`: the power law of each series, with predictions for held-out cells."""

    value: Names
    """the metric"""

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        if len(self.value) != 1:
            return [(("value",), f"expected one metric, got {len(self.value)}")]
        return self.law_faults(design)

    def table(self, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
        subject = ResultSubject(study, self.select, outcomes)
        metric, cost = (subject.metric(name) for name in (self.metric, self.x))
        found = law_cells(self, subject)
        levels = subject.levels[self.series] if self.series else ()
        names = short_level_names([level_name(level) for level in levels]) if self.series else ("all",)
        columns = ["exponent", *(["offset"] if self.offset else []), "cells"]
        for place in range(self.held_out):
            which = "" if self.held_out == 1 else f" {place + 1}"
            columns += [f"foretold{which}", f"measured{which}"]
        return Table(
            name=self.name,
            caption=(
                *_sentences(self, metric, cost),
                *found.pick_notes,
                *subject.fixed_note(subject.fixed((SEED, self.series))),
                *subject.difference([metric]),
                *subject.omitted(found.observations.gaps, found.observations.planned),
            ),
            corner=self.series or "law",
            rows=tuple(map(one_line, names)),
            columns=tuple(columns),
            cells=tuple(tuple(_row(self, metric, cells)) for cells in found.cells.values()),
            footnotes=(),
            provenance=subject.provenance(found.observations.trials),
            keys=tuple(ColumnKey(metric=metric.name, level=text) for text in columns),
            spread="ci",
        )


class ScalingFigure(LawKeys, CurveKind):
    """`[[curve]] kind = "scaling"`: the result of every cell against its cost, with power laws."""

    value: str
    """the metric"""
    accent: Any = None
    """the only level of `series` in colour"""

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        return self.law_faults(design) or list(self.level_faults(design.known_levels))

    def curve(self, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
        subject = ResultSubject(study, self.select, outcomes)
        y, x = (subject.metric(name) for name in (self.value, self.x))
        found = law_cells(self, subject)
        series = tuple(_series(self, subject, found.cells))
        fixed = subject.fixed((SEED, self.series))
        titles = [one_line(each.axis_title or each.title) for each in (y, x)]
        return subject_curve(
            self,
            subject,
            found.observations,
            caption=against(titles[0], titles[1]) + (f"; {describe_levels(fixed)}" if fixed else ""),
            fixed=fixed,
            metrics=[y, x],
            notes=(*_notes(series, found.unfit), *found.pick_notes),
            x=Axis(title=titles[1], log=True),
            y=Axis(title=titles[0], log=True),
            panels=(Panel(title="", content=Scaling(series=series)),),
        )


def against(up: str, across: str) -> str:
    """Return a caption such as `Loss against parameters`."""
    return f"{up}{',' if ',' in up else ''} against {across[:1].lower()}{across[1:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCell:
    """A cell of a power law, with its cost and its result.

    Both are geometric means over the seeds. `results` are the results of the single seeds in rising order.
    """

    cost: float
    result: float
    results: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCells:
    """The cells of a figure or table of power laws, for each series in order of rising cost.

    `pick_notes` tell of levels that a metric has picked. `unfit` counts the trials whose cost or result is
    not above 0, so that it has no logarithm.
    """

    cells: Mapping[str, Sequence[LawCell]]  # by the text (`level_key`) of the level of the series
    observations: Observations
    pick_notes: tuple[str, ...]
    unfit: int


def law_cells(spec: LawKeys, subject: ResultSubject) -> LawCells:
    """Return the cells of a figure or a table of power laws, at the best levels of the factors in `over`."""
    observations, picked = subject.observe(spec.metric), pick_cells(spec, subject)
    costs = {each.trial: each.value for each in subject.observe(spec.x).values}
    fit = [each for each in observations.values if each.value > 0 and costs.get(each.trial, 0.0) > 0]
    by_place: dict[Place, list[Observation]] = {}
    for each in fit:
        by_place.setdefault(place_of(each.levels), []).append(each)
    series = map(level_key, subject.levels[spec.series]) if spec.series else ("",)
    cells: dict[str, list[LawCell]] = {key: [] for key in series}
    for place, members in by_place.items():
        if place in picked or not spec.over:
            results = tuple(sorted(each.value for each in members))
            cell = LawCell(
                cost=math.exp(mean([math.log(costs[each.trial]) for each in members])),
                result=math.exp(mean([math.log(value) for value in results])),
                results=results,
            )
            cells[level_key(members[0].levels[spec.series]) if spec.series else ""].append(cell)
    # the factors that tell the cells of a law apart, that of the series first
    varied = [name for name in subject.varied if name not in (spec.series, *spec.over)]
    varied = [spec.series, *varied] if spec.series in subject.varied else varied
    return LawCells(
        cells={key: sorted(own, key=lambda cell: cell.cost) for key, own in cells.items()},
        observations=observations,
        pick_notes=tuple(pick_note(spec, subject, picked, varied)),
        unfit=len(observations.values) - len(fit),
    )


def fit_law(spec: LawKeys, cells: Sequence[LawCell]) -> tuple[PowerLaw | None, int]:
    """Fit a power law to the cells of a series that are not held out. Also return their number."""
    from ..statistics.power_law import (  # noqa: PLC0415 -- loads NumPy
        MIN_OFFSET_CELLS,
        error_of_means,
        fit_power_law,
    )

    fitted = cells[: max(0, len(cells) - spec.held_out)]
    least = error_of_means([cell.results for cell in fitted])
    has_offset = spec.offset and len(fitted) >= MIN_OFFSET_CELLS
    return fit_power_law([(cell.cost, cell.result) for cell in fitted], least, offset=has_offset), len(fitted)


def _row(spec: ScalingTable, metric: Metric, cells: Sequence[LawCell]) -> Iterator[Cell]:
    law, fitted = fit_law(spec, cells)

    def law_cell(found: Interval | None, form: Callable[[float], str]) -> Cell:
        return _EMPTY if law is None or found is None else interval_cell(found, form, law.n)

    exponent = None if law is None else Interval(law.exponent, *(law.exponent_interval or ()))
    yield law_cell(exponent, lambda value: f"{value:.3f}".replace("-", "−"))
    if spec.offset:
        offset = None
        if law is not None and law.offset is not None:
            offset = Interval(law.offset, *(law.offset_interval or ()))
        yield law_cell(offset, metric.format)
    yield number_cell(float(fitted), str(fitted))
    held = cells[fitted:]
    for cell in held:
        yield law_cell(law.next_cell(cell.cost) if law else None, metric.format)
        yield number_cell(cell.result, metric.format(cell.result), len(cell.results))
    yield from [_EMPTY] * 2 * (spec.held_out - len(held))


_EMPTY = Cell(status=CellStatus.NO_VALUE, text=NOT_RUN)


def _sentences(spec: ScalingTable, metric: Metric, cost: Metric) -> Iterator[str]:
    subject = one_line(spec.caption or f"{metric.title} by {cost.title[:1].lower()}{cost.title[1:]}")
    yield f"{subject.removesuffix('.')}."
    law = "y = offset + a xᵇ" if spec.offset else "y = a xᵇ"
    yield f"Law: {law}, by least squares on the logarithms of the cells' geometric means; a cell counts once."
    yield f"In brackets: 95 % intervals (t, degrees of freedom: cells − {3 if spec.offset else 2})."
    if spec.offset:
        from ..statistics.power_law import MIN_OFFSET_CELLS  # noqa: PLC0415 -- loads NumPy

        yield f"With fewer than {MIN_OFFSET_CELLS} cells, the law has no offset."
    yield "Their variance is the cells' around the law, or that of their means over seeds if it is larger."
    if spec.held_out:
        last = "cell" if spec.held_out == 1 else f"{spec.held_out} cells"
        yield f"Predicted: the {last} of the highest cost, excluded from the fit, with a prediction interval."


def _series(
    spec: ScalingFigure, subject: ResultSubject, found: Mapping[str, Sequence[LawCell]]
) -> Iterator[ScalingSeries]:
    names = named_levels(spec.series, subject.levels[spec.series]) if spec.series else ("",)
    accent = None if spec.accent is None else level_key(spec.accent)
    for number, (name, (key, cells)) in enumerate(zip(names, found.items(), strict=True)):
        points = [
            Point(x=cell.cost, y=cell.result, low=cell.results[0], high=cell.results[-1], n=len(cell.results))
            if len(cell.results) > 1
            else Point(x=cell.cost, y=cell.result)
            for cell in cells
        ]
        if points:
            law, fitted = fit_law(spec, cells)
            yield ScalingSeries(
                name=name,
                number=number,
                points=tuple(points[:fitted] if law else points),
                law=_law(law, [point.x for point in points], fitted) if law else None,
                held_out=tuple(points[fitted:] if law else ()),
                accent=key == accent,
            )


def _law(law: PowerLaw, costs: Sequence[float], fitted: int) -> Law:
    """Return a fitted power law with the two lines that the figure draws.

    One line is over the fitted cells, the other is the prediction beyond them. `costs` are those of all cells
    in rising order; the first `fitted` of them were fitted.
    """
    last = costs[fitted - 1]

    def line(find: Callable[[float], Interval], first: float, last: float) -> Iterator[Point]:
        for step in range(_STEPS + 1):
            x = first * (last / first) ** (step / _STEPS)
            y, low, high = find(x)
            yield Point(x=x, y=y, low=low, high=high, n=law.n)

    return Law(
        coefficient=law.coefficient,
        exponent=law.exponent,
        half_width=law.half_width,
        line=tuple(line(law.at, costs[0], last)),
        predicted=tuple(line(law.next_cell, last, costs[-1])) if costs[-1] > last else (),
        offset=law.offset or 0.0,
    )


def _notes(series: Sequence[ScalingSeries], unfit: int) -> Iterator[str]:
    if not series:
        yield "Nothing to draw: no trial has two positive numbers."
        return
    counts = sorted({point.n for each in series for point in (*each.points, *each.held_out)})
    if counts[-1] == 1:
        yield "Point: one seed."
    else:
        yield f"Point: geometric mean of {number_range(counts)} seeds; whisker: lowest to highest."
    laws = [each.law for each in series if each.law]
    if laws:
        numbers = 3 if any(law.offset for law in laws) else 2
        what = "a power law with an offset" if numbers > 2 else "a power law"
        yield f"Line: {what}, by least squares on the points' logarithms" + (
            "; band: 95 % interval of the line; beside it: its exponent ± half of its 95 % interval"
            f" (t, degrees of freedom: points − {numbers})."
            if any(law.half_width is not None for law in laws)
            else "; next to it: its exponent, without an interval for so few points."
        )
    if any(each.held_out for each in series):
        intervals = [point.low for law in laws for point in law.predicted if point.low is not None]
        yield "Filled point: excluded from the fit; thin line: the law's prediction" + (
            "; pale band: its 95 % interval." if intervals else "."
        )
    if unfit:
        yield f"Without a logarithm: {unfit} trials with a number of 0 or less, or without a cost."


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A fitted law, y = offset + coefficient · x ** exponent, with its line.

    The exponent's interval is ± `half_width`. `predicted` continues the line to the held-out cells, with the
    intervals of further cells.
    """

    coefficient: float
    exponent: float
    half_width: float | None
    line: tuple[Point, ...]
    predicted: tuple[Point, ...] = ()
    offset: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSeries(Line):
    """One series of the figure: its cells in order of rising cost, and their law.

    The law was fitted to `points`, not to the cells `held_out`. It is None if no law can be fitted.
    """

    law: Law | None
    held_out: tuple[Point, ...] = ()

    @property
    def law_points(self) -> tuple[Point, ...]:
        """Return the points of the law's fitted line and of its predicted line, if there is a law."""
        return (*self.law.line, *self.law.predicted) if self.law else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling(Content):
    """The content of a figure of power laws: the cells and the law of each series."""

    series: tuple[ScalingSeries, ...]

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        every = [series for content in contents for series in content.series]
        points = [
            point for series in every for point in (*series.points, *series.held_out, *series.law_points)
        ]
        names = crop_names(series.name for series in every)
        widths = [text_width(name, TEXT, bold=True) for name in names.values()]
        widths += [text_width(exponent_text(series.law), TICK) for series in every if series.law]
        return layout_points(
            curve,
            points,
            margins=(0.04, 0.06),
            right=_NAME + max(widths, default=0.0),
            width=300,
            min_width=120,
            height=200,
        )

    def draw(self, plot: Plot, curve: Curve) -> None:
        plot.frame(x=True, y=True)
        strokes = line_strokes(self.series)
        # the accented series is drawn last, so that it lies above the others
        for series in sorted(self.series, key=lambda series: series.accent):
            _draw_series(plot, series, strokes[series.name])
            plot.hover_points((*series.points, *series.held_out), curve, series.name)
        named = [series for series in self.series if series.name or series.law]
        ends = [(series.law_points or series.points)[-1] for series in named]
        places = spread_labels([plot.y(end.y) for end in ends], _LINE, 4, plot.height - 4)
        names = crop_names(series.name for series in self.series)
        x = plot.width + _NAME
        for series, end, place in zip(named, ends, places, strict=True):
            name, color = names[series.name], strokes[series.name][0]
            plot.stroke([plot.x(end.x) + 3, x - 2], [plot.y(end.y), place], color=FAINT, linewidth=0.5)
            if name:
                color, weight = DIM if color == LIGHT else color, "bold" if series.accent else "normal"
                plot.write(x, place + 4.5 * bool(series.law), name, color=color, weight=weight)
            if series.law:
                plot.write(x, place - 4.5 * bool(name), exponent_text(series.law), size=TICK, color=DIM)
        plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def exponent_text(law: Law) -> str:
    """Return the exponent of a power law as text: `exponent −0.076 ± 0.004`."""
    half = "" if law.half_width is None else f" ± {law.half_width:.3f}"
    return f"exponent {law.exponent:.3f}{half}".replace("-", "−")


def _draw_series(plot: Plot, series: ScalingSeries, stroke: Stroke) -> None:
    color, dashes, width = stroke
    if series.law:
        for line, alpha, part in ((series.law.line, 0.15, 1.0), (series.law.predicted, 0.07, 0.5)):
            plot.band(line, color, alpha=alpha)
            if line:
                plot.trace(line, color=color, linestyle=dashes, linewidth=part * width)
    for points, filling in ((series.points, "white"), (series.held_out, color)):
        for point in points:
            plot.whisker(point, color=color, linewidth=0.8)
            plot.mark(point, size=3.5, face=filling, edge=color, markeredgewidth=0.9)


TABLE, CURVE = ScalingTable, ScalingFigure
