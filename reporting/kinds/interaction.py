"""`interaction`: a line for each level of one factor over the levels of another.

Levels are words at equal distances. Points of different lines are shifted a little sideways, so that their
whiskers do not overlap. Lines that are not parallel show an interaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field

from ...studies.presentation.kinds import CurveKind, KeyFault, factor_faults
from ...studies.schema.design import Design
from ...studies.schema.factors import level_key, level_names, named_levels, one_line
from ...studies.schema.settings import Level
from ..curves.curve import Axis, Content, Curve, Line, Point
from ..curves.draw.panel import PanelLayout, Plot, Scale, make_scale, ticks_width
from ..curves.draw.style import DIM, TEXT, TICK, crop_names, line_strokes, text_width, wrap_text
from ..subject import ResultSubject, StudyModel, model_factors
from .effects import model_faults, model_figure, varied_factors
from .line import label_lines

if TYPE_CHECKING:
    import polars as pl

    from ...studies.study import Study


_WIDTH = 300.0
_APART = 4.0  # points from one line's mark to the next
_NAME = 8.0


class InteractionFigure(CurveKind):
    """`[[curve]] kind = "interaction"`: the mean of a metric for each pair of two factors' levels."""

    kind: Literal["interaction"]
    value: str
    """the metric, or a cost"""
    x: str
    """the factor whose levels are on the horizontal axis"""
    series: str
    """the factor with one line for each level, at most 6"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or list of levels to include"""
    accent: Any = None
    """the only level of `series` in colour"""

    @property
    def level_keys(self) -> Mapping[str, str | None]:
        return {"accent": self.series}

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        faults = model_faults(self.select, self.value, design)
        return faults or list(self._factor_faults(design))

    def _factor_faults(self, design: Design) -> Iterator[KeyFault]:
        factors = design.known_levels
        yield from factor_faults([(("x",), self.x), (("series",), self.series)], factors)
        varied = varied_factors(self.select, design.factors)
        for key, name in (("x", self.x), ("series", self.series)):
            if name in factors and name not in varied:
                yield (key,), f"expected a factor with several levels, got '{name}'"
        if self.series in varied:
            yield from self.series_faults(self.series, factors)
            yield from self.level_faults(factors)

    def curve(self, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
        subject = ResultSubject(study, self.select, outcomes)
        found = model_factors(subject, self.value)
        return model_figure(
            self,
            subject,
            subject.metric(self.value)[0],
            found,
            what=f"by {one_line(self.x)} and {one_line(self.series)}",
            x=one_line(self.x),
            content=_interaction(self, found, subject.varied),
            notes=_notes(self, found),
        )


def _notes(spec: InteractionFigure, found: StudyModel) -> Iterator[str]:
    estimable = () if found.model is None else found.model.estimable
    if (
        found.model is not None
        and (spec.x, spec.series) not in estimable
        and (spec.series, spec.x) not in estimable
    ):
        yield "This interaction is not estimable from the cells, and assumed to be zero."


def _interaction(
    spec: InteractionFigure, found: StudyModel, factors: Mapping[str, tuple[Level, ...]]
) -> Interaction:
    """Return the lines of an interaction figure: one for each level of the factor in `series`.

    Means that cannot be estimated have no point.
    """
    means = found.level_means(spec.x, spec.series) if {spec.x, spec.series} <= factors.keys() else {}
    xs, series = factors.get(spec.x, ()), factors.get(spec.series, ())
    names = named_levels(spec.series, series)
    accent = None if spec.accent is None else level_key(spec.accent)
    keys = [level_key(level) for level in series]
    accented = keys.index(accent) if accent in keys else None
    lines = list[Line]()
    for number, (key, name) in enumerate(zip(keys, names, strict=True)):
        points = [
            Point(x=float(at), y=contrast.value, low=contrast.low, high=contrast.high)
            for at, level in enumerate(xs)
            if (contrast := means.get((level_key(level), key))) is not None
        ]
        if points:
            lines.append(
                Line(
                    name=name,
                    number=number - (accented is not None and accented < number),
                    points=tuple(points),
                    accent=accented == number,
                )
            )
    return Interaction(levels=level_names(xs), lines=tuple(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction(Content):
    """A line for each level of one factor, with a point for each level of another factor.

    A point's `x` is the index of its level.
    """

    levels: tuple[str, ...]
    lines: tuple[Line, ...]

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        content = contents[0]
        numbers = [number for line in content.lines for point in line.points for number in point.numbers]
        up = make_scale(numbers, Axis(title=""), margin=0.05)
        names = crop_names(line.name for line in content.lines).values()
        width = max((text_width(name, TEXT, bold=True) for name in names), default=0.0)
        high = max((len(_wrapped(content, name)) for name in content.levels), default=1)
        return PanelLayout(
            left=ticks_width(up),
            right=_NAME + width,
            bottom=14 + 8.5 * high,
            width=_WIDTH,
            min_width=_WIDTH,
            height=180,
            x=Scale(low=-0.35, high=max(len(content.levels), 1) - 0.65),
            y=up,
        )

    def draw(self, plot: Plot, curve: Curve) -> None:
        plot.frame(x=True, y=True)
        if not self.lines:
            return
        strokes = line_strokes({line.name: None if line.accent else line.number for line in self.lines})
        unit = 1 / (plot.x(1) - plot.x(0))
        for number, line in enumerate(self.lines):
            color, dashes, width = strokes[line.name]
            shift = (number - (len(self.lines) - 1) / 2) * _APART * unit
            xs = [point.x + shift for point in line.points]
            plot.axes.plot(
                xs,
                [point.y for point in line.points],
                color=color,
                linestyle=dashes,
                linewidth=width,
                marker="o",
                markersize=3.2,
                clip_on=False,
            )
            for x, point in zip(xs, line.points, strict=True):
                if point.low is not None and point.high is not None:
                    plot.axes.plot([x, x], [point.low, point.high], color=color, linewidth=0.9, clip_on=False)
                words = curve.point_words(point, line.name, self.levels[int(point.x)])
                plot.hover(plot.x(x), plot.y(point.y), words, width=_APART)
        label_lines(plot, self.lines, strokes)
        for at, name in enumerate(self.levels):
            plot.write(
                plot.x(at), -5, "\n".join(_wrapped(self, name)), size=TICK, color=DIM, ha="center", va="top"
            )
        plot.write(plot.width, 4 - plot.layout.bottom, curve.x.title, size=TICK, color=DIM, ha="right")


def _wrapped(content: Interaction, name: str) -> list[str]:
    return wrap_text(name, _WIDTH / max(len(content.levels), 1) - 6, TICK)


CURVE = InteractionFigure
