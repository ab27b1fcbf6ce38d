"""A figure's data from a study, the specification of the figure and the store's frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from . import contents
from .contents import Naming, places_of
from .curve import Axis, Bars, Content, Curve, CurveError, Line, Lines, Matrix, Panel
from .curve_notes import axis_title, notes, title
from .curve_spec import INDICES, TIMES, CurveSpec, curve_misfits
from .labels import level_text, one_line, short_levels
from .measures import MEASURES, measure
from .metrics import Metric, family
from .published import PublishedTable, match, published_tables
from .samples import Samples, samples
from .selecting import chosen
from .settings import Level
from .study import Study
from .tables import provenance

FAR = 0.6
"""Where the smallest value is above this share of the largest, bars from 0 would hide how they differ."""

MOST_LINES = 5
"""More lines than these stand in a panel each, with the others in grey behind."""


def curve(study: Study, spec: CurveSpec, outcomes: pl.DataFrame, metrics: pl.DataFrame) -> Curve:
    """The figure that `spec` describes, over the study's trials in the latest attempts of a store.

    `metrics` are the store's of these trials, of which nothing is read but where `spec.over_time` says so.
    CurveError if the specification does not fit the study.
    """
    if wrong := curve_misfits(spec, study.design, study.paper):
        faults = (f"curve {spec.name}: {'.'.join(map(str, path))}: {message}" for path, message in wrong)
        raise CurveError("\n".join(faults))
    trials = study.asked
    maker = _Maker(
        spec=spec,
        levels=chosen(spec.select, study.factors),
        metric=measure(spec.value),
        drawn=samples(spec, study.factors, trials, outcomes, metrics),
        paper=published_tables().get((study.paper or "", spec.published or "")),
        names={trial.id: trial.levels for trial in trials},
    )
    panels = maker.panels()
    return Curve(
        name=spec.name,
        caption=one_line(spec.caption or title(spec, maker.metric, study.factors)).removesuffix("."),
        notes=notes(spec, panels, maker.drawn, study.paper),
        x=maker.x_axis(),
        y=maker.y_axis(),
        panels=panels,
        provenance=provenance(maker.drawn.trials, outcomes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Maker:
    """Makes the panels of one figure; `names` has the levels of every trial."""

    spec: CurveSpec
    levels: Mapping[str, tuple[Level, ...]]
    metric: Metric
    drawn: Samples
    paper: PublishedTable | None
    names: Mapping[str, Mapping[str, Level]]

    def panels(self) -> tuple[Panel, ...]:
        """One panel for every level of the factor `panels`, or the only one; of many lines, one for each."""
        titles = self.named(self.spec.panels) or ("",)
        made = tuple(
            Panel(
                title=title,
                content=self.content(self.drawn.frame.filter(pl.col("panel") == number), number),
            )
            for number, title in enumerate(titles)
        )
        if len(made) == 1 and isinstance(made[0].content, Lines):
            return _apart(made[0].content)
        return _alike(made, self.metric) if self.spec.kind in ("bar", "heat") else made

    def content(self, frame: pl.DataFrame, panel: int) -> Content:
        """What stands in a panel, of its part of the frame."""
        naming, band = self.naming(), self.spec.band
        match self.spec.kind:
            case "line":
                found = contents.lines(frame, naming, self.places()[0], band)
                return Lines(lines=tuple(self.printed_beside(line, panel) for line in found))
            case "bar":
                words = {x: word for (at, _, x, _), word in self.drawn.words.items() if at == panel}
                found = contents.bars(frame, naming, band, self.metric, words)
                return Bars(
                    bars=tuple(
                        replace(bar, published=self.printed(panel=panel, x=x)) for x, bar in enumerate(found)
                    ),
                    points=False,
                )
            case "box":
                return contents.boxes(frame, naming, self.places()[0])
            case "heat":
                return contents.matrix(
                    frame, self.side("y"), self.side("x"), self.metric, self.words_by_side(panel)
                )
            case "pareto":
                cost = MEASURES.get(self.spec.x)
                signs = (1 if cost and cost.higher else -1, 1 if self.metric.higher else -1)
                return contents.cloud(frame, self.call, naming.accent, band=band, signs=signs)

    def x_axis(self) -> Axis:
        """The axis along the bottom."""
        ticks = self.places()[1] if self.spec.kind in ("line", "box") else ()
        return Axis(title=axis_title(self.spec.x, self.metric), log=self.spec.logx, ticks=ticks)

    def y_axis(self) -> Axis:
        """The axis of the metric; of a heat map, the rows'."""
        if self.spec.y is not None:
            return Axis(title=axis_title(self.spec.y, self.metric))
        index = self.metric.name.removeprefix(family(self.metric.name))
        return Axis(title=(self.metric.axis or self.metric.title) + index, log=self.spec.logy)

    def places(self) -> tuple[Mapping[object, float], tuple[tuple[float, str], ...]]:
        """Where each x of the frame stands, and the ticks."""
        name = self.spec.x
        if name in TIMES:
            return {x: float(x) for x in self.drawn.frame["x"].unique()}, ()
        if name in INDICES:
            return places_of(self.drawn.frame["x"].unique().sort().to_list())
        if self.spec.kind == "box":
            return {number: float(number) for number in range(len(self.levels[name]))}, ()
        numbers = [float(level) for level in self.levels[name]]
        texts = map(level_text, self.levels[name])
        return dict(enumerate(numbers)), tuple(sorted(zip(numbers, texts, strict=True)))

    def naming(self) -> Naming:
        """The names of the levels that the frame numbers, those of indices left out."""
        accented = self.levels.get(self.spec.accented or "", ())
        same = [(type(level), level) == (type(self.spec.accent), self.spec.accent) for level in accented]
        return Naming(
            x=self.named(self.spec.x),
            series=self.named(self.spec.series),
            accent=same.index(True) if True in same else None,
        )

    def short(self, factor: str | None) -> tuple[str, ...]:
        """The short names of a factor's levels; none for what is no factor."""
        return short_levels(self.levels.get(factor or "", ()))

    def named(self, factor: str | None) -> tuple[str, ...]:
        """The short names of a factor's levels, numbers with the name of the factor."""
        texts = self.short(factor)
        words = [isinstance(level, str) for level in self.levels.get(factor or "", ())]
        return texts if all(words) else tuple(f"{one_line(str(factor))} {text}" for text in texts)

    def side(self, role: str) -> tuple[Sequence[object], Sequence[str]]:
        """The rows or the columns of a heat map, as the frame has them, and their names."""
        name = self.spec.roles[role]
        if name in self.levels:
            return range(len(self.levels[name])), self.short(name)
        at, _ = places_of(self.drawn.frame[role].unique().sort().to_list())
        order = sorted(at, key=at.__getitem__)
        return order, [str(index) for index in order]

    def words_by_side(self, panel: int) -> dict[tuple[object, object], str]:
        """What stands in the cells of a heat map that have no value."""
        if set(INDICES) & set(self.spec.roles.values()):
            return {}
        return {(y, x): word for (at, _, x, y), word in self.drawn.words.items() if at == panel}

    def call(self, series: int, cell: int) -> str:
        """The name of a point: its series, or all levels of its cell that vary."""
        if self.spec.series is not None:
            return self.named(self.spec.series)[series]
        trial = self.drawn.frame.filter(pl.col("cell") == cell)["trial"][0]
        varied = {name: each for name, each in self.levels.items() if name != "seed" and len(each) > 1}
        return ", ".join(
            self.named(name)[each.index(self.names[trial][name])]
            for name, each in varied.items()
            if name != self.spec.panels
        )

    def printed_beside(self, line: Line, panel: int) -> Line:
        """The line with what the paper has for its series at every level of x."""
        if self.paper is None:
            return line
        series = self.named(self.spec.series).index(line.name) if line.name else 0
        at, _ = self.places()
        numbers = ((place, self.printed(panel=panel, series=series, x=x)) for x, place in at.items())
        return replace(line, published=tuple((place, value) for place, value in numbers if value is not None))

    def printed(self, **numbers: object) -> float | None:
        """What the paper prints at these levels and the selected ones; None where it has no such cell."""
        if self.paper is None:
            return None
        roles = {"panel": self.spec.panels, "series": self.spec.series, "x": self.spec.x}
        at = {name: numbers[role] for role, name in roles.items() if role in numbers and name in self.levels}
        rows, columns = [], []
        for factor, levels in self.levels.items():
            number = at.get(str(factor), 0 if len(levels) == 1 else None)
            if not isinstance(number, int):
                continue
            text = level_text(levels[number])
            texts = [level_text(level) for level in levels]
            rows += [key for key in [match(texts, self.paper.rows).get(text)] if key]
            columns += [key for key in [match(texts, self.paper.columns).get(text)] if key]
        columns += self.paper.columns if len(self.paper.columns) == 1 else ()
        cells = (self.paper.cells.get((row, column)) for row in rows for column in columns)
        return next((cell.value for cell in cells if cell is not None), None)


def _alike(panels: tuple[Panel, ...], metric: Metric) -> tuple[Panel, ...]:
    """The panels on common terms: bars or points in all, one scale of shades."""
    contents = [panel.content for panel in panels]
    values = [
        value
        for each in contents
        for value in (
            [bar.value for bar in each.bars]
            if isinstance(each, Bars)
            else [value for row in each.values for value in row]
            if isinstance(each, Matrix)
            else []
        )
        if value is not None
    ]
    if not values:
        return panels
    low, high = min(values), max(values)
    alike = []
    for each in contents:
        if isinstance(each, Bars):
            alike.append(replace(each, points=len(values) > 1 and low > FAR * high > 0))
        elif isinstance(each, Matrix):
            alike.append(replace(each, ends=((low, metric.show(low)), (high, metric.show(high)))))
    return tuple(replace(panel, content=each) for panel, each in zip(panels, alike, strict=True))


def _apart(found: Lines) -> tuple[Panel, ...]:
    """The lines in one panel, or where they are too many in one each, the accented one in all of them."""
    if len(found.lines) <= MOST_LINES:
        return (Panel(title="", content=found),)
    return tuple(
        Panel(
            title=line.name,
            content=Lines(lines=(line,), context=tuple(other for other in found.lines if other is not line)),
        )
        for line in found.lines
    )
