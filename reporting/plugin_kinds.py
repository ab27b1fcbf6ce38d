"""Base classes of kinds of tables and figures from plug-ins.

A plug-in computes rows or draws into matplotlib axes. Everything else is the same as in built-in kinds: which
trials are shown, the caption, missing trials, footnotes, formats and files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import polars as pl

from ..plugins import missing_library, plugin_errors
from ..studies.catalog.metrics import Metric
from ..studies.catalog.published import PublishedNumbers
from ..studies.presentation.kinds import (
    CurveKind,
    KeyFault,
    ResultKeys,
    TableKind,
    describe_levels,
    factor_faults,
    metric_faults,
    select_faults,
)
from ..studies.schema.design import Design
from ..studies.schema.factors import SEED, level_names, level_text
from ..studies.study import Study
from .curves.curve import Axis, Content, Curve, Panel, subject_curve
from .curves.draw.panel import PanelLayout, Plot, Scale
from .curves.draw.style import DIM, TICK, line_cycle
from .statistics.estimates import Interval
from .subject import Observations, ResultSubject
from .tables.differences import caption_start
from .tables.table import NOT_RUN, Cell, CellStatus, ColumnKey, Footnotes, Table, TableExtras, interval_cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SETTINGS: dict[Any, float] = {"font.size": TICK, "lines.markersize": 4.0}
"""The settings of matplotlib while a plug-in draws, besides those of all figures."""

MadeT = TypeVar("MadeT")

_FACTOR_KEYS = ("rows", "columns", "series", "x", "panels", "tasks")
"""The keys whose values are names of factors, in kinds that have them."""


class ShownResults:
    """The results that a plug-in's table or figure shows: those of the trials that `select` keeps."""

    def __init__(self, subject: ResultSubject) -> None:
        self._subject = subject

    @property
    def factors(self) -> dict[str, dict[str, str]]:
        """The factors with several levels in the shown cells, without `seed`.

        Each maps the texts of its levels, as in the columns of `values`, to their names in tables.
        """
        return {
            factor: dict(zip(map(level_text, levels), level_names(levels), strict=True))
            for factor, levels in self._subject.varied.items()
        }

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the shown cells."""
        return tuple(int(seed) for seed in self._subject.levels[SEED])

    @property
    def cells(self) -> int:
        """The number of shown cells, with and without results."""
        return len({trial.cell for trial in self._subject.trials})

    def metric(self, name: str) -> Metric:
        """Return a metric: its `title`, `higher_is_better`, `bounds`, and `format(value)`."""
        return self._subject.metric(name)

    def values(self, metric: str) -> pl.DataFrame:
        """Return a row for each shown cell and seed that has a value of this metric.

        The columns are `trial` (its id), one for each of `factors` with the texts of levels, `seed` and
        `value`. Two cells with equal settings share a trial.
        """
        found = self._subject.observe(metric).values
        columns: dict[str, Sequence[object]] = {"trial": [trial.id for trial, _ in found]}
        for factor in self.factors:
            columns[factor] = [level_text(trial.levels[factor]) for trial, _ in found]
        columns |= {SEED: [trial.seed for trial, _ in found], "value": [value for _, value in found]}
        texts = dict.fromkeys(columns, pl.String)
        return pl.DataFrame(columns, schema={**texts, SEED: pl.Int64, "value": pl.Float64})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCell:
    """A cell of a plug-in's table: a value with the ends of its interval, or a text.

    `text` replaces the formatted value. `count` is the number of values behind it. `note` becomes a footnote.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""
    count: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """A row of a plug-in's table; `group` is the heading above it. A cell may be empty (None)."""

    name: str
    cells: Sequence[ResultCell | None]
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """The content of a plug-in's table.

    `summary` follows the metric's title in the caption. `notes` are sentences on how the numbers were found.
    `corner` is the heading above the rows' names.
    """

    columns: Sequence[str]
    rows: Sequence[ResultRow]
    summary: str = ""
    notes: Sequence[str] = ()
    corner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureContent:
    """The content of a plug-in's figure: a function that draws into matplotlib axes of a size in points.

    `summary` follows the metric's title in the caption, and `notes` are sentences below the figure. `data`
    has the drawn numbers, which `curve render --json` prints.
    """

    draw: Callable[[Axes], None]
    data: pl.DataFrame | None = None
    width: float = 300.0
    height: float = 180.0
    summary: str = ""
    notes: Sequence[str] = ()


class PluginKind(ResultKeys):
    """Base class of kinds from plug-ins; its fields are keys of `[[table]]` or `[[curve]]`.

    One of the keys is `value`: a metric, or several. The keys `rows`, `columns`, `series`, `x`, `panels` and
    `tasks`, as far as the class has them, name factors.
    """

    extra: ClassVar[str] = ""
    """The extra of the plug-in's package with the libraries that the kind needs, as in `activemem[stats]`."""

    def faults(self, design: Design, published: PublishedNumbers) -> list[KeyFault]:
        """Return the faults of the keys: unknown names, and what `check` yields."""
        factors = design.known_levels
        named = list[tuple[tuple[str | int, ...], str]]()
        for key in _FACTOR_KEYS:
            each = getattr(self, key, None)
            named += [((key,), each)] if isinstance(each, str) else []
            named += (
                [((key, place), name) for place, name in enumerate(each)] if isinstance(each, tuple) else []
            )
        faults = [
            *select_faults(self.select, factors),
            *metric_faults([name for _, name in self.named_metrics()]),
            *factor_faults(named, factors),
        ]
        return faults or [*self.level_faults(factors), *self.check(design)]

    def check(self, design: Design) -> Iterable[KeyFault]:
        """Yield further faults of the keys, each with the path of its key: `(("x",), "expected …")`."""
        return ()

    def _make(self, make: Callable[[], MadeT]) -> MadeT | str:
        """Return what a method of the plug-in returns; a sentence if it lacks a library.

        Raise PluginError, with the plug-in's file and line, for any other exception.
        """
        with plugin_errors("kind", self.kind, type(self)):
            try:
                return make()
            except ModuleNotFoundError as error:
                return missing_library(error, self.extra)


class PluginTable(PluginKind, TableKind, ABC):
    """Base class of kinds of tables from plug-ins."""

    @abstractmethod
    def fill(self, results: ShownResults) -> TableContent:
        """Compute the rows of the table."""

    def table(self, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
        """Make the table: the plug-in's rows, with caption, footnotes and provenance."""
        subject, notes = ResultSubject(study, self.select, outcomes), Footnotes()
        metrics, fixed = _metrics(self, subject), subject.fixed((*subject.varied, SEED))
        made = self._make(lambda: self.fill(ShownResults(subject)))
        if isinstance(made, str):
            rows = [ResultRow(name=NOT_RUN, cells=[ResultCell(text=NOT_RUN)])]
            made = TableContent(columns=[metrics[0].name], rows=rows, summary=made.removesuffix("."))
        summary = ", at ".join(filter(None, (made.summary, describe_levels(fixed))))
        start, found = caption_start(self.caption, metrics), _observations(subject, metrics)
        return Table(
            name=self.name,
            caption=f"{start}: {summary}." if summary else f"{start}.",
            remarks=(*subject.difference(metrics), *subject.omitted(found.gaps, found.planned)),
            notes=tuple(made.notes),
            corner=made.corner,
            rows=tuple(row.name for row in made.rows),
            columns=tuple(made.columns),
            cells=tuple(tuple(_cell(cell, metrics[0], notes) for cell in row.cells) for row in made.rows),
            footnotes=notes.as_tuple(),
            provenance=subject.provenance(),
            keys=tuple(
                ColumnKey(metric=",".join(each.name for each in metrics), level=name) for name in made.columns
            ),
            groups=tuple(row.group for row in made.rows),
            spread="ci",
        )


def _metrics(spec: PluginKind, subject: ResultSubject) -> list[Metric]:
    return [subject.metric(name) for _, name in spec.named_metrics()]


def _observations(subject: ResultSubject, metrics: Sequence[Metric]) -> Observations:
    """Return the values of several metrics together, for the sentence about missing ones."""
    found = [subject.observe(metric.name) for metric in metrics]
    gaps = sum((each.gaps for each in found), Counter[str]())
    return Observations(values=tuple(value for each in found for value in each.values), gaps=gaps, whys={})


def _cell(cell: ResultCell | None, metric: Metric, notes: Footnotes) -> Cell:
    if cell is None:
        return Cell(status=CellStatus.DONE)
    marks = (notes.mark(cell.note),) if cell.note else ()
    if cell.value is None:
        status = CellStatus.MISSING if cell.text == NOT_RUN else CellStatus.DONE
        return Cell(status=status, text=cell.text, marks=marks)
    found = Interval(cell.value, cell.low, cell.high)
    return interval_cell(found, metric.format, cell.count, text=cell.text, marks=marks)


class PluginFigure(PluginKind, CurveKind, ABC):
    """Base class of kinds of figures from plug-ins."""

    @abstractmethod
    def plot(self, results: ShownResults) -> FigureContent:
        """Compute the figure, and return the function that draws it."""

    def curve(self, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
        """Make the figure: the plug-in's drawing, with caption, notes and provenance."""
        subject = ResultSubject(study, self.select, outcomes)
        shown, fixed = _metrics(self, subject), subject.fixed((*subject.varied, SEED))
        made = self._make(lambda: self.plot(ShownResults(subject)))
        if isinstance(made, str):
            made = FigureContent(draw=lambda axes: axes.set_axis_off(), height=10, notes=[made])
        drawing = PluginDrawing(
            data=[] if made.data is None else made.data.to_dicts(), content=made, kind=self.kind
        )
        title = shown[0].axis_title or shown[0].title
        caption = f"{title}{',' if ',' in title else ''} {made.summary}" if made.summary else title
        return subject_curve(
            self,
            subject,
            _observations(subject, shown),
            caption="; ".join(filter(None, (caption, describe_levels(fixed)))),
            fixed=fixed,
            metrics=shown,
            notes=made.notes,
            x=Axis(title=""),
            y=Axis(title=""),
            panels=(Panel(title="", content=drawing),),
        )


@dataclass(kw_only=True)
class PluginDrawing(Content):
    """The axes of a plug-in's figure, and as its only field the numbers that the figure shows."""

    data: Sequence[Mapping[str, Any]]
    content: InitVar[FigureContent]
    kind: InitVar[str]

    def __post_init__(self, content: FigureContent, kind: str) -> None:
        self.draw_axes, self.size, self.owner = content.draw, (content.width, content.height), kind

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Self]) -> PanelLayout:
        """Return the layout of the plot, with margins for its tick labels and texts."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 -- slow to load
        from matplotlib.figure import Figure  # noqa: PLC0415 -- as above

        width, height = contents[0].size
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        axes = figure.add_axes((0, 0, 1, 1))
        contents[0].draw_into(axes)
        box = axes.get_tightbbox(FigureCanvasAgg(figure).get_renderer())
        assert box is not None, "the axes are visible"
        return PanelLayout(
            left=max(-box.x0, 0.0) + 2,
            right=max(box.x1 - width, 0.0) + 2,
            bottom=max(-box.y0, 0.0) + 4,
            width=width,
            min_width=width,
            height=height,
            x=Scale(low=0, high=1),
            y=Scale(low=0, high=1),
        )

    def draw(self, plot: Plot, curve: Curve) -> None:
        """Draw the plug-in's figure into a plot."""
        self.draw_into(plot.axes)

    def draw_into(self, axes: Axes) -> None:
        """Draw into axes in the style of all figures; raise PluginError for an exception of the plug-in."""
        from matplotlib import rc_context  # noqa: PLC0415 -- as above

        axes.spines[["top", "right"]].set_visible(False)
        axes.set_prop_cycle(line_cycle())
        with rc_context(_SETTINGS), plugin_errors("kind", self.owner, self.draw_axes):
            self.draw_axes(axes)
        for label in (axes.xaxis.label, axes.yaxis.label):
            label.set(size=TICK, color=DIM)
