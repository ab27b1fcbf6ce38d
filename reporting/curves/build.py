"""A figure's data from a study, the specification of the figure and the store's frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import polars as pl

from ...studies.catalog.metrics import METRICS_AND_COSTS, Metric, find_metric
from ...studies.catalog.published import PublishedTable, match_published_keys, published_tables
from ...studies.catalog.tasks import TEST_SETS
from ...studies.presentation.curve import INDEX_AXES, CurveSpec
from ...studies.presentation.metric_words import with_true_title
from ...studies.presentation.named_levels import with_levels
from ...studies.presentation.reader import AnyCurveSpec, any_curve_faults
from ...studies.presentation.selection import fixed_levels, is_selected, selected_levels
from ...studies.resolve.trial import Trial
from ...studies.schema.design import Design
from ...studies.schema.level_names import level_text, one_line
from ...studies.schema.settings import Level
from ...studies.study import Study
from ..provenance import provenance
from . import aggregate
from .curve import Axis, Bars, Content, Curve, CurveError, Line, Lines, Matrix, Panel
from .figure_names import FigureNames
from .notes import axis_title, default_caption, note_sentences, setting_notes
from .samples import collect_samples

MAX_BAR_RATIO = 0.6
"""Where the smallest value is above this share of the largest, bars from 0 would hide how they differ."""

MAX_LINES = 5
"""If there are more lines than these, each has a panel, with the others in grey behind it."""


def build_curve(
    study: Study, spec: AnyCurveSpec, outcomes: pl.DataFrame, metrics: pl.DataFrame | None = None
) -> Curve:
    """The figure that `spec` describes, from the store's latest attempts at the study's trials.

    `metrics` are those of these trials in the store, needed if `spec.needs_history`. CurveError if the
    specification does not fit the study.
    """
    spec = with_levels(spec, study.design)
    if wrong := any_curve_faults(spec, study.design, study.paper):
        faults = (f"curve {spec.name}: {'.'.join(map(str, path))}: {message}" for path, message in wrong)
        raise CurveError("\n".join(faults))
    if not isinstance(spec, CurveSpec):
        from .summaries import summary_figure  # noqa: PLC0415 -- loads NumPy

        return summary_figure(study, spec, outcomes)
    levels = selected_levels(spec.select, study.factors)
    samples = collect_samples(spec, study, outcomes, metrics)
    trials = [trial for trial in study.cells if is_selected(spec.select, trial.levels)]
    builder = _CurveBuilder(
        spec=spec,
        metric=_with_titles(find_metric(spec.value), spec, trials),
        x_metric=_x_metric(spec, trials),
        names=FigureNames(spec=spec, levels=levels, samples=samples),
        paper=published_tables().get((study.paper or "", spec.published or "")),
    )
    panels = builder.panels()
    fixed = _fixed_levels(spec, trials, study.design)
    caption = spec.caption or default_caption(spec, builder.metric, builder.x_metric, fixed)
    return Curve(
        name=spec.name,
        caption=one_line(caption).removesuffix("."),
        notes=(
            *setting_notes(
                fixed if spec.caption else {},
                [each for each in (builder.metric, builder.x_metric) if each],
                [trial.settings for trial in trials],
            ),
            *note_sentences(spec, panels, samples, study),
        ),
        x=builder.x_axis(),
        y=builder.y_axis(),
        panels=panels,
        provenance=provenance(samples.trials, outcomes),
    )


def _with_titles(metric: Metric, spec: CurveSpec, trials: Sequence[Trial]) -> Metric:
    """The metric with titles that are true of these trials.

    An index that numbers test sets is called what these differ in.
    """
    titles = {trial.settings.task.spec.test_sets_title for trial in trials}
    if metric.index_titles == (TEST_SETS,) and len(titles) == 1:
        metric = replace(metric, index_titles=tuple(titles))
    over_index = not {*INDEX_AXES}.isdisjoint(spec.roles.values())
    return with_true_title(metric, [trial.settings for trial in trials], over_index=over_index)[0]


def _x_metric(spec: CurveSpec, trials: Sequence[Trial]) -> Metric | None:
    """The metric or the cost along the bottom, if it is one."""
    if spec.x not in METRICS_AND_COSTS:
        return None
    return with_true_title(find_metric(spec.x), [trial.settings for trial in trials])[0]


def _fixed_levels(spec: CurveSpec, trials: Sequence[Trial], design: Design) -> Mapping[str, Level]:
    """The levels of the factors that have several and are neither an axis, nor a series, nor panels."""
    return fixed_levels([trial.levels for trial in trials], tuple(spec.roles.values()), design)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CurveBuilder:
    """Makes the axes and panels of one figure; `paper` is the table whose numbers stand beside ours."""

    spec: CurveSpec
    metric: Metric
    x_metric: Metric | None
    names: FigureNames
    paper: PublishedTable | None

    def panels(self) -> tuple[Panel, ...]:
        """A panel for each level of `panels` and of `rows`, a single one, or one for each of many lines."""
        frame, columns = self.names.samples.frame, self.names.full_names(self.spec.panels) or ("",)
        places = product(self.names.full_names(self.spec.rows) or ("",), columns)
        made = tuple(
            Panel(title=title, row=row, content=self.content(frame.filter(pl.col("panel") == number), number))
            for number, (row, title) in enumerate(places)
        )
        if len(made) == 1 and isinstance(made[0].content, Lines):
            return _split_lines(made[0].content)
        return _share_scales(made, self.metric) if self.spec.kind in ("bar", "heat") else made

    def content(self, frame: pl.DataFrame, panel: int) -> Content:
        """The content of a panel, from its part of the samples."""
        naming, band = self.names.level_names(), self.spec.band
        match self.spec.kind:
            case "line":
                found = aggregate.build_lines(frame, naming, self.names.positions()[0], band, self.metric)
                return Lines(lines=tuple(self.with_published(line, panel) for line in found))
            case "bar":
                bars = aggregate.build_bars(frame, naming, band, self.metric, self.placeholders(panel))
                published = (self.published_value(panel=panel, x=x) for x in range(len(bars)))
                pairs = zip(bars, published, strict=True)
                return Bars(bars=tuple(replace(bar, published=each) for bar, each in pairs), points=False)
            case "box":
                return aggregate.build_boxes(
                    frame, naming, self.names.positions()[0], self.placeholders(panel)
                )
            case "heat":
                rows, columns = self.names.heatmap_axis("y"), self.names.heatmap_axis("x")
                matrix = aggregate.build_matrix(
                    frame, rows, columns, self.metric, self.heatmap_placeholders(panel)
                )
                return replace(matrix, pairs=self.noted_pairs(panel, columns[0]))
            case "pareto":
                cost = METRICS_AND_COSTS.get(self.spec.x)
                signs = (
                    1 if cost and cost.higher_is_better else -1,
                    1 if self.metric.higher_is_better else -1,
                )
                return aggregate.build_cloud(
                    frame, self.names.point_name, naming.accent, band=band, metric=self.metric, signs=signs
                )

    def x_axis(self) -> Axis:
        """The axis along the bottom."""
        ticks = self.names.positions()[1] if self.spec.kind in ("line", "box") else ()
        title = axis_title(self.spec.x, self.metric, self.x_metric)
        return Axis(title=title, log=self.spec.logx, ticks=ticks)

    def y_axis(self) -> Axis:
        """The axis of the metric, or of a heat map's rows."""
        if self.spec.y is not None:
            return Axis(title=axis_title(self.spec.y, self.metric))
        return Axis(title=self.metric.axis_title or self.metric.title, log=self.spec.logy)

    def placeholders(self, panel: int) -> dict[int, str]:
        """What became of the levels of x that have no value."""
        return {x: word for (at, _, x, _), word in self.names.samples.placeholders.items() if at == panel}

    def noted_pairs(self, panel: int, places: Sequence[object]) -> tuple[int, ...]:
        """The columns of a heat map at whose index something is noted of it and the next one."""
        if self.spec.x != INDEX_AXES[-1]:
            return ()
        noted = {str(index) for index in self.names.samples.noted.get(panel, {})}
        return tuple(number for number, place in enumerate(places) if str(place) in noted)

    def heatmap_placeholders(self, panel: int) -> dict[tuple[object, object], str]:
        """What stands in the cells of a heat map that have no value, by row and column."""
        if not {*INDEX_AXES}.isdisjoint(self.spec.roles.values()):
            return {}
        return {
            (y, x): word for (at, _, x, y), word in self.names.samples.placeholders.items() if at == panel
        }

    def with_published(self, line: Line, panel: int) -> Line:
        """The line with what the paper has for its series at every level of x."""
        if self.paper is None:
            return line
        series = self.names.full_names(self.spec.series).index(line.name) if line.name else 0
        at, _ = self.names.positions()
        numbers = ((place, self.published_value(panel=panel, series=series, x=x)) for x, place in at.items())
        return replace(line, published=tuple((place, value) for place, value in numbers if value is not None))

    def published_value(self, **at: object) -> float | None:
        """What the paper prints at the levels of these roles and the selected ones, if anything.

        Any of these levels may be the paper's row and any its column, as `match_published_keys` finds them; a
        table of one column is matched by its rows alone.
        """
        if self.paper is None:
            return None
        rows = list[str]()
        columns = list(self.paper.columns) if len(self.paper.columns) == 1 else []
        for factor, number in self.resolved_levels(at):
            texts = [level_text(level) for level in self.names.levels[factor]]
            for keys, known in ((rows, self.paper.rows), (columns, self.paper.columns)):
                keys += [
                    key for level, key in match_published_keys(texts, known).items() if level == texts[number]
                ]
        cells = (self.paper.cells.get((row, column)) for row in rows for column in columns)
        return next((cell.value for cell in cells if cell is not None), None)

    def resolved_levels(self, at: Mapping[str, object]) -> Iterator[tuple[str, int]]:
        """Every factor with a determined level, and its number: given by a role, or the only one."""
        panel, columns = at.get("panel"), len(self.names.levels.get(self.spec.panels or "", ())) or 1
        row, column = divmod(panel, columns) if isinstance(panel, int) else (None, None)
        roles = {
            self.spec.rows: row,
            self.spec.panels: column,
            self.spec.series: at.get("series"),
            self.spec.x: at.get("x"),
        }
        for factor, levels in self.names.levels.items():
            number = roles.get(factor, 0 if len(levels) == 1 else None)
            if isinstance(number, int):
                yield factor, number


def _share_scales(panels: tuple[Panel, ...], metric: Metric) -> tuple[Panel, ...]:
    """Panels of bars or of heat maps with bars or points in all of them, and one scale of shades."""
    contents = [panel.content for panel in panels]
    values = [value for content in contents for value in _values(content) if value is not None]
    if not values:
        return panels
    low, high = min(values), max(values)
    points = len(values) > 1 and low > MAX_BAR_RATIO * high > 0
    ends = ((low, metric.format(low)), (high, metric.format(high)))
    return tuple(
        replace(panel, content=replace(each, points=points))
        if isinstance(each, Bars)
        else replace(panel, content=replace(each, ends=ends))
        if isinstance(each, Matrix)
        else panel
        for panel, each in zip(panels, contents, strict=True)
    )


def _values(content: Content) -> Iterator[float | None]:
    """Every number of bars or of a heat map."""
    if isinstance(content, Bars):
        yield from (bar.value for bar in content.bars)
    if isinstance(content, Matrix):
        yield from (value for row in content.values for value in row)


def _split_lines(found: Lines) -> tuple[Panel, ...]:
    """The lines in one panel or, if they are too many, in a panel each with the others behind it."""
    if len(found.lines) <= MAX_LINES:
        return (Panel(title="", content=found),)
    return tuple(
        Panel(
            title=line.name,
            content=Lines(lines=(line,), context=tuple(other for other in found.lines if other is not line)),
        )
        for line in found.lines
    )
