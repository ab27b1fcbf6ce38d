"""`points`: the points of a search.

The table has the best points, with their metrics, values and numbers of seeds. The figure has all points: in
the order of training, with the best value so far and the baseline, or over a metric, with the Pareto front.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Self

import polars as pl

from ...studies.catalog.metrics import Metric, find_metric
from ...studies.planning.final_values import ValueStatus
from ...studies.presentation.metric_words import difference_sentence, in_sentence, with_true_title
from ...studies.presentation.point_keys import PointsFigure, PointsTable
from ...studies.schema.factors import filled_levels, level_name, one_line, value_name
from ...studies.schema.settings import Level
from ...studies.searches.points import FoundPoint, SearchPoints, comparison_note, find_points
from ...studies.searches.words import over_limit_sentence
from ...studies.study import Study
from ...studies.text.units import plural
from ..curves.curve import Axis, Content, Curve, Line, Panel, Point
from ..curves.draw.panel import PanelLayout, Plot, layout_points
from ..curves.draw.style import ACCENT, DIM, FAINT, LIGHT, TEXT, TICK, text_width
from ..outcomes import omitted_trials, provenance
from ..search.noise import lead_by_chance, measure_noise, noise_sentences
from ..search.promotion import RECIPE, find_baseline, outer_names
from ..statistics.estimates import estimate
from ..tables.cells import metric_head, spread_texts
from ..tables.differences import SPREADS, caption_start, note_unlearnt
from ..tables.table import NOT_RUN, Cell, CellStatus, ColumnKey, Table, TableExtras, number_cell
from .pareto import Cloud, pareto_front
from .scaling import against

SEEDS = "n"
"""The heading of the column with the number of seeds."""

PARAMETERS = "parameters"

_SECONDS_PER_HOUR = 3600.0
_NAME = 8.0  # from the plot to a name


def table(spec: PointsTable, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
    """Return the table of a search's best points."""
    found = find_points(study, outcomes, (*spec.value, PARAMETERS))
    own = (each.name for each in (*found.goals, *found.bounds))
    names = spec.value or tuple(dict.fromkeys([*own, PARAMETERS]))
    settings = [trial.settings for trial in found.trained]
    sought = {goal.name: goal.sign > 0 for goal in found.goals}  # the direction that the search optimises
    known = {name: find_metric(name) for name in names}
    named = [
        with_true_title(replace(each, higher_is_better=sought.get(name, each.higher_is_better)), settings)
        for name, each in known.items()
    ]
    metrics, shown = [metric for metric, _ in named], found.ranked()[: spec.points]
    described = _described(study, spec, shown)
    best: dict[str, str] = {}  # the text of the best mean of each metric
    for metric in metrics:
        means = [value for point in shown if (value := point.mean(metric.name)) is not None]
        better = max if metric.higher_is_better else min
        is_ranked = bool(means) and metric.higher_is_better is not None
        best[metric.name] = metric.format(better(means)) if is_ranked else ""
    columns = (*(metric.name for metric in metrics), SEEDS, *described)
    table = Table(
        name=spec.name,
        caption=_caption(spec, found, metrics),
        remarks=tuple(_remarks(study, found, metrics)),
        corner="rank",
        rows=tuple(str(number) for number in range(1, len(shown) + 1)),
        columns=(*(metric_head(*each) for each in named), SEEDS, *map(one_line, described)),
        cells=tuple(
            (
                *(_measured(point, metric, spec, best[metric.name]) for metric in metrics),
                number_cell(point.seeds, str(point.seeds)),
                *(_value(values[number]) for values in described.values()),
            )
            for number, point in enumerate(shown)
        ),
        footnotes=(),
        provenance=provenance([trial.id for trial in found.trained], outcomes),
        keys=tuple(ColumnKey(metric=name, level="") for name in columns),
        spread=spec.spread,
    )
    every = range(len(shown))
    columns_of_task = (
        (metric.name, settings[0], [(row, number) for row in every]) for number, metric in enumerate(metrics)
    )
    return note_unlearnt(table, columns_of_task) if shown else table


def _described(study: Study, spec: PointsTable, shown: Sequence[FoundPoint]) -> dict[str, list[Level | None]]:
    taken = [name for name in study.dimensions if any(name in point.values for point in shown)]
    recipes: dict[str, list[Level | None]] = {}
    if spec.show == "recipe":
        assert study.search is not None
        taken = [name for name in taken if name in outer_names(study)]
        recipes[RECIPE] = [study.search.trial_of(point.values).settings.model.recipe for point in shown]
    values = [filled_levels(point.values) for point in shown]
    return recipes | {name: [each.get(name) for each in values] for name in taken}


def _measured(point: FoundPoint, metric: Metric, spec: PointsTable, best: str) -> Cell:
    values = point.measured.get(metric.name, {})
    if point.mean(metric.name) is None:
        return Cell(status=CellStatus.PARTIAL if values else CellStatus.NO_VALUE, text=NOT_RUN)
    found = estimate(values.values(), spread=spec.spread).within(metric.bounds)
    spread, interval = spread_texts(found, metric, spec.spread)
    text = metric.format(found.value)
    is_best = text == best and found.n > 1  # one seed does not rank
    return Cell(
        status=CellStatus.DONE,
        estimate=found,
        text=text,
        spread=spread,
        interval=interval,
        best=is_best,
    )


def _value(value: Level | None) -> Cell:
    if value is None:
        return Cell(status=CellStatus.UNPLANNED, text=NOT_RUN)
    if isinstance(value, bool | str):
        return Cell(status=CellStatus.DONE, text=value_name(value), picked=level_name(value))
    return number_cell(value, value_name(value))


def _caption(spec: PointsTable, found: SearchPoints, metrics: Sequence[Metric]) -> str:
    subject, complete = caption_start(spec.caption, metrics), found.complete
    if not complete:
        return f"{subject}: no complete point yet."
    counts = sorted({point.seeds for point in complete})
    over = "one seed" if counts[-1] == 1 else f"mean {SPREADS[spec.spread]} of n seeds"
    goals = [f"the {'highest' if goal.sign > 0 else 'lowest'} {goal.name}" for goal in found.goals]
    which = (
        f"those with {goals[0]}" if len(goals) == 1 else f"first those not dominated in {', '.join(goals)}"
    )
    shown = min(spec.points, len(complete))
    return f"{subject}: {shown} of {plural(len(complete), 'point')}, {which}; {over}."


def _remarks(study: Study, found: SearchPoints, metrics: Sequence[Metric]) -> Iterator[str]:
    settings = [trial.settings for trial in found.trained]
    if found.complete:
        if any(point.seeds > 1 for point in found.complete):
            yield "Bold: best in its column."
        yield "The best of many points is biased upwards; confirm it with activemem study promote."
    yield from noise_sentences(study, found, find_metric(found.goals[0].name))
    if difference := difference_sentence(dict.fromkeys(metrics, settings)):
        yield difference
    if note := comparison_note(study):
        yield f"{note[:1].upper()}{note[1:]}."
    partial = Counter(point.status for point in found.points if point.status != ValueStatus.DONE)
    if lacking := partial[ValueStatus.MISSING]:
        yield f"{plural(lacking, 'point')} still {'has' if lacking == 1 else 'have'} missing seeds."
    below = partial[ValueStatus.PRUNED]
    rungs = study.search.rungs if study.search else None
    if rungs and rungs.rungs and below:
        yield f"{plural(below, 'point')} reached only lower rungs of {rungs.name}."
    if lost := partial.total() - lacking - below:
        yield f"{plural(lost, 'point')} {'has' if lost == 1 else 'have'} no rank, as a seed has no value."
    yield from _left_out(study, found)


def _left_out(study: Study, found: SearchPoints) -> Iterator[str]:
    """Yield sentences on trials and points that a table or figure of points leaves out."""
    yield from over_limit_sentence(found)
    yield from omitted_trials(found.gaps, len(found.trained), study.name)
    if found.outside:
        other = "of other settings, data or code, or of points outside the present space"
        yield f"Not counted: {plural(found.outside, 'stored trial')} {other}."


def curve(spec: PointsFigure, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
    """Return the figure of a search's points."""
    across = () if spec.shows_history else (spec.x,)
    found = find_points(study, outcomes, (*spec.value, *across))
    value = spec.value or [goal.name for goal in found.goals if goal.name not in across][:1] or across
    settings = [trial.settings for trial in found.trained]
    shown = [with_true_title(find_metric(name), settings)[0] for name in (*value, *across)]
    titles = [one_line(metric.axis_title or metric.title) for metric in shown]
    if spec.shows_history:
        content: Content = _trace(study, found, shown[0], hours=spec.x == "hours")
        caption = f"The best point so far: {in_sentence(titles[0])}"
        titles.append("Ended points" if spec.x == "points" else "Hours of training")
    else:
        content, caption = _front(found, *shown), against(*titles)
    difference = difference_sentence(dict.fromkeys(shown, settings))
    return Curve(
        name=spec.name,
        caption=one_line(spec.caption or caption).removesuffix("."),
        notes=(*_search_notes(study, found, content), *([difference] if difference else [])),
        x=Axis(title=titles[1]),
        y=Axis(title=titles[0]),
        panels=(Panel(title="", content=content),),
        provenance=provenance([trial.id for trial in found.trained], outcomes),
    )


def _front(found: SearchPoints, up: Metric, across: Metric) -> Content:
    signs = found.sign(across), found.sign(up)
    known = [(point, point.mean(across.name), point.mean(up.name)) for point in found.complete]
    dots = [Point(x=x, y=y, n=point.seeds) for point, x, y in known if x is not None and y is not None]
    return Cloud(
        lines=tuple(Line(name="", points=(dot,)) for dot in dots),
        front=pareto_front(dots, signs),
        steps="pre" if signs[0] > 0 else "post",
    )


def _search_notes(study: Study, found: SearchPoints, content: Content) -> Iterator[str]:
    counts = sorted({point.seeds for point in found.complete})
    if not counts:
        yield "Nothing to draw: no point of it is done."
    else:
        baseline = content.baseline if isinstance(content, PointTrace) else None
        line = "line: the best so far" if isinstance(content, PointTrace) else "steps: the Pareto front"
        yield f"Dot: a point; {line}."
        if baseline is not None and baseline.high is not None:
            yield (
                "Dashed: the baseline; band: the range of the best value by chance, "
                "among points no better than the baseline."
            )
        ends = "–".join(map(str, sorted({counts[0], counts[-1]})))
        seeds = "one seed" if counts[-1] == 1 else f"the mean of {ends} seeds"
        yield f"{plural(len(found.complete), 'point')}, each {seeds}."
    if note := comparison_note(study):
        yield f"{note[:1].upper()}{note[1:]}."
    yield from _left_out(study, found)


def _trace(study: Study, found: SearchPoints, metric: Metric, *, hours: bool) -> PointTrace:
    sign = found.sign(metric)
    # the hours of training up to each point; failed trainings count as well
    spent = accumulate(point.seconds / _SECONDS_PER_HOUR for point in found.points)
    places = list(spent) if hours else list(range(1, len(found.points) + 1))
    shown = [
        (place, point, value)
        for place, point in zip(places, found.points, strict=True)
        if (value := point.mean(metric.name)) is not None and point in found.complete
    ]
    better = max if sign > 0 else min
    best = list(accumulate((value for _, _, value in shown), better))
    start = find_baseline(study, found)
    return PointTrace(
        points=tuple(Point(x=place, y=value, n=point.seeds) for place, point, value in shown),
        best=tuple(_steps([place for place, _, _ in shown], best)),
        baseline=None if start is None else _baseline_point(found, metric, start),
    )


def _baseline_point(found: SearchPoints, metric: Metric, start: FoundPoint) -> Point | None:
    """Return the baseline's mean, with an interval up to the value that luck can reach.

    That value is the expected best of so many points if all were as good as the baseline.
    """
    value, noise = start.mean(metric.name), measure_noise(found, metric.name)
    if value is None:
        return None
    limit = lead_by_chance(found, start, noise) if noise else None
    ends = sorted((value, value + found.sign(metric) * limit)) if limit is not None else (None, None)
    return Point(x=0.0, y=value, low=ends[0], high=ends[1], n=start.seeds)


def _steps(places: Sequence[float], values: Sequence[float]) -> Iterator[Point]:
    for number, (place, value) in enumerate(zip(places, values, strict=True)):
        if number and value != values[number - 1]:
            yield Point(x=place, y=values[number - 1])
        # the last point extends the line to the end of the search
        if not number or value != values[number - 1] or number == len(places) - 1:
            yield Point(x=place, y=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTrace(Content):
    """The points of a search in order, and the best value so far as a step line.

    The baseline's interval ends at the value that the best of equally many points would reach by chance.
    """

    points: tuple[Point, ...]
    best: tuple[Point, ...]
    baseline: Point | None = None

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        points = [point for content in contents for point in (*content.points, *content.best)]
        points += [content.baseline for content in contents if content.baseline is not None]
        return layout_points(
            curve,
            points,
            margins=(0.02, 0.06),
            right=_NAME + max(text_width(name, TEXT, bold=True) for name in ("best", "baseline")),
            width=330,
            min_width=170,
            height=180,
        )

    def draw(self, plot: Plot, curve: Curve) -> None:
        plot.frame(x=True, y=True)
        if (baseline := self.baseline) is not None:
            up = plot.layout.y
            if baseline.low is not None and baseline.high is not None:
                ends = (up.at(baseline.low), up.at(baseline.high))
                plot.axes.axhspan(*ends, color=LIGHT, alpha=0.18, linewidth=0)
            plot.axes.axhline(up.at(baseline.y), color=DIM, linewidth=1.0, linestyle=(0, (4, 1.5)))
            plot.write(plot.width + _NAME, plot.y(baseline.y), "baseline", color=DIM)
        plot.trace(
            self.points,
            marker="o",
            markersize=3.0,
            markerfacecolor="white",
            markeredgecolor=FAINT,
            markeredgewidth=0.8,
            linestyle="none",
            clip_on=False,
        )
        plot.hover_points(self.points, curve)
        plot.trace(self.best, color=ACCENT, linewidth=1.8, clip_on=False, zorder=4)
        if self.best:
            end = self.best[-1]
            plot.write(plot.width + _NAME, plot.y(end.y), "best", color=ACCENT, weight="bold")
        plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")
