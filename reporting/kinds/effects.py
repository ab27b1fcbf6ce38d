"""`effects`: the effects of factors and of their pairs on a metric.

The table has effects, tests and shares. The figure has the mean at each level of every factor, or of two
factors together: a line for each level of one over the levels of the other. Lines that are not parallel show
an interaction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Self

import polars as pl

from ...studies.catalog.metrics import Metric, with_sign
from ...studies.presentation.kinds import (
    CurveKind,
    KeyFault,
    TableExtras,
    TableKind,
    absent_factors,
    describe_levels,
    factor_faults,
    metric_faults,
    select_faults,
    selected_levels,
)
from ...studies.schema.design import Design
from ...studies.schema.factors import SEED, level_key, level_names, named_levels, one_line
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import degrees_of_freedom, plural
from ..claims.verdicts import format_p
from ..curves.curve import Axis, Bar, Content, Curve, Line, Panel, Point, subject_curve
from ..curves.draw.panel import PanelLayout, Plot, Scale, make_scale, measure_names, ticks_width
from ..curves.draw.style import (
    DIM,
    FAINT,
    INK,
    MAX_NAME_WIDTH,
    TEXT,
    TICK,
    crop_names,
    line_strokes,
    text_width,
    wrap_text,
)
from ..statistics.decided_differences import SIGNIFICANCE_LEVEL
from ..statistics.estimates import Interval, detectable, mean
from ..subject import ResultSubject, StudyModel, model_factors
from ..tables.differences import caption_start, detectable_words
from ..tables.table import NOT_RUN, Cell, CellStatus, ColumnKey, Footnotes, Table, interval_cell, number_cell
from .line import label_lines

if TYPE_CHECKING:
    from ..statistics.factor_effects import Contrast, Term


MAX_MODEL_COLUMNS = 1_000
"""The maximum number of columns of a fitted model."""

MAX_LISTED = 3
"""The maximum number of terms listed by name."""

NOT_ESTIMABLE = "not estimable"
"""The text for a mean that cannot be estimated from the cells."""

FACTORS, INTERACTIONS, BESIDES = "factors", "interactions", "besides"
"""The headings of rows."""

_COLUMNS = ("effect", "p", "share")

_WIDTH = 300.0  # of lines
_APART = 4.0  # points from one line's mark to the next
_NAME = 8.0  # from the lines to a name


def _share_words(share: float) -> str:
    return f"{100 * share:.1f} %"


class EffectsTable(TableKind):
    """`[[table]] kind = "effects"`: the effect of every varied factor on a metric."""

    kind: Literal["effects"]
    value: str
    """the metric, or a cost"""

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        return model_faults(self.select, self.value, design)

    def table(self, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
        subject, notes = ResultSubject(study, self.select, outcomes), Footnotes()
        metric, found = subject.metric(self.value), model_factors(subject, self.value)
        headings, rows, cells = zip(*_rows(found, subject.varied, metric, notes), strict=True)
        return Table(
            name=self.name,
            caption=tuple(_sentences(self, subject, metric, found)),
            corner="",
            rows=rows,
            columns=_COLUMNS,
            cells=cells,
            footnotes=notes.as_tuple(),
            provenance=subject.provenance(),
            keys=tuple(ColumnKey(metric=metric.name, level=kind) for kind in _COLUMNS),
            groups=headings,
            spread="ci",
        )


class EffectsFigure(CurveKind):
    """`[[curve]] kind = "effects"`: the mean of a metric at each level of every varied factor, or of two."""

    kind: Literal["effects"]
    value: str
    """the metric, or a cost"""
    x: str | None = None
    """with `series`: the factor whose levels are on the horizontal axis"""
    series: str | None = None
    """with `x`: the factor with one line for each level, at most 6 (default: every factor by itself)"""
    accent: Any = None
    """the only level of `series` in colour"""

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        return model_faults(self.select, self.value, design) or list(self._axis_faults(design))

    def _axis_faults(self, design: Design) -> Iterator[KeyFault]:
        factors = design.known_levels
        named = {key: name for key, name in (("x", self.x), ("series", self.series)) if name is not None}
        if len(named) == 1:
            yield (*named,), "expected x and series, for two factors together, or neither of them"
            return
        yield from factor_faults([((key,), name) for key, name in named.items()], factors)
        varied = varied_factors(self.select, design.factors)
        for key, name in named.items():
            if name in factors and name not in varied:
                yield (key,), f"expected a factor with several levels, got '{name}'"
        if self.series in varied:
            yield from self.series_faults(self.series, factors)
        if self.series is None or self.series in varied:
            yield from self.level_faults(factors)

    def curve(self, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
        subject = ResultSubject(study, self.select, outcomes)
        metric, found = subject.metric(self.value), model_factors(subject, self.value)
        title, fixed = metric.axis_title or metric.title, subject.fixed((*subject.varied, SEED))
        if self.x is None or self.series is None:
            what, x = "at the levels of each factor", title
            content: Content = _factor_means(found, subject.varied, metric)
        else:
            what, x = f"by {one_line(self.x)} and {one_line(self.series)}", one_line(self.x)
            content = _interaction(self.x, self.series, self.accent, found, subject.varied)
        caption = f"{title}{',' if ',' in title else ''} {what}"
        return subject_curve(
            self,
            subject,
            found.observations,
            caption=caption + (f"; {describe_levels(fixed)}" if fixed else ""),
            fixed=fixed,
            metrics=[metric],
            notes=_figure_notes(found, self.x, self.series),
            x=Axis(title=x),
            y=Axis(title=title),
            panels=(Panel(title="", content=content),),
        )


def model_faults(select: Mapping[str, Any], value: str, design: Design) -> list[KeyFault]:
    """Return the faults of the study-file keys that define a linear model.

    The factors are checked only if all names are known: some must vary, in all cells, and the model must not
    have too many coefficients.
    """
    if faults := [*select_faults(select, design.known_levels), *metric_faults([value])]:
        return faults
    varied = varied_factors(select, design.factors)
    columns = [len(levels) - 1 for levels in varied.values()]
    count = sum(columns) + sum(map(math.prod, combinations(columns, 2)))
    messages: list[str] = []
    if not varied:
        messages.append(f"expected a factor other than {SEED} with several levels, got none")
    elif count > MAX_MODEL_COLUMNS:
        got = f"{count:,} of {len(varied)} factors with their interactions"
        messages.append(f"expected a model of at most {MAX_MODEL_COLUMNS:,} columns, got {got}")
    if names := " and ".join(absent_factors(varied, select, design)):
        which = f"select only cells with {names}, or only cells without it"
        messages.append(f"expected factors that all cells have; {which}")
    return [(("kind",), message) for message in messages]


def varied_factors(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> dict[str, tuple[Level, ...]]:
    """Return the factors with several selected levels, and these levels."""
    levels = selected_levels(select, factors)
    return {name: each for name, each in levels.items() if name != SEED and len(each) > 1}


def _figure_notes(found: StudyModel, x: str | None, series: str | None) -> Iterator[str]:
    if found.model is None:
        yield "Nothing to draw: no factor has values for several levels."
        return
    error = found.model.error
    ends = "whisker: 95 % interval without the common effect of seeds." if error else "without intervals."
    yield (
        "Point: mean over the levels of the other factors with equal weights, "
        f"by a linear model with seeds as blocks; {ends}"
    )
    if x is None or series is None:
        tests = (
            error and f"; p: F test, {degrees_of_freedom([error.degrees])}, Holm over {found.tests} effects"
        )
        yield f"Dotted: the mean of all values. η²: share of the sum of squares{tests}."
    elif not {(x, series), (series, x)}.intersection(found.model.estimable):
        yield "This interaction is not estimable from the cells, and assumed to be zero."


def _factor_means(found: StudyModel, factors: Mapping[str, tuple[Level, ...]], metric: Metric) -> Effects:
    groups = list[FactorMeans]()
    for name, levels in factors.items():
        means, effect = found.level_means(name), found.effects.get((name,))
        unknown = NOT_ESTIMABLE if not means and len(found.observed[name]) > 1 else "–"
        bars = list[Bar]()
        for level, text in zip(levels, level_names(levels), strict=True):
            if (mean_of := means.get((level_key(level),))) is None:
                bars.append(Bar(name=text, text=unknown))
            else:
                value, low, high = mean_of.value, mean_of.low, mean_of.high
                bars.append(Bar(name=text, text=metric.format(value), value=value, low=low, high=high))
        share = f"η² {_share_words(effect.share)}" if effect and effect.share is not None else ""
        p = format_p(effect.p) if effect and effect.p is not None else ""
        words = ", ".join(filter(None, (share, p)))
        groups.append(FactorMeans(name=one_line(name), text=words, means=tuple(bars)))
    values = [value for _, value in found.observations.values]
    return Effects(factors=tuple(groups), center=mean(values) if values else None)


def _rows(
    found: StudyModel, factors: Mapping[str, tuple[Level, ...]], metric: Metric, notes: Footnotes
) -> Iterator[tuple[str, str, tuple[Cell, Cell, Cell]]]:
    """Yield the rows of a table of effects: heading, name and cells.

    Factors come first, then interactions, then shares that no factor explains. A factor with more than two
    levels has a further row for each level.
    """
    count, empty = len(found.observations.values), Cell(status=CellStatus.DONE)
    shows_interactions = _mentions_interactions(found)

    def number(value: float | None, words: Callable[[float], str]) -> Cell:
        return empty if value is None else number_cell(value, words(value))

    def contrast_cell(contrast: Contrast) -> Cell:
        found = Interval(contrast.value, contrast.low, contrast.high)
        return interval_cell(found, metric.format, count, text=with_sign(metric.format(found.value)))

    def term_cells(term: Term) -> tuple[Cell, Cell, Cell]:
        effect = found.effects.get(term)
        if effect is None or not effect.contrasts:
            lost = [name for name in term if len(found.observed[name]) < 2]
            why = f"Only one level of {' and of '.join(lost)} has a value." if lost else ""
            if effect is not None and not lost:
                others = _listed(effect.aliases, "and") or "the other effects together"
                why = f"These cells cannot separate it from {others}."
            marks = (notes.mark(why),) if why and count else ()
            return Cell(status=CellStatus.MISSING, text=NOT_RUN, marks=marks), empty, empty
        held = effect.aliases if shows_interactions else ()  # otherwise the caption has this note
        many = f"Valid if none of {len(held)} interactions exists."
        few = f"Valid if there is no interaction {_listed(held, 'or')}."
        marks = (notes.mark(few if len(held) <= MAX_LISTED else many),) if held else ()
        of_two = all(len(factors[name]) == 2 for name in term)
        first = replace(contrast_cell(effect.contrasts[0]) if of_two else empty, marks=marks)
        p = number(effect.p, lambda p: format_p(p).removeprefix("p ").removeprefix("= "))
        return first, p, number(effect.share, _share_words)

    for name, levels in factors.items():
        names = level_names(levels)
        change = f": {names[0]} → {names[1]}" if len(levels) == 2 else ""
        yield FACTORS, one_line(name) + change, term_cells((name,))
        if change:
            continue
        effect = found.effects.get((name,))  # none if only one level has a value
        deviations = found.model.deviations(name) if found.model and effect and effect.contrasts else ()
        observed = map(level_key, found.observed[name])
        by_level = dict(zip(observed, deviations, strict=False))
        for level, text in zip(levels, names, strict=True):
            contrast = by_level.get(level_key(level))
            missing = Cell(status=CellStatus.MISSING, text=NOT_RUN) if by_level else empty
            first = missing if contrast is None else contrast_cell(contrast)
            yield FACTORS, f"{one_line(name)}: {text}", (first, empty, empty)
    for term in combinations(factors, 2) if shows_interactions else ():
        yield INTERACTIONS, " × ".join(map(one_line, term)), term_cells(term)
    for name, share in found.model.shares.items() if found.model else ():
        yield BESIDES, name, (empty, empty, number(share, _share_words))


def _mentions_interactions(found: StudyModel) -> bool:
    """Return whether an interaction is estimated, or not separable from another effect."""
    return any(effect.contrasts or effect.aliases for term, effect in found.effects.items() if len(term) > 1)


def _listed(terms: Sequence[Term], word: str) -> str:
    if len(terms) > MAX_LISTED:
        return f"{len(terms)} others"
    return f" {word} ".join(" × ".join(map(one_line, term)) for term in terms)


def _sentences(
    spec: EffectsTable, subject: ResultSubject, metric: Metric, found: StudyModel
) -> Iterator[str]:
    factors, seeds = subject.varied, len(subject.levels[SEED])
    fixed = subject.fixed((*factors, SEED))
    at = f", at {describe_levels(fixed)}" if fixed else ""
    cells = plural(len({trial.cell for trial in subject.trials}), "cell")
    size = f"{plural(len(factors), 'factor')} over {cells}{at}"
    blocks = f"{seeds} seeds as blocks" if seeds > 1 else "one seed"
    yield f"{caption_start(spec.caption, [metric])}: effects of {size}, with {blocks}."
    yield from subject.difference([metric])
    yield (
        "Effect of a factor: with two levels, the second minus the first; with more, each level minus the"
        " mean of all. The levels of the other factors have equal weights."
    )
    interactions = [term for term in found.effects if len(term) > 1]
    if interactions and not _mentions_interactions(found):
        count = plural(len(interactions), "interaction")
        yield f"Not estimable from these cells and assumed to be zero: {count}."
    elif sum(len(levels) == 2 for levels in factors.values()) > 1:
        yield (
            "Effect of an interaction of two levels with two:"
            " the effect of one factor at the second level of the other minus that at its first."
        )
    yield from _test_sentences(found, metric)
    if found.model is not None:
        total = sum(found.model.shares.values()) + sum(
            effect.share or 0.0 for effect in found.effects.values()
        )
        yield "Share: η², of the sum of squares of all values" + (
            "; because combinations differ in their numbers of values, shares do not add up to 100 %."
            if total and abs(total - 1) > 0.0005
            else "."
        )
    yield from subject.omitted(found.observations.gaps, found.observations.planned)
    if count := len(subject.trials) - len({trial.id for trial in subject.trials}):
        yield f"{count} combinations of cell and seed share their trial with another cell, and count once."


def _test_sentences(found: StudyModel, metric: Metric) -> Iterator[str]:
    error = found.model.error if found.model else None
    if error is None:
        yield "Without an estimate of the noise there are no intervals and no tests."
        return
    errors = [
        effect.contrasts[0].error
        for effect in found.effects.values()
        if len(effect.term) == 1 and len(effect.contrasts) == 1
    ]
    level = SIGNIFICANCE_LEVEL / max(1, found.tests)
    limits = [(metric, detectable(each, error.degrees, level)) for each in errors if each is not None]
    source = "the noise within cells" if error.is_within_cells else "the residuals"
    if any(effect.varies_more for effect in found.effects.values()):
        source += " or, if that is larger, of the effect itself"  # a larger variance of cells or seeds
    yield "In brackets: 95 % interval of each single effect."
    yield (
        f"p: F test by the variance of {source}, {degrees_of_freedom([error.degrees])};"
        f" Holm over {found.tests} test{'' if found.tests == 1 else 's'} of the column"
        f"{detectable_words(limits, ' between two levels')}."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorMeans:
    """The means of a metric at each level of a factor."""

    name: str
    text: str
    means: tuple[Bar, ...]


_HEAD = 1.15  # height of a factor's name in rows, with the space above
_GAP = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects(Content):
    """The means of a metric at the levels of each factor. `center` is the mean of all values, if any."""

    factors: tuple[FactorMeans, ...]
    center: float | None

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        content = contents[0]
        means = [each for factor in content.factors for each in factor.means]
        numbers = [number for each in means for number in each.numbers]
        numbers += [] if content.center is None else [content.center]
        names, pitch = measure_names([each.name for each in means])
        heads = max((text_width(factor.name, TEXT, bold=True) for factor in content.factors), default=0.0)
        rows = max(len(means) + _HEAD * len(content.factors), 1.0)
        return PanelLayout(
            left=max(names, heads + _GAP),
            right=8 + max((text_width(each.text, TICK) for each in means), default=0.0),
            bottom=24,
            width=260,
            min_width=120,
            height=pitch * rows,
            x=make_scale(numbers, Axis(title=""), margin=0.04),
            y=Scale(low=-rows, high=0.0),
        )

    def draw(self, plot: Plot, curve: Curve) -> None:
        plot.frame(x=True, y=False)
        if self.center is not None:
            plot.axes.axvline(self.center, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
        at = 0.0
        for factor in self.factors:
            head = at - _HEAD / 2 - 0.08
            plot.write(-_GAP, plot.y(head), factor.name, ha="right", weight="bold")
            plot.write(plot.width, plot.y(head), factor.text, ha="right", size=TICK, color=DIM)
            rows = [at - _HEAD - number - 0.5 for number in range(len(factor.means))]
            known = [
                (each.value, row)
                for each, row in zip(factor.means, rows, strict=True)
                if each.value is not None
            ]
            if known:
                plot.axes.plot(*zip(*known, strict=True), color=FAINT, linewidth=0.8, zorder=1)
            for each, row in zip(factor.means, rows, strict=True):
                name = "\n".join(wrap_text(each.name, MAX_NAME_WIDTH, TEXT, bold=True))
                plot.write(-_GAP, plot.y(row), name, ha="right", multialignment="right", linespacing=1.1)
                if each.value is None:
                    plot.write(4, plot.y(row), each.text, size=TICK, color=DIM, style="italic")
                    continue
                plot.interval(each, row)
                look = {"marker": "o", "markersize": 4, "color": INK, "linestyle": "none"}
                plot.axes.plot([each.value], [row], clip_on=False, **look)
                plot.write(plot.width + 8, plot.y(row), each.text, size=TICK)
                words = f"{factor.name} {curve.bar_words(each)}"
                plot.hover(plot.x(each.value), plot.y(row), words)
            at = rows[-1] - 0.5
        plot.write(plot.width, -18, curve.x.title, size=TICK, color=DIM, ha="right")


def _interaction(
    x: str, by: str, accented_level: Level | None, found: StudyModel, factors: Mapping[str, tuple[Level, ...]]
) -> Interaction:
    """Return a line for each level of the factor `by` over the levels of `x`, with the known means."""
    means = found.level_means(x, by) if {x, by} <= factors.keys() else {}
    xs, series = factors.get(x, ()), factors.get(by, ())
    names = named_levels(by, series)
    accent = None if accented_level is None else level_key(accented_level)
    lines = list[Line]()
    for number, (key, name) in enumerate(zip(map(level_key, series), names, strict=True)):
        points = [
            Point(x=float(at), y=contrast.value, low=contrast.low, high=contrast.high)
            for at, level in enumerate(xs)
            if (contrast := means.get((level_key(level), key))) is not None
        ]
        if points:
            lines.append(Line(name=name, number=number, points=tuple(points), accent=key == accent))
    return Interaction(levels=level_names(xs), lines=tuple(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction(Content):
    """A line for each level of one factor, with a point for each level of another; `x` is its index."""

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
        strokes = line_strokes(self.lines)
        unit = 1 / (plot.x(1) - plot.x(0))
        for number, line in enumerate(self.lines):
            color, dashes, width = strokes[line.name]
            shift = (number - (len(self.lines) - 1) / 2) * _APART * unit
            points = [replace(point, x=point.x + shift) for point in line.points]
            look = {"color": color, "linewidth": width, "linestyle": dashes, "clip_on": False}
            plot.trace(points, marker="o", markersize=3.2, **look)
            for point in points:
                plot.whisker(point, color=color, linewidth=0.9, clip_on=False)
                words = curve.point_words(point, line.name, self.levels[round(point.x - shift)])
                plot.hover(plot.x(point.x), plot.y(point.y), words, width=_APART)
        label_lines(plot, self.lines, strokes)
        for at, name in enumerate(self.levels):
            plot.write(
                plot.x(at), -5, "\n".join(_wrapped(self, name)), size=TICK, color=DIM, ha="center", va="top"
            )
        plot.write(plot.width, 4 - plot.layout.bottom, curve.x.title, size=TICK, color=DIM, ha="right")


def _wrapped(content: Interaction, name: str) -> list[str]:
    return wrap_text(name, _WIDTH / max(len(content.levels), 1) - 6, TICK)


TABLE, CURVE = EffectsTable, EffectsFigure
