"""A figure as plain frozen data: every point, interval, word and tick, for any renderer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...errors import ActivememError
from ...studies.text.units import plural


class CurveError(ActivememError):
    """A figure cannot be made as it is specified; the message has every fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a figure; `ticks` are positions with their texts, empty for round numbers.

    A logarithmic axis shows 0 as one more position before the smallest number.
    """

    title: str
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The centre of `n` values at a position; without an interval if there are too few."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    n: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The points of one series from left to right, and what a paper printed for it.

    `number` is that of its level among those not accented, so that it looks the same in every panel.
    """

    name: str
    number: int = 0
    points: tuple[Point, ...]
    published: tuple[tuple[float, float], ...] = ()
    accent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The series of one panel, those without a point left out; `context` has others, for the background.

    `ranked` are lines that end together: their names stand from the top down with a piece of each.
    """

    lines: tuple[Line, ...]
    context: tuple[Line, ...] = ()
    ranked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The centre of one cell, or of all at one level, with its interval; `text` is its number, or a word."""

    name: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    published: float | None = None
    accent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One bar for every level, in the order of the study; `points` where bars would all look the same."""

    bars: tuple[Bar, ...]
    points: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Quartiles of `n` values, whiskers to the last value within 1.5 interquartile ranges, and outliers.

    Fewer than MIN_BOX_VALUES are all in `values`, without quartiles. If there are none, `text` says why.
    """

    name: str
    at: float  # the number of its level, or the place of its index
    n: int
    text: str = ""
    quartiles: tuple[float, float, float] | None = None
    whiskers: tuple[float, float] | None = None
    values: tuple[float, ...] = ()  # beyond the whiskers, or all of few
    accent: bool = False


MIN_BOX_VALUES = 10
"""Fewer values than these are drawn one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """One box for every level in rows, or side by side if they stand at the indices of a metric.

    Rows are in the order of the study, with a box for each level in each panel.
    """

    boxes: tuple[Box, ...]
    rows: bool


MAX_LABELLED_CELLS = 12
"""A heat map with more rows or columns than these has no room for numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A value for every row and column; None, with a word as its text, if there is none."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # by row, then column
    texts: tuple[tuple[str, ...], ...]
    ends: tuple[tuple[float, str], tuple[float, str]]  # of the shades, lowest and highest, in all panels
    pairs: tuple[int, ...] = ()  # the columns that are marked together with the next one, counted from 0

    @property
    def is_readable(self) -> bool:
        """Whether the cells are few enough to write a number into each."""
        return len(self.rows) <= MAX_LABELLED_CELLS and len(self.columns) <= MAX_LABELLED_CELLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Cells by cost and result, joined if they belong to one series, and the Pareto front."""

    lines: tuple[Line, ...]
    front: tuple[Point, ...]  # from left to right
    steps: Literal["post", "pre"]  # whether the front holds to the right of its points, or to their left


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorMeans:
    """The means at the levels of one factor, and what is said of its effect."""

    name: str
    text: str
    means: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The means of every factor, and the mean of all values, None without any."""

    factors: tuple[FactorMeans, ...]
    center: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """A line for each level of one factor over the levels of another, whose names stand side by side.

    A point's `x` is the number of its level.
    """

    levels: tuple[str, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A law, y = offset + coefficient · x ** exponent, with half of the exponent's interval, and its line."""

    coefficient: float
    exponent: float
    half_width: float | None
    line: tuple[Point, ...]
    offset: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSeries:
    """The cells of one series from the cheapest on, and the law through them; None if there is none."""

    name: str
    number: int
    points: tuple[Point, ...]
    law: Law | None
    accent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The series of a figure of power laws."""

    series: tuple[ScalingSeries, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTrace:
    """The points of a search in order, the best of them so far as steps, and the baseline, if there is one.

    The baseline's interval is what as many points as there are would come to by chance.
    """

    points: tuple[Point, ...]
    best: tuple[Point, ...]
    baseline: Point | None = None


Content = Lines | Bars | Boxes | Matrix | Cloud | Effects | Interaction | Scaling | PointTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One of the plots of a figure, all of one kind and on the same axes; a single one has no title.

    `row` names the row of panels that it stands in, where these are the levels of a factor.
    """

    title: str
    row: str = ""
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A figure: panels on common axes, with the sentences around them.

    `notes` say what the centre and the interval are, over how many seeds, and what is left out.
    """

    name: str
    caption: str
    notes: tuple[str, ...]
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]
    provenance: str

    def __repr__(self) -> str:
        return f"<Curve {self.name}: {plural(len(self.panels), 'panel')}>"

    @property
    def columns(self) -> int | None:
        """How many panels stand side by side, where rows of panels have names."""
        return sum(panel.row == self.panels[0].row for panel in self.panels) if self.panels[0].row else None
