"""`scaling`: a figure and a table of a metric against a cost, with fitted power laws.

A cell counts once, at the geometric means of its seeds. The series' name and, below it, the exponent are next
to the end of each line of the figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Self

import polars as pl

from ...studies.catalog.metrics import METRICS, Metric, with_sign
from ...studies.planning.final_values import ValueStatus, combined_status, count_reasons
from ...studies.presentation.kinds import (
    Place,
    describe_levels,
    place_of,
)
from ...studies.presentation.law_keys import LawKeys, ScalingFigure, ScalingTable
from ...studies.resolve.costs import counted_cost, max_training_flops
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import SEED, level_key, level_name, named_levels, one_line, short_level_names
from ...studies.study import Study
from ...studies.text.units import number_range, plural
from ..claims.verdicts import format_p
from ..curves.curve import Axis, Content, Curve, Line, Panel, Point, subject_curve
from ..curves.draw.panel import PanelLayout, Plot, layout_points, spread_labels
from ..curves.draw.style import DIM, FAINT, LIGHT, TEXT, TICK, Stroke, crop_names, line_strokes, text_width
from ..picked_levels import pick_cells, pick_note
from ..statistics.estimates import Interval, holm_adjusted, mean
from ..subject import Observations, ResultSubject
from ..tables.table import (
    NOT_RUN,
    Cell,
    CellStatus,
    ColumnKey,
    Footnotes,
    Table,
    TableExtras,
    interval_cell,
    number_cell,
)

if TYPE_CHECKING:
    from ..statistics.power_law import PowerLaw


_STEPS = 24  # points of a law's line
_NAME, _LINE = 8.0, 20.0  # gap from the plot to a name, and between names
_LEAST_RANGE = 1.1  # budgets rounded to whole steps may give costs that differ by less
_NO_OFFSET = 1e-4  # smaller offsets, as a share of the lowest result, count as 0


def table(spec: ScalingTable, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
    """Return the table of power laws."""
    subject, notes = ResultSubject(study, spec.select, outcomes), Footnotes()
    metric, cost = (subject.metric(name) for name in (spec.value, spec.x))
    found = fit_laws(spec, subject)
    levels = subject.levels[spec.series] if spec.series else ()
    names = short_level_names([level_name(level) for level in levels]) if spec.series else ("all",)
    columns = ["exponent", *(["offset"] if spec.offset else []), "a", "cells"]
    for place in range(spec.held_out):
        which = "" if spec.held_out == 1 else f" {place + 1}"
        columns += [f"predicted{which}", f"measured{which}"]
    rows = [[*_row(spec, metric, each, notes)] for each in found.series.values()]
    by_cost = f"{metric.title} by {cost.title[:1].lower()}{cost.title[1:]}"
    subject_words = one_line(spec.caption or by_cost).removesuffix(".")
    fixed = subject.fixed((SEED, spec.series))
    if spec.baseline is not None:
        columns += ["difference", "p"]
        rows = [[*row, *more] for row, more in zip(rows, _differences(spec, found), strict=True)]
    return Table(
        name=spec.name,
        caption=f"{subject_words}{f', at {describe_levels(fixed)}' if fixed else ''}.",
        remarks=(
            *found.notes,
            *subject.difference([metric]),
            *_unfit_sentence(found),
            *subject.omitted(found.observations.gaps, found.observations.planned),
        ),
        notes=tuple(_method(spec, found)),
        corner=spec.series or "law",
        rows=tuple(map(one_line, names)),
        columns=tuple(columns),
        cells=tuple(map(tuple, rows)),
        footnotes=notes.as_tuple(),
        provenance=subject.provenance(),
        keys=tuple(ColumnKey(metric=metric.name, level=text) for text in columns),
        spread="ci",
    )


def curve(spec: ScalingFigure, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
    """Return the figure of power laws."""
    subject = ResultSubject(study, spec.select, outcomes)
    y, x = (subject.metric(name) for name in (spec.value, spec.x))
    found = fit_laws(spec, subject)
    names = named_levels(spec.series, subject.levels[spec.series]) if spec.series else ("",)
    series = tuple(_series(spec, found, names))
    fixed = subject.fixed((SEED, spec.series))
    titles = [one_line(each.axis_title or each.title) for each in (y, x)]
    return subject_curve(
        spec,
        subject,
        found.observations,
        caption=against(titles[0], titles[1]) + (f"; {describe_levels(fixed)}" if fixed else ""),
        fixed=fixed,
        metrics=[y, x],
        notes=(*_notes(series, names, found), *found.notes),
        x=Axis(title=titles[1], log=True),
        y=Axis(title=titles[0], log=True),
        panels=(Panel(title="", content=Scaling(series=series)),),
    )


def against(up: str, across: str) -> str:
    """Return a caption such as `Loss against parameters`."""
    return f"{up}{',' if ',' in up else ''} against {across[:1].lower()}{across[1:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCell:
    """A planned cell of a power law, with its cost, its result and the reasons why seeds have no result.

    Cost and result are geometric means over the seeds. The cost is NaN if it is unknown, as of a training
    without a result that may end early; `planned_cost` is its upper bound. `results` are the results of the
    single seeds in rising order. `status` says why there is none.
    """

    cost: float
    planned_cost: float
    results: tuple[float, ...]
    gaps: tuple[str, ...]
    status: CellStatus

    @property
    def result(self) -> float:
        """Return the geometric mean of the results. At least one seed must have one."""
        return math.exp(mean([math.log(value) for value in self.results]))

    @property
    def point(self) -> Point:
        """Return the cell as a point, with a whisker over its seeds."""
        if len(self.results) == 1:
            return Point(x=self.cost, y=self.result)
        low, high = self.results[0], self.results[-1]
        return Point(x=self.cost, y=self.result, low=low, high=high, n=len(self.results))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLaw:
    """The law of one series, the cells that it is fitted to, and the cells that it predicts.

    The cells are in order of rising cost. Only cells held out may lack a result. `remark` says why there is
    no law, or no interval; it is "" for a law with intervals.
    """

    fitted: Sequence[LawCell]
    held_out: Sequence[LawCell]
    law: PowerLaw | None
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Laws:
    """The laws of a figure or table, by the text (`level_key`) of the level of the series.

    `notes` tell of levels that a metric has picked, and of cells that cannot be held out, since their cost is
    unknown before they are trained. `unfit` counts the trials whose cost or result is not above 0, so that it
    has no logarithm.
    """

    series: Mapping[str, SeriesLaw]
    observations: Observations
    notes: tuple[str, ...]
    unfit: int


def fit_laws(spec: LawKeys, subject: ResultSubject) -> Laws:
    """Fit the laws of a figure or a table, at the best levels of the factors in `over`.

    Which cells are held out follows from all planned cells, whether they have a result or not.
    """
    observations, picked = subject.observe(spec.value), pick_cells(spec, subject)
    costs = {trial.id: value for trial, value in subject.observe(spec.x).values if value > 0}
    values = {trial.id: value for trial, value in observations.values if value > 0 and trial.id in costs}
    keys = map(level_key, subject.levels[spec.series]) if spec.series else ("",)
    cells, unplaced = {key: list[LawCell]() for key in keys}, 0
    planned: dict[Place, list[Trial]] = {}  # the trials of a cell, at all levels of the factors in `over`
    for trial in subject.trials:
        planned.setdefault(place_of(trial.levels, spec.over), []).append(trial)
    for rivals in planned.values():
        best = [trial for trial in rivals if not spec.over or place_of(trial.levels) in picked]
        results = [trial.id for trial in best if trial.id in values]
        shown = best or rivals
        settings = shown[0].settings
        known = [costs[trial] for trial in results or [trial.id for trial in shown] if trial in costs]
        planned_cost = max_training_flops(settings) if spec.x == "flops" else counted_cost(spec.x, settings)
        if planned_cost and not results:  # a training without a result may have ended early
            known = [cost] if (cost := counted_cost(spec.x, settings)) else []
        if not known and not planned_cost:
            unplaced += 1
            continue
        cost = math.exp(mean([math.log(each) for each in known])) if known else math.nan
        lacking = [trial.id for trial in shown if trial.id not in values]
        unfit = [f"without a positive {spec.value if trial in costs else spec.x}" for trial in lacking]
        whys = [
            observations.whys.get(trial, (ValueStatus.NO_VALUE, why))
            for trial, why in zip(lacking, unfit, strict=True)
        ]
        of = f"of {plural(len(shown), 'seed' if best else 'trial')}"
        cells[spec.series_of(shown[0].levels)].append(
            LawCell(
                cost=cost,
                planned_cost=planned_cost or cost,
                results=tuple(sorted(values[trial] for trial in results)),
                gaps=tuple(f"{n} {of} {why}" for why, n in count_reasons(why for _, why in whys).items()),
                status=CellStatus(combined_status([status for status, _ in whys])),
            )
        )
    notes = [f"Not held out, since {spec.x} is unknown before training: {plural(unplaced, 'cell')}."]
    notes = notes if unplaced and spec.held_out else []
    # the factors that tell the cells of a law apart, that of the series first
    varied = [name for name in subject.varied if name not in (spec.series, *spec.over)]
    varied = [spec.series, *varied] if spec.series in subject.varied else varied
    return Laws(
        series={key: _fit(spec, sorted(own, key=attrgetter("planned_cost"))) for key, own in cells.items()},
        observations=observations,
        notes=(*notes, *pick_note(spec, subject, picked, varied)),
        unfit=sum(trial.id not in values for trial, _ in observations.values),
    )


def _fit(spec: LawKeys, cells: Sequence[LawCell]) -> SeriesLaw:
    """Fit a power law to the cells of a series that are not held out and have a result."""
    from ..statistics.power_law import (  # noqa: PLC0415 -- loads NumPy
        MIN_OFFSET_CELLS,
        error_of_means,
        fit_power_law,
    )

    count = max(0, len(cells) - spec.held_out)
    fitted = sorted((cell for cell in cells[:count] if cell.results), key=attrgetter("cost"))
    costs = sorted({cell.cost for cell in fitted})
    law, remark = None, ""
    if len(costs) < 2:
        remark = f"no law: it needs two cells with different {spec.x}, and this one has {len(costs)}"
    elif spec.x not in METRICS and costs[-1] < _LEAST_RANGE * costs[0]:
        percent = f"{100 * (_LEAST_RANGE - 1):.0f} %"
        remark = (
            f"no law: the {spec.x} of its cells differ by less than {percent}, too little for an exponent"
        )
    else:
        points = [(cell.cost, cell.result) for cell in fitted]
        least = error_of_means([cell.results for cell in fitted])
        law = fit_power_law(points, least, offset=spec.offset and len(costs) >= MIN_OFFSET_CELLS)
        if law is None:
            remark = f"no law: one with an offset must fall, but {spec.value} does not fall with {spec.x}"
        elif law.error is None:
            remark = "no interval: the law goes through all its cells"
        elif law.offset is not None and law.offset < _NO_OFFSET * min(cell.result for cell in fitted):
            remark = "the offset is at its bound, 0: these cells do not determine it"
    return SeriesLaw(fitted=fitted, held_out=cells[count:], law=law, remark=remark)


def _row(spec: ScalingTable, metric: Metric, found: SeriesLaw, notes: Footnotes) -> Iterator[Cell]:
    law, marks = found.law, (notes.mark(found.remark),) if found.remark else ()

    if law is None:
        yield from (replace(_EMPTY, marks=marks), *[_EMPTY] * (1 + spec.offset))
    else:
        yield interval_cell(
            Interval(law.exponent, *(law.exponent_interval or ())), _exponent, law.n, marks=marks
        )
        if law.offset is not None:
            found_offset = Interval(law.offset, *(law.offset_interval or ()))
            yield interval_cell(found_offset, metric.format, law.n)
        elif spec.offset:
            yield _EMPTY
        yield number_cell(law.coefficient, f"{law.coefficient:.4g}".replace("inf", "∞"), law.n)
    yield number_cell(float(len(found.fitted)), str(len(found.fitted)))
    for cell in found.held_out:
        if law and not math.isnan(cell.cost):
            yield interval_cell(law.next_cell(cell.cost), metric.format, law.n)
        else:
            yield _EMPTY
        count = len(cell.results)
        lacking = replace(_EMPTY, status=cell.status)
        measured = number_cell(cell.result, metric.format(cell.result), count) if count else lacking
        yield replace(measured, marks=tuple(map(notes.mark, cell.gaps)))
    yield from [_EMPTY] * 2 * (spec.held_out - len(found.held_out))


def _differences(spec: ScalingTable, found: Laws) -> Iterator[tuple[Cell, Cell]]:
    """Yield for each series the difference of its exponent from the baseline's, and its p."""
    from ..statistics.power_law import exponent_difference  # noqa: PLC0415 -- loads NumPy

    base = found.series[level_key(spec.baseline)].law
    laws = [each.law for each in found.series.values()]
    compared = [exponent_difference(law, base) if law and base and law is not base else None for law in laws]
    adjusted = iter(holm_adjusted([each[1] for each in compared if each]))
    for law, each in zip(laws, compared, strict=True):
        if law is None or each is None:
            yield _EMPTY, _EMPTY
        else:
            p = next(adjusted)
            text = format_p(p).removeprefix("p ").removeprefix("= ")
            difference = interval_cell(each[0], lambda value: with_sign(_exponent(value)), law.n)
            yield difference, replace(number_cell(p, text, law.n), p=p)


def _exponent(value: float) -> str:
    return f"{value:.3f}".replace("-", "−").replace("inf", "∞")


def _exponent_text(law: PowerLaw) -> str:
    """Return the exponent of a power law as text: `exponent −0.076 ± 0.004`."""
    spread = "" if law.half_width is None else f" ± {_exponent(law.half_width)}"
    if law.exponent_interval and not spread:
        spread = f" [{', '.join(map(_exponent, law.exponent_interval))}]"
    return f"exponent {_exponent(law.exponent)}{spread}"


_EMPTY = Cell(status=CellStatus.NO_VALUE, text=NOT_RUN)


def _method(spec: ScalingTable, found: Laws) -> Iterator[str]:
    """Yield sentences on the fitted law, its intervals and its tests."""
    law = "y = offset + a xᵇ" if spec.offset else "y = a xᵇ"
    yield f"Law: {law}, by least squares on the logarithms of the cells' geometric means; a cell counts once."
    tested = [each.law for each in found.series.values() if each.law and each.law.error is not None]
    if has_intervals := bool(tested):
        yield f"In brackets: 95 % intervals (t, degrees of freedom: cells − {_fitted_numbers(tested)})."
        yield "Their variance is that of cells around the law, or of their means over seeds if it is larger."
    if spec.offset:
        from ..statistics.power_law import MIN_OFFSET_CELLS  # noqa: PLC0415 -- loads NumPy

        yield f"With fewer than {MIN_OFFSET_CELLS} cells, the law has no offset."
    if spec.held_out:
        last = "cell" if spec.held_out == 1 else f"{spec.held_out} cells"
        within = ", with a prediction interval" if has_intervals else ""
        yield f"Predicted: the {last} of the highest cost, excluded from the fit{within}."
    if spec.baseline is not None:
        how = "p: Welch's t test, with the variances of both laws; Holm over the rows"
        yield f"Difference: of the exponent from that of {level_name(spec.baseline)}; {how}."


def _fitted_numbers(laws: Sequence[PowerLaw]) -> str:
    """Return how many numbers the laws fit, as text: 2, and 3 with an offset."""
    numbers = {2 + (law.offset is not None) for law in laws}
    return "3, or − 2 without an offset" if len(numbers) > 1 else str(*numbers)


def _unfit_sentence(found: Laws) -> Iterator[str]:
    """Yield a sentence on the trials that no law can use, if there are any."""
    if found.unfit:
        trials = plural(found.unfit, "trial")
        yield f"Without a logarithm: {trials} with a number of 0 or less, or without a cost."


def _series(spec: ScalingFigure, found: Laws, names: Sequence[str]) -> Iterator[ScalingSeries]:
    for number, (name, (key, each)) in enumerate(zip(names, found.series.items(), strict=True)):
        fitted, held_out = (
            tuple(cell.point for cell in cells if cell.results) for cells in (each.fitted, each.held_out)
        )
        if fitted or held_out:
            line, predicted = _lines(each.law, each) if each.law else ((), ())
            yield ScalingSeries(
                name=name,
                number=number,
                points=fitted if each.law else (*fitted, *held_out),
                held_out=held_out if each.law else (),
                line=line,
                predicted=predicted,
                exponent=_exponent_text(each.law) if each.law else "",
                accent=spec.accent is not None and key == level_key(spec.accent),
            )


def _lines(law: PowerLaw, found: SeriesLaw) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    """Return a law's line over the fitted cells, and its prediction beyond them, up to the last cell."""
    costs = [cell.cost for cell in (*found.fitted, *found.held_out) if not math.isnan(cell.cost)]
    last, end = found.fitted[-1].cost, max(costs)

    def line(find: Callable[[float], Interval], first: float, last: float) -> Iterator[Point]:
        for step in range(_STEPS + 1):
            x = first * (last / first) ** (step / _STEPS)
            y, low, high = find(x)
            yield Point(x=x, y=y, low=low, high=high, n=law.n)

    return tuple(line(law.at, costs[0], last)), tuple(line(law.next_cell, last, end)) if end > last else ()


def _notes(series: Sequence[ScalingSeries], names: Sequence[str], found: Laws) -> Iterator[str]:
    if not series:
        yield "Nothing to draw: no trial has two positive numbers."
        return
    counts = sorted({point.n for each in series for point in (*each.points, *each.held_out)})
    if counts[-1] == 1:
        yield "Point: one seed."
    else:
        yield f"Point: geometric mean of {number_range(counts)} seeds; whisker: lowest to highest."
    if any(each.line for each in series):
        has_offset = any(each.law and each.law.offset is not None for each in found.series.values())
        tested = [each.law for each in found.series.values() if each.law and each.law.exponent_interval]
        what, own = (
            ("a power law", "± half of its") if not has_offset else ("a power law with an offset", "with its")
        )
        yield f"Line: {what}, by least squares on the points' logarithms" + (
            f"; band: 95 % interval of the line; beside it: its exponent {own} 95 % interval"
            f" (t, degrees of freedom: points − {_fitted_numbers(tested)})."
            if tested
            else "; next to it: its exponent, without an interval for so few points."
        )
    if predicted := [point for each in series for point in each.predicted]:
        yield "Filled point: excluded from the fit; thin line: the law's prediction" + (
            "; pale band: its 95 % interval." if any(point.low is not None for point in predicted) else "."
        )
    for name, each in zip(names, found.series.values(), strict=True):
        whys = [each.remark] if each.remark and (each.law is None or each.law.offset is not None) else []
        whys += (f"no filled point: {why}" for cell in each.held_out if not cell.results for why in cell.gaps)
        yield from (f"{name}: {why}." if name else f"{why[:1].upper()}{why[1:]}." for why in whys)
    yield from _unfit_sentence(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSeries(Line):
    """One series of the figure: its cells in order of rising cost, and their law, if there is one.

    The law was fitted to `points`, not to the cells `held_out`. `predicted` continues its `line` to them,
    with the intervals of further cells. `exponent` is the text of its exponent.
    """

    held_out: tuple[Point, ...] = ()
    line: tuple[Point, ...] = ()
    predicted: tuple[Point, ...] = ()
    exponent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling(Content):
    """The content of a figure of power laws: the cells and the law of each series."""

    series: tuple[ScalingSeries, ...]

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        every = [series for content in contents for series in content.series]
        points = [
            point
            for series in every
            for point in (*series.points, *series.held_out, *series.line, *series.predicted)
        ]
        names = crop_names(series.name for series in every)
        widths = [text_width(name, TEXT, bold=True) for name in names.values()]
        widths += [text_width(series.exponent, TICK) for series in every]
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
        named = [series for series in self.series if series.name or series.line]
        ends = [(*series.points, *series.line, *series.predicted)[-1] for series in named]
        places = spread_labels([plot.y(end.y) for end in ends], _LINE, 4, plot.height - 4)
        names = crop_names(series.name for series in self.series)
        x = plot.width + _NAME
        for series, end, place in zip(named, ends, places, strict=True):
            name, color = names[series.name], strokes[series.name][0]
            plot.stroke([plot.x(end.x) + 3, x - 2], [plot.y(end.y), place], color=FAINT, linewidth=0.5)
            if name:
                color, weight = DIM if color == LIGHT else color, "bold" if series.accent else "normal"
                plot.write(x, place + 4.5 * bool(series.exponent), name, color=color, weight=weight)
            plot.write(x, place - 4.5 * bool(name), series.exponent, size=TICK, color=DIM)
        plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def _draw_series(plot: Plot, series: ScalingSeries, stroke: Stroke) -> None:
    color, dashes, width = stroke
    for line, alpha, part in ((series.line, 0.15, 1.0), (series.predicted, 0.07, 0.5)):
        plot.band(line, color, alpha=alpha)
        if line:
            plot.trace(line, color=color, linestyle=dashes, linewidth=part * width)
    for points, filling in ((series.points, "white"), (series.held_out, color)):
        for point in points:
            plot.whisker(point, color=color, linewidth=0.8)
            plot.mark(point, size=3.5, face=filling, edge=color, markeredgewidth=0.9)
