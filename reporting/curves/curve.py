"""The data of a figure in frozen dataclasses without matplotlib: every point, interval, text and tick."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from ...errors import ActivememError, describe_value, hint
from ...studies.presentation.kinds import CurveKind
from ...studies.schema.factors import one_line
from ...studies.schema.settings import Level
from ...studies.text.units import plural
from .figure_format import FigureFormat

if TYPE_CHECKING:
    from ...studies.catalog.metrics import Metric
    from ..subject import Observations, ResultSubject
    from .draw.panel import PanelLayout, Plot
    from .figure_cells import FigureCells

Ticks = tuple[tuple[float, str], ...]
"""The positions on an axis that have a text, with their texts."""


class CurveError(ActivememError):
    """Error for a figure whose specification has faults. The message lists all faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a figure.

    `ticks` are pairs of a position and its label. An axis without `ticks` gets ticks at round numbers when it
    is drawn. A logarithmic axis shows 0 as one more position before the smallest number.
    """

    title: str
    log: bool = False
    ticks: Ticks = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a figure: the average of `n` values, and the ends `low` and `high` of its interval.

    The ends are None for too few values. The values do not include `diverged` seeds.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    n: int = 1
    diverged: int = 0

    @property
    def numbers(self) -> tuple[float, ...]:
        """Return the value and the ends of the interval that are known."""
        return tuple(each for each in (self.y, self.low, self.high) if each is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a figure: the points of one series, from left to right.

    `number` is the index of the line's level. It determines the stroke, so that a level looks the same in
    every panel.
    """

    name: str
    number: int = 0
    points: tuple[Point, ...]
    accent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: the mean of the values at one level, its printed `text`, and the ends of its interval."""

    name: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    published: float | None = None
    accent: bool = False

    @property
    def numbers(self) -> tuple[float, ...]:
        """Return the mean, the ends of its interval and the paper's number, as far as they are known."""
        every = (self.value, self.low, self.high, self.published)
        return tuple(each for each in every if each is not None)


class Content:
    """Base class of the contents of a panel, such as lines. Each kind of figure has its own subclass."""

    __slots__ = ()

    shows_title: ClassVar[bool] = False
    """whether the content itself shows the metric's title"""

    @property
    def is_accented(self) -> bool:
        """Return whether the only line of the panel has the accent colour."""
        return False

    @classmethod
    def measure(cls, curve: Curve, contents: Sequence[Any]) -> PanelLayout:
        """Return the margins, sizes and scales that all panels of a figure share."""
        raise NotImplementedError

    def draw(self, plot: Plot, curve: Curve) -> None:
        """Draw the content of a panel into a plot."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One plot of a figure.

    All panels of a figure are of the same kind. A single panel has no title. `row` names its row of panels,
    if the rows are the levels of a factor.
    """

    title: str
    row: str = ""
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A figure: panels with caption and notes.

    The scales of the axes are common to all panels, unless each panel has `own_scales`. `notes` explain the
    centre, the interval, the number of seeds, and omissions.
    """

    name: str
    caption: str
    notes: tuple[str, ...]
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]
    provenance: str
    own_scales: bool = False

    def render(self, form: FigureFormat = "svg") -> bytes:
        """Return the figure as svg, png or pdf."""
        if form not in (known := get_args(FigureFormat)):
            raise CurveError(
                f"form: expected {', '.join(known)}, got {describe_value(form)}{hint(str(form), known)}"
            )
        return import_module(".draw.figure", __package__).draw(self, form)  # loads matplotlib

    def measure_width(self) -> float:
        """Return the width of the figure's file in points."""
        return import_module(".draw.figure", __package__).measure_width(self)  # loads matplotlib

    def render_inline(self) -> str:
        """Return the figure as an SVG element of a page, whose marks show their values on hovering."""
        return import_module(".draw.inline", __package__).draw_inline(self)  # loads matplotlib

    def point_words(self, point: Point, name: str = "", at: str = "") -> str:
        """Return the values of a point as text, with the name of its series.

        `at` is the name of its place on the horizontal axis, if it is not a number. Units are left out.
        """
        across, up = (axis.title.partition(",")[0] for axis in (self.x, self.y))
        at = at or dict(self.x.ticks).get(point.x) or format_four_digits(point.x)
        numbers = f"{across} {at}: {up} {format_four_digits(point.y)}{_interval_words(point)}"
        seeds = f", n = {point.n}" if point.n > 1 else ""
        seeds += f", {point.diverged} diverged" if point.diverged else ""
        return f"{name}, {numbers}{seeds}" if name else f"{numbers}{seeds}"

    def bar_words(self, bar: Bar) -> str:
        """Return the values of a bar as text, with its name."""
        published = "" if bar.published is None else f"; published {format_four_digits(bar.published)}"
        return f"{bar.name}: {bar.text}{_interval_words(bar)}{published}"

    def _repr_svg_(self) -> str:
        return self.render("svg").decode()

    def __repr__(self) -> str:
        return f"<Curve {self.name}: {plural(len(self.panels), 'panel')}>"

    @property
    def columns(self) -> int | None:
        """Return the number of panels side by side; None without row names, where the layout chooses it."""
        return sum(panel.row == self.panels[0].row for panel in self.panels) if self.panels[0].row else None


def format_four_digits(number: float) -> str:
    """Return a number with four digits, or all digits before the point."""
    text = f"{number:,.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"
    return text.replace("-", "−")


def _interval_words(of: Point | Bar) -> str:
    if of.low is None or of.high is None:
        return ""
    return f" [{format_four_digits(of.low)}, {format_four_digits(of.high)}]"


def subject_curve(
    spec: CurveKind,
    subject: ResultSubject,
    found: Observations | FigureCells,
    *,
    caption: str,
    fixed: Mapping[str, Level],
    metrics: Sequence[Metric],
    notes: Iterable[str],
    x: Axis,
    y: Axis,
    panels: tuple[Panel, ...],
    own_scales: bool = False,
    trials: Collection[str] | None = None,
) -> Curve:
    """Return a figure of `trials` (default: all), with notes on properties that their numbers share.

    `caption` is the default, which names the `fixed` levels. A caption of the study file does not, so a note
    does. The other notes are on the `metrics`, then `notes` about the marks, then on trials without a value.
    """
    return Curve(
        name=spec.name,
        caption=one_line(spec.caption or caption).removesuffix("."),
        notes=(
            *subject.fixed_note(fixed if spec.caption else {}),
            *subject.difference(metrics),
            *notes,
            *subject.omitted(found.gaps, found.planned),
        ),
        x=x,
        y=y,
        panels=panels,
        provenance=subject.provenance(trials),
        own_scales=own_scales,
    )
