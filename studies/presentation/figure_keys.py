"""Keys of figures that show a study's cells, which are combinations of factor levels, and their checks.

`reporting/kinds/` has the function that makes each figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from ...errors import nearest_hint
from ..catalog.metrics import (
    METRICS_AND_COSTS,
    direction_faults,
    is_target,
    is_timed,
    metric_family,
    unknown_metric,
)
from ..catalog.published import PublishedNumbers
from ..schema.design import Design
from ..schema.settings import Level
from ..text.strict_model import format_value
from ..text.units import listed
from .kinds import (
    CurveKind,
    KeyFault,
    PickKeys,
    Spread,
    factor_faults,
    mixed_levels_fault,
    select_faults,
    selected_levels,
)

TIME_AXES = {
    "epoch": "Epoch",
    "step": "Step",
    "tokens": "Tokens",
    "flops": "Training compute",
    "seconds": "Training time, s",
}
"""The axes of a learning curve, with their titles."""

INDEX_AXES = ("index", "index2")
"""The first and the second index of a metric such as `attention[3,7]`."""


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

    def faults(self, design: Design, published: PublishedNumbers) -> list[KeyFault]:
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
        return [*faults, *self.published_faults(published)]

    def published_faults(self, published: PublishedNumbers) -> Iterator[KeyFault]:
        """Yield a fault if a published table that the figure shows is unknown, or is not a single one."""
        for name in self.published_names:
            yield from ((("published",), message) for message in published.faults(name))
            if len(found := published.find(name)) > 1:
                ways = listed([f'"{each.paper}:{each.name}"' for each in found], "or")
                yield ("published",), f"'{name}' is a table of {len(found)} papers: write {ways}"

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


class AccentFigure(CellFigure):
    """Base class of figures in which one level may have a colour."""

    accent: Any = None
    """the only level in colour: of `series`, or of the `x` of bars and boxes"""


class SpreadFigure(AccentFigure):
    """Base class of figures with means, and marks that show the spread around them."""

    spread: Spread = "sd"
    """what bands and whiskers show: standard deviation, standard error, or 95 % confidence interval"""


class SeriesFigure(SpreadFigure):
    """Base class of figures that group cells in series. A series is drawn as a line, or in one colour."""

    series: str | None = None
    """the factor with one line for each level"""
    logx: bool = False
    """whether the x axis is logarithmic; 0 is drawn left of its start"""
    logy: bool = False
    """whether the metric's axis is logarithmic"""


class BarFigure(SpreadFigure):
    """`[[curve]] kind = "bar"`: a bar with the mean of a metric for every level of `x`."""

    kind: Literal["bar"]
    published: str | None = None
    """the paper's table whose numbers are drawn as diamonds: its name, or `"PAPER:TABLE"`"""

    @property
    def published_names(self) -> tuple[str, ...]:
        return () if self.published is None else (self.published,)


class BoxFigure(AccentFigure):
    """`[[curve]] kind = "box"`: the spread of values at every level, or at every index."""

    kind: Literal["box"]

    special: ClassVar = {"x": ("index",)}

    @property
    def needs_history(self) -> bool:
        return True


class HeatFigure(CellFigure):
    """`[[curve]] kind = "heat"`: a heat map of a metric's mean. Each axis shows a factor or an index."""

    kind: Literal["heat"]
    y: str | None = None
    """the rows of the heat map; its columns are `x`"""

    special: ClassVar = {"x": INDEX_AXES, "y": INDEX_AXES}

    def key_faults(self) -> Iterator[KeyFault]:
        yield from super().key_faults()
        if self.y is None:
            yield (), "missing key 'y'"


class LineFigure(SeriesFigure):
    """`[[curve]] kind = "line"`: lines of mean values, each with a band that shows the spread."""

    kind: Literal["line"]

    special: ClassVar = {"x": (*TIME_AXES, "index")}

    def drawn_faults(self, design: Design) -> Iterator[KeyFault]:
        levels = selected_levels(self.select, design.factors).get(self.x, ())
        if words := [format_value(level) for level in levels if isinstance(level, str | bool)]:
            yield ("x",), f"expected a factor whose levels are numbers, got {', '.join(words)}"
        yield from super().drawn_faults(design)


class ParetoFigure(SeriesFigure):
    """`[[curve]] kind = "pareto"`: the result of every cell against its cost."""

    kind: Literal["pareto"]

    special: ClassVar = {"x": tuple(METRICS_AND_COSTS)}
    marks_cells: ClassVar = True

    def named_metrics(self) -> Iterator[KeyFault]:
        yield from super().named_metrics()
        yield ("x",), self.x

    def key_faults(self) -> Iterator[KeyFault]:
        yield from super().key_faults()
        yield from direction_faults("value", self.value)

    def role_faults(self, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
        if self.x not in METRICS_AND_COSTS:
            hint = nearest_hint(self.x, METRICS_AND_COSTS)
            yield ("x",), f"expected a cost or a metric, got '{self.x}'{hint}"
        yield from super().role_faults(factors)
