"""`front`: the points of a search with two metrics as axes, and the best trade-offs.

The best trade-offs form the Pareto front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from ...studies.catalog.metrics import Metric
from ...studies.schema.settings import Names
from ...studies.searches.points import SearchPoints
from ..curves.curve import Axis, Curve, Line, Panel, Point
from .incumbent import SearchFigure, axis_name

if TYPE_CHECKING:
    from ...studies.study import Study


class FrontFigure(SearchFigure):
    """`[[curve]] kind = "front"`: a search's points and their Pareto front. The axes are two metrics."""

    kind: Literal["front"]
    value: Names = ()
    """two metrics or costs, the vertical axis first (default: two of the objectives and parameters)"""

    num_metrics: ClassVar = 2

    def points_curve(self, study: Study, found: SearchPoints, metrics: Sequence[Metric]) -> Curve:
        from .pareto import Cloud, pareto_front  # noqa: PLC0415 -- the keys are checked without it
        from .scaling import against  # noqa: PLC0415 -- as above

        up, across = metrics
        signs = found.sign(across), found.sign(up)
        known = [(point, point.mean(across.name), point.mean(up.name)) for point in found.complete]
        dots = [Point(x=x, y=y, n=point.seeds) for point, x, y in known if x is not None and y is not None]
        cloud = Cloud(
            lines=tuple(Line(name="", points=(dot,)) for dot in dots),
            front=pareto_front(dots, signs),
            steps="pre" if signs[0] > 0 else "post",
        )
        return Curve(
            name=self.name,
            caption=against(axis_name(up), axis_name(across)),
            notes=("Dot: a point; steps: the Pareto front.",),
            x=Axis(title=axis_name(across)),
            y=Axis(title=axis_name(up)),
            panels=(Panel(title="", content=cloud),),
            provenance="",
        )


CURVE = FrontFigure
