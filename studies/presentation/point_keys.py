"""Keys of the table and the figure that show the points of a search, and their checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from ...errors import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, metric_family
from ..catalog.published import PublishedNumbers
from ..schema.design import Design
from ..schema.settings import Names
from .kinds import CurveKind, KeyFault, SpreadTable, metric_faults

HISTORY_AXES = ("points", "hours")
"""The horizontal axes of figures that show the points of a search in the order of training."""


class PointsTable(SpreadTable):
    """`[[table]] kind = "points"`: the best points of a search, the best first."""

    kind: Literal["points"]
    value: Names = ()
    """metrics and costs (default: the objectives, limited quantities, and parameters)"""
    points: int = Field(default=10, ge=1, le=1000)
    """the number of points in the table"""
    show: Literal["values", "recipe"] = "values"
    """how a point is described: by the values of its dimensions, or by its recipe"""

    of_search: ClassVar = True
    select: ClassVar = {}  # pyright: ignore[reportIncompatibleVariableOverride] -- points have no cells

    def faults(self, design: Design, published: PublishedNumbers) -> Iterator[KeyFault]:
        yield from metric_faults(self.value)


class PointsFigure(CurveKind):
    """`[[curve]] kind = "points"`: the points of a search, with the best value so far or the Pareto front."""

    kind: Literal["points"]
    value: Names = ()
    """the metric or cost (default: the first objective)"""
    x: str = "points"
    """the horizontal axis: `points`, the number of ended points; `hours` of training; or another metric or
    cost, over which the Pareto front is drawn"""

    of_search: ClassVar = True
    select: ClassVar = {}  # pyright: ignore[reportIncompatibleVariableOverride] -- points have no cells

    @property
    def shows_history(self) -> bool:
        """Return whether the figure shows the points in the order of training."""
        return self.x in HISTORY_AXES

    def named_metrics(self) -> Iterator[KeyFault]:
        yield from super().named_metrics()
        if not self.shows_history:
            yield ("x",), self.x

    def faults(self, design: Design, published: PublishedNumbers) -> Iterator[KeyFault]:
        yield from metric_faults(self.value)
        if len(self.value) > 1:
            yield ("value",), f"expected one metric, got {len(self.value)}: name the other one as x"
        if not self.shows_history and metric_family(self.x) not in METRICS_AND_COSTS:
            known = (*HISTORY_AXES, *METRICS_AND_COSTS)
            yield (
                ("x",),
                f"expected points, hours, a metric or a cost, got '{self.x}'{nearest_hint(self.x, known)}",
            )
