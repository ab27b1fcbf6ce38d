"""`incumbent`: a line that shows the best value after each point of a search.

Each point of the search is a dot in the order of training, a step line shows the best value so far, and a
dashed line shows the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from ...studies.catalog.metrics import Metric, find_metric
from ...studies.presentation.kinds import CurveKind, KeyFault, metric_faults
from ...studies.presentation.metric_words import difference_sentence, with_true_title
from ...studies.schema.design import Design
from ...studies.schema.factors import one_line
from ...studies.schema.settings import Names
from ...studies.searches.points import FoundPoint, SearchPoints, comparison_note, find_points
from ...studies.searches.words import over_limit_sentence
from ...studies.text.units import plural
from ..curves.curve import Axis, Content, Curve, Panel, Point
from ..curves.draw.panel import PanelLayout, Plot, layout_points
from ..curves.draw.style import ACCENT, DIM, FAINT, LIGHT, TEXT, TICK, text_width
from ..outcomes import omitted_trials, provenance

if TYPE_CHECKING:
    import polars as pl

    from ...studies.study import Study


_SECONDS_PER_HOUR = 3600.0
_NAME = 8.0  # from the plot to a name


class SearchFigure(CurveKind):
    """Base class of figures that show a search's points. They share the key `value` and their notes."""

    value: Names = ()
    """the metric or cost (default: the first objective)"""

    of_search: ClassVar = True
    num_metrics: ClassVar = 1

    def faults(self, design: Design, paper: str | None) -> Iterator[KeyFault]:
        yield from metric_faults(self.value)
        if self.value and len(self.value) != self.num_metrics:
            what = "one metric" if self.num_metrics == 1 else "two metrics or costs"
            yield ("value",), f"expected {what}, got {len(self.value)}"

    def curve(self, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
        found = find_points(study, outcomes, (*self.value, "parameters"))
        settings = [trial.settings for trial in found.trained]
        goals = dict.fromkeys((*(goal.name for goal in found.goals), "parameters"))
        names = self.value or tuple(goals)[: self.num_metrics]
        shown = [with_true_title(find_metric(name), settings)[0] for name in names]
        drawn = self.points_curve(study, found, shown)
        difference = difference_sentence(shown, settings)
        return replace(
            drawn,
            caption=one_line(self.caption or drawn.caption).removesuffix("."),
            notes=(*_search_notes(study, found, drawn.notes), *([difference] if difference else [])),
            provenance=provenance([trial.id for trial in found.trained], outcomes),
        )

    def points_curve(self, study: Study, found: SearchPoints, metrics: Sequence[Metric]) -> Curve:
        """Return the figure of a search's points."""
        raise NotImplementedError


class IncumbentFigure(SearchFigure):
    """`[[curve]] kind = "incumbent"`: the best value so far, after each point of a search."""

    kind: Literal["incumbent"]
    x: Literal["points", "hours"] = "points"
    """the horizontal axis: the number of ended points, or hours of training"""

    def points_curve(self, study: Study, found: SearchPoints, metrics: Sequence[Metric]) -> Curve:
        title, trace = axis_name(metrics[0]), _trace(study, found, metrics[0], hours=self.x == "hours")
        band = trace.baseline is not None and trace.baseline.high is not None
        chance = (
            "Dashed: the baseline; band: the range of the best value by chance, "
            "among points no better than the baseline."
        )
        return Curve(
            name=self.name,
            caption=f"{title} of the best point so far",
            notes=("Dot: a point; line: the best so far.", *((chance,) if band else ())),
            x=Axis(title="Ended points" if self.x == "points" else "Hours of training"),
            y=Axis(title=title),
            panels=(Panel(title="", content=trace),),
            provenance="",
        )


def axis_name(metric: Metric) -> str:
    """Return the axis title of a metric."""
    return one_line(metric.axis_title or metric.title)


def _search_notes(study: Study, found: SearchPoints, own: Sequence[str]) -> Iterator[str]:
    counts = sorted({point.seeds for point in found.complete})
    if not counts:
        yield "Nothing to draw: no point of it is done."
    else:
        yield from own
        seeds = (
            "one seed"
            if counts[-1] == 1
            else f"the mean of {'–'.join(map(str, sorted({counts[0], counts[-1]})))} seeds"
        )
        yield f"{plural(len(found.complete), 'point')}, each {seeds}."
    if note := comparison_note(study):
        yield f"{note[:1].upper()}{note[1:]}."
    yield from over_limit_sentence(found)
    yield from omitted_trials(found.gaps, len(found.trained), study.name)


def _trace(study: Study, found: SearchPoints, metric: Metric, *, hours: bool) -> PointTrace:
    from ..search.noise import find_baseline  # noqa: PLC0415 -- loads NumPy

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
    """Return the baseline's mean, with an interval up to the value that luck alone would reach.

    That value is the expected best of so many points if all were as good as the baseline.
    """
    from ..search.noise import lead_by_chance, measure_noise  # noqa: PLC0415 -- loads NumPy

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
        points = [
            point for content in contents for point in (*content.points, *content.best, *_baseline(content))
        ]
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
        up, x = plot.layout.y, plot.layout.x
        for baseline in _baseline(self):
            if baseline.low is not None and baseline.high is not None:
                ends = (up.at(baseline.low), up.at(baseline.high))
                plot.axes.axhspan(*ends, color=LIGHT, alpha=0.18, linewidth=0)
            plot.axes.axhline(up.at(baseline.y), color=DIM, linewidth=1.0, linestyle=(0, (4, 1.5)))
            plot.write(plot.width + _NAME, plot.y(baseline.y), "baseline", color=DIM)
        plot.axes.plot(
            [x.at(point.x) for point in self.points],
            [up.at(point.y) for point in self.points],
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


def _baseline(content: PointTrace) -> tuple[Point, ...]:
    return () if content.baseline is None else (content.baseline,)


CURVE = IncumbentFigure
