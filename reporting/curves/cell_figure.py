"""The base class of figures that show a study's cells.

A cell is a combination of factor levels.

The base class has the common keys, the checks of these keys, and captions. The kinds `line`, `bar`, `box`,
`heat` and `pareto` add their own keys and the content of their panels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from ...studies.catalog.metrics import (
    METRICS_AND_COSTS,
    Metric,
    find_metric,
    is_target,
    is_timed,
    metric_family,
    unknown_metric,
)
from ...studies.catalog.published import match_published_keys, published_faults, published_tables
from ...studies.presentation.kinds import (
    CurveKind,
    KeyFault,
    Spread,
    factor_faults,
    mixed_levels_fault,
    select_faults,
    selected_levels,
)
from ...studies.presentation.metric_words import in_sentence, with_true_title
from ...studies.schema.design import Design
from ...studies.schema.factors import (
    level_key,
    level_name,
    level_text,
    named_levels,
    one_line,
)
from ...studies.schema.settings import Level
from ...studies.text.units import number_range
from ..picked_levels import PickKeys, pick_cells, pick_note
from ..statistics.estimates import Interval, estimate
from .curve import INDEX_AXES, TIME_AXES, Axis, Content, Curve, Panel

if TYPE_CHECKING:
    import polars as pl

    from ...studies.study import Study
    from ..subject import ResultSubject
    from .samples import Samples

SPREADS: Mapping[Spread, str] = {"sd": "± 1 s.d", "se": "± 1 standard error", "ci": "95 % t interval"}
"""The caption for each kind of interval."""

MAX_COLUMNS = 6
"""The maximum number of panels side by side."""

_PICK_HINT = 'let a metric pick: over = {}, pick_by = "dev_loss"'

_WHOLE_DEV = (
    "The value after the last epoch is left out: it is of the whole dev split, and the others are of a part."
)
_ROLES = ("x", "y", "series", "panels", "rows")


class CellFigure(PickKeys, CurveKind):
    """Base class of figures that show a study's cells, with the study-file keys that they share."""

    value: str
    """the metric or cost; a family such as `bleu` is drawn over its index"""
    x: str
    """a factor; for lines also `epoch`, `step`, `tokens`, `flops`, `seconds` or `index`, for boxes `index`,
    for heat maps `index` or `index2`; for a front a cost such as `parameters` or another metric"""
    panels: str | None = None
    """the factor with one panel for each level"""
    rows: str | None = None
    """the factor with a row of panels for each level; `panels` are then the columns"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or list of levels to include"""

    special: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Names that a role can have instead of a factor; they take precedence over factors with the same
    name."""

    interval_mark: ClassVar[str] = ""
    """the mark that shows an interval"""

    @property
    def roles(self) -> dict[str, str]:
        """Return the values of the study-file keys `x`, `y`, `series`, `panels` and `rows`, by key.

        A value is a factor or another name, such as `epoch`. Keys that are not set are left out.
        """
        found = {role: getattr(self, role, None) for role in _ROLES}
        return {role: name for role, name in found.items() if name is not None}

    @property
    def accent_factor(self) -> str | None:
        """Return the factor of the level that `accent` names: that of `series`, if figures have this key."""
        return self.roles.get("series") if "series" in type(self).model_fields else self.x

    @property
    def level_keys(self) -> Mapping[str, str | None]:
        """Return the factor of the level that `accent` names, by this key; empty without the key."""
        return {"accent": self.accent_factor} if "accent" in type(self).model_fields else {}

    @property
    def is_course(self) -> bool:
        """Return whether the figure shows learning curves. It does if x is a time in training."""
        return self.x in TIME_AXES and "epoch" in self.special.get("x", ())

    def timed_metrics(self) -> list[str]:
        """Return the metrics that depend on the speed of the device, and the axis x if it shows seconds."""
        return [*super().timed_metrics(), *([self.x] if self.is_course and is_timed(self.x) else [])]

    @property
    def needs_history(self) -> bool:
        """Return whether an axis is a time in training or an index. Otherwise the final values are enough."""
        return self.is_course or not set(INDEX_AXES).isdisjoint(self.roles.values())

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        """Return the faults of this figure's keys in a study.

        Levels and the number of panels are checked only if the keys that name factors are valid.
        """
        factors = design.known_levels
        faults = [*self.key_faults(), *select_faults(self.select, factors), *self.role_faults(factors)]
        faults += self.over_faults(factors)
        if not faults:
            faults += [*self.drawn_faults(design), *self.level_faults(factors)]
        if metric_family(self.value) not in METRICS_AND_COSTS:
            faults.append((("value",), unknown_metric(self.value)))
        elif is_target(self.value) and self.is_course:
            what = f"{self.value} is one number for each training"
            faults.append((("value",), f"{what}: expected a factor as x, got '{self.x}'"))
        name = getattr(self, "published", None)
        return [*faults, *([] if name is None else published_faults(name, paper))]

    def key_faults(self) -> Iterator[KeyFault]:
        """Yield a fault for each key that is set without another key that it needs."""
        if self.rows is not None and self.panels is None:
            yield ("rows",), "rows of panels need columns: add the key panels"

    def role_faults(self, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
        """Yield a fault if a key such as `x` has an unknown name, or the same name as another key."""
        named = (((role,), name) for role, name in self.roles.items())
        yield from factor_faults(named, factors, self.special)

    def drawn_faults(self, design: Design) -> Iterator[KeyFault]:
        """Yield a fault if a figure would have too many panels side by side.

        Also yield a fault if a mark (such as a point) would average over several levels of a factor. They are
        separate if the factor is on an axis or distinguishes lines or panels, or if each cell has a mark.
        """
        levels = selected_levels(self.select, design.factors)
        if self.rows is not None and self.panels in levels and len(levels[self.panels]) > MAX_COLUMNS:
            count = len(levels[self.panels])
            message = f"expected at most {MAX_COLUMNS} levels side by side, got {count}: select some of them"
            yield ("panels",), message
        shown = [name for name in (*self.roles.values(), *self.over) if name in levels]
        mixed = mixed_levels_fault(shown, self.select, design, over_hint=_PICK_HINT)
        if mixed and "cell" not in self.count_places:
            yield ("x",), mixed

    def curve(self, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
        """Return the figure that these keys describe, with the results of a study."""
        from ..subject import ResultSubject  # noqa: PLC0415 -- the keys are checked without it
        from .samples import collect_samples  # noqa: PLC0415 -- as above

        subject = ResultSubject(study, self.select, outcomes)
        shown_factors = [name for name in self.roles.values() if name in subject.levels]
        picked = pick_cells(self, subject)
        samples = collect_samples(self, subject, picked, metrics)
        cells = FigureCells(spec=self, subject=subject, samples=samples)
        panels = self.split_panels(cells.panels(), cells.metric)
        fixed = subject.fixed(self.roles.values())
        caption = self.caption or self._default_caption(cells, fixed)
        shown = [each for each in (cells.metric, cells.x_metric) if each]
        own_scales = len(panels) > 1 and self.has_own_scales(cells.metric)
        nothing = f"no trial is {'probed' if samples.awaits_probe else 'done'}"
        return Curve(
            name=self.name,
            caption=one_line(caption).removesuffix("."),
            notes=(
                *subject.fixed_note(fixed if self.caption else {}),
                *subject.difference(shown),
                *pick_note(self, subject, picked, shown_factors),
                *(
                    self.value_notes(panels, cells)
                    if len(samples.frame)
                    else (f"Nothing to draw: {nothing}.",)
                ),
                *self.mark_notes(panels, study.paper),
                *(("Each panel has scales of its own.",) if own_scales else ()),
                *cells.index_notes(panels),
                *((_WHOLE_DEV,) if samples.lacks_whole_dev else ()),
                *subject.omitted(samples.gaps, len(samples.trials)),
            ),
            x=cells.x_axis(),
            y=self.y_axis(cells),
            panels=panels,
            provenance=subject.provenance(samples.trials),
            own_scales=own_scales,
        )

    def content(self, cells: FigureCells, frame: pl.DataFrame, panel: int) -> Content:
        """Return what one panel draws. `frame` has the rows of this panel's values."""
        raise NotImplementedError

    def has_own_scales(self, metric: Metric) -> bool:
        """Return whether each panel has its own scales. Such panels are not comparable by eye."""
        del metric
        return False

    def split_panels(self, panels: tuple[Panel, ...], metric: Metric) -> tuple[Panel, ...]:
        """Return the panels to draw. Some kinds of figures split or change them."""
        del metric
        return panels

    def y_axis(self, cells: FigureCells) -> Axis:
        """Return the vertical axis, with the title of the metric."""
        metric = cells.metric
        return Axis(title=metric.axis_title or metric.title, log=getattr(self, "logy", False))

    def center_mark(self, content: Content) -> str:
        """Return the name of the mark that shows the centre of several values, such as "Bar"."""
        raise NotImplementedError

    def mark_notes(self, panels: Sequence[Panel], paper: str | None) -> Iterator[str]:
        """Yield notes on what marks such as whiskers mean. The mark for the mean has its own note."""
        del panels, paper
        yield from ()

    def value_notes(self, panels: Sequence[Panel], cells: FigureCells) -> Iterator[str]:
        """Yield a note on the marks, such as "Bar: mean of 3 seeds"."""
        counts = cells.samples.frame.group_by(self.count_places).len()["len"]
        low, high, what = min(counts), max(counts), self.center_mark(panels[0].content)
        if high == 1:
            yield f"{what}: one seed."
            return
        shown: Spread = getattr(self, "spread", "sd")
        part = f"; {self.interval_mark}: {SPREADS[shown]}." if self.interval_mark else "."
        yield f"{what}: mean of {number_range([low, high])} seeds{part}"

    count_places: ClassVar[tuple[str, ...]] = ("panel", "series", "x", "y")
    """the columns that identify a mark, such as a point or a bar; values with equal entries share one mark"""

    def _default_caption(self, cells: FigureCells, fixed: Mapping[str, Level]) -> str:
        """Return a default caption such as `Loss, by epoch; task sort`: metric, axes and fixed factors."""
        what = cells.metric.axis_title or cells.metric.title
        axes = [name for name in (self.roles.get("y"), self.x) if name is not None]
        over = " and ".join(in_sentence(cells.axis_title(name)).partition(",")[0] for name in axes)
        by = f"{',' if ',' in what else ''} {self.caption_word} {over}"
        return "; ".join([what + by, *(f"{name} {level_name(level)}" for name, level in fixed.items())])

    caption_word: ClassVar[str] = "by"
    """the word between the metric and the axes in a caption"""


class SeriesFigure(CellFigure):
    """Base class of figures that group cells in series. A series is drawn as a line, or in one colour."""

    series: str | None = None
    """the factor with one line for each level"""
    spread: Spread = "sd"
    """what bands and whiskers show: standard deviation, standard error, or 95 % confidence interval"""
    logx: bool = False
    """whether the x axis is logarithmic; 0 is drawn left of its start"""
    logy: bool = False
    """whether the metric's axis is logarithmic"""
    accent: Any = None
    """the only level in colour: of `series`, or of the `x` of bars and boxes"""


@dataclass(frozen=True, kw_only=True)
class FigureCells:
    """The values of one figure, with the texts and axis positions for drawing them."""

    spec: CellFigure
    subject: ResultSubject
    samples: Samples

    @cached_property
    def metric(self) -> Metric:
        """Return the metric of the figure, with a title that suits its trials."""
        over_index = not {*INDEX_AXES}.isdisjoint(self.spec.roles.values())
        metric = find_metric(self.spec.value)
        return with_true_title(metric, self.subject.settings, over_index=over_index)[0]

    @cached_property
    def x_metric(self) -> Metric | None:
        """Return the metric on the horizontal axis, if it shows one."""
        return self.subject.metric(self.spec.x)[0] if self.spec.x in METRICS_AND_COSTS else None

    @property
    def levels(self) -> Mapping[str, tuple[Level, ...]]:
        """Return the selected levels of every factor, in the order of the study."""
        return self.subject.levels

    def panels(self) -> tuple[Panel, ...]:
        """Return the panels of the figure, row by row.

        There is one panel for each combination of a level of `panels` and a level of `rows`. Without these
        keys there is a single panel.
        """
        frame, columns = self.samples.frame, self.full_names(self.spec.panels) or ("",)
        places = product(self.full_names(self.spec.rows) or ("",), columns)
        return tuple(
            Panel(
                title=title,
                row=row,
                content=self.spec.content(self, frame.filter(panel=number), number),
            )
            for number, (row, title) in enumerate(places)
        )

    def x_axis(self) -> Axis:
        """Return the horizontal axis of the figure."""
        ticks = self.positions[1] if self.spec.kind in ("line", "box") else ()
        return Axis(title=self.axis_title(self.spec.x), log=getattr(self.spec, "logx", False), ticks=ticks)

    def axis_title(self, name: str) -> str:
        """Return the title of an axis. The axis shows an index, a metric, a cost, a time or a factor."""
        if name in INDEX_AXES:
            return dict(zip(INDEX_AXES, self.metric.index_titles, strict=False)).get(name, "Index")
        if self.spec.is_course and name == self.spec.x:
            return TIME_AXES[name]
        if name in METRICS_AND_COSTS:
            shown = self.x_metric or METRICS_AND_COSTS[name]
            return shown.axis_title or shown.title
        return one_line(name)

    def full_names(self, factor: str | None) -> tuple[str, ...]:
        """Return the displayed names of a factor's levels, such as `conv` or, for a number, `width 64`."""
        return named_levels(factor or "", self.levels.get(factor or "", ()))

    @cached_property
    def accent(self) -> int | None:
        """Return the index of the level that is drawn in colour; None without such a level."""
        keys = [level_key(level) for level in self.levels.get(self.spec.accent_factor or "", ())]
        accent = getattr(self.spec, "accent", None)
        wanted = None if accent is None else level_key(accent)
        return keys.index(wanted) if wanted in keys else None

    @cached_property
    def positions(self) -> tuple[Mapping[object, float], tuple[tuple[float, str], ...]]:
        """Return the positions on the horizontal axis, then the ticks.

        The positions are a mapping from entries in the column `x`. If the ticks are empty, the axis gets
        ticks at round numbers.
        """
        name = self.spec.x
        if self.spec.is_course:
            return {x: float(x) for x in self.samples.frame["x"].unique()}, ()
        if name in INDEX_AXES:
            from .samples import index_positions  # noqa: PLC0415 -- as above

            return index_positions(self.samples.frame["x"].unique().sort().to_list())
        if self.spec.kind == "box":
            return {number: float(number) for number in range(len(self.levels[name]))}, ()
        numbers = [float(level) for level in self.levels[name]]
        texts = map(level_text, self.levels[name])
        return dict(enumerate(numbers)), tuple(sorted(zip(numbers, texts, strict=True)))

    def placeholders(self, panel: int) -> dict[tuple[object, object], str]:
        """Return the texts in place of missing values in a panel, by row and column."""
        found = self.samples.placeholders.items()
        return {(y, x): word for (at, _, x, y), word in found if at == panel}

    def index_notes(self, panels: Sequence[Panel]) -> Iterator[str]:
        """Yield the notes of a heat map on a second metric, for each panel."""
        noted = self.samples.noted
        if noted:
            title = find_metric(find_metric(self.spec.value).noted).title
            names = [" ".join(filter(None, (panel.row, panel.title))) for panel in panels]
            parts = (f"{names[panel]} {', '.join(each.values())}".strip() for panel, each in noted.items())
            if any(getattr(panel.content, "pairs", ()) for panel in panels):
                yield "A line below two columns marks a pair in this list."
            yield f"{title}: {'; '.join(parts)}."

    def published_value(self, *, panel: int, x: int) -> float | None:
        """Return the paper's number for one mark of the figure, if there is one.

        The mark has the indices of its panel and of its level of `x`. Any of its levels may be the paper's
        row, and any its column (see `match_published_keys`); a table with one column is matched only by its
        rows.
        """
        key = (self.subject.study.paper or "", getattr(self.spec, "published", None) or "")
        if (paper := published_tables().get(key)) is None:
            return None
        rows = list[str]()
        columns = list(paper.columns) if len(paper.columns) == 1 else []
        # panels are numbered row by row
        row, column = divmod(panel, len(self.levels.get(self.spec.panels or "", ())) or 1)
        at = {self.spec.rows: row, self.spec.panels: column, self.spec.x: x}
        for factor, levels in self.levels.items():
            # a level is known from the position of the mark, or because it is the only one
            number = at.get(factor, 0 if len(levels) == 1 else None)
            if number is None:
                continue
            texts = [level_text(level) for level in levels]
            for keys, known in ((rows, paper.rows), (columns, paper.columns)):
                keys += [
                    key for level, key in match_published_keys(texts, known).items() if level == texts[number]
                ]
        cells = (paper.cells.get((one, other)) for one in rows for other in columns)
        return next((cell.value for cell in cells if cell is not None), None)


def mean_interval(values: Sequence[float], spread: Spread, metric: Metric) -> Interval:
    """Return the mean of a metric's values, and the lower and upper end of its interval.

    Both ends are None for a single value. The result does not depend on the order of the values. The interval
    ends at the bounds of the metric, such as 0 for a loss.
    """
    found = estimate(values, spread=spread).within(metric.bounds)
    return Interval(found.value, found.low, found.high)


def grouped_values(frame: pl.DataFrame, *keys: str, of: tuple[str, ...] = ("value",)) -> list[tuple]:
    """Group the rows of a frame, and return the keys and values of each group.

    `keys` are the columns by which the rows are grouped. The values come from the column or columns in `of`,
    as a sorted list.
    """
    rows = frame.select(*keys, *of).sort(*keys, *of).iter_rows()
    count = len(keys)
    return [
        (*key, [row[count] if len(of) == 1 else row[count:] for row in group])
        for key, group in groupby(rows, key=lambda row: row[:count])
    ]
