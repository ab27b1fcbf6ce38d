"""The base class of figures that show a study's cells, which are combinations of factor levels.

The base class has the common keys, the checks of these keys, and captions. The kinds `line`, `bar`, `box`,
`heat` and `pareto` add their own keys and make the panels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from ...studies.catalog.metrics import (
    METRICS_AND_COSTS,
    Metric,
    is_target,
    is_timed,
    metric_family,
    unknown_metric,
)
from ...studies.catalog.published import published_faults
from ...studies.presentation.kinds import (
    CurveKind,
    KeyFault,
    Spread,
    factor_faults,
    mixed_levels_fault,
    select_faults,
    selected_levels,
)
from ...studies.schema.design import Design
from ...studies.schema.settings import Level
from ..picked_levels import PickKeys
from ..statistics.estimates import Interval, estimate
from .curve import INDEX_AXES, TIME_AXES, Curve

if TYPE_CHECKING:
    import polars as pl

    from ...studies.study import Study
    from .figure_cells import FigureCells

MAX_COLUMNS = 6
"""The maximum number of panels side by side."""

_PICK_HINT = 'let a metric pick: over = {}, pick_by = "dev_loss"'

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

    special: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Names that a role can have instead of a factor; they take precedence over factors with the same
    name."""

    marks_cells: ClassVar[bool] = False
    """whether each cell has a mark of its own, at its values of `x` and `value`"""

    @property
    def roles(self) -> dict[str, str]:
        """Return the values of the keys `x`, `y`, `series`, `panels` and `rows` that are set, by key."""
        found = {role: getattr(self, role, None) for role in _ROLES}
        return {role: name for role, name in found.items() if name is not None}

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
        factor_roles = (role for role in self.roles if role != "x" or not self.marks_cells)
        named = (((role,), self.roles[role]) for role in factor_roles)
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
        if mixed and not self.marks_cells:
            yield ("x",), mixed

    def make_curve(self, cells: FigureCells) -> Curve:
        """Return the figure of these cells: their panels, with notes on what the marks show."""
        raise NotImplementedError

    def curve(self, study: Study, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> Curve:
        """Return the figure that these keys describe, with the results of a study."""
        from ..subject import ResultSubject  # noqa: PLC0415 -- the keys are checked without it
        from .figure_cells import collect_cells  # noqa: PLC0415 -- as above

        return self.make_curve(collect_cells(self, ResultSubject(study, self.select, outcomes), metrics))


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


def mean_interval(values: Sequence[float], spread: Spread, metric: Metric) -> Interval:
    """Return the mean of a metric's values, and the lower and upper end of its interval.

    Both ends are None for a single value. The result does not depend on the order of the values. The interval
    ends at the bounds of the metric, such as 0 for a loss.
    """
    found = estimate(values, spread=spread).within(metric.bounds)
    return Interval(found.value, found.low, found.high)


def grouped_values(frame: pl.DataFrame, *keys: str, of: tuple[str, ...] = ("value",)) -> Iterator[tuple]:
    """Group the rows of a frame, and yield the keys and values of each group.

    `keys` are the columns by which the rows are grouped. The values come from the column or columns in `of`,
    as a sorted list.
    """
    rows, count = frame.select(*keys, *of).sort(*keys, *of).iter_rows(), len(keys)
    for key, group in groupby(rows, key=lambda row: row[:count]):
        yield (*key, [row[count] if len(of) == 1 else row[count:] for row in group])
