"""`[[table]]` and `[[curve]]` of a search: what is shown of its points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..schema.settings import Name, Names
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .metric_checks import metric_faults
from .table import Spread


class PointsSpec(StrictModel):
    """`[[table]] kind = "points"`: the best points of a search, the best first."""

    kind: Literal["points"]
    """that it is such a table"""
    name: Name
    """what `--table` calls it"""
    value: Names = ()
    """metrics and costs; by default what is optimised, and parameters"""
    points: int = Field(default=10, ge=1, le=1000)
    """how many points it has"""
    spread: Spread = "sd"
    """what follows a mean over seeds: standard deviation, standard error, or 95 % confidence interval"""
    show: Literal["values", "recipe"] = "values"
    """what is told of a point: the values of its dimensions, or its recipe"""
    digits: dict[str, Annotated[int, Field(ge=0, le=12)]] = Field(default={})
    """decimals by metric, where they are not the metric's own"""
    caption: str | None = None
    """how the caption begins; by default with the metrics' titles"""


class IncumbentSpec(StrictModel):
    """`[[curve]] kind = "incumbent"`: the best value that a search knew after each point."""

    kind: Literal["incumbent"]
    """that it is such a figure"""
    name: Name
    """what `--curve` and the file call it"""
    value: Names = ()
    """the metric or cost; by default the first that is optimised"""
    x: Literal["points", "hours"] = "points"
    """what it stands over: points that have ended, or hours of training"""
    caption: str | None = None
    """the text above the figure; by default with the metric's title"""

    needs_history: ClassVar[bool] = False


class FrontSpec(StrictModel):
    """`[[curve]] kind = "front"`: the points by two metrics, and those that no other surpasses in both."""

    kind: Literal["front"]
    """that it is such a figure"""
    name: Name
    """what `--curve` and the file call it"""
    value: Names = ()
    """two metrics or costs, that of the height first; by default what is optimised, with parameters"""
    caption: str | None = None
    """the text above the figure; by default with the metrics' titles"""

    needs_history: ClassVar[bool] = False


SearchCurveSpec = IncumbentSpec | FrontSpec
"""What `[[curve]]` says of a search."""

SEARCH_SPECS = (PointsSpec, IncumbentSpec, FrontSpec)


def search_faults(spec: PointsSpec | SearchCurveSpec) -> Iterator[tuple[KeyPath, str]]:
    """Yield unknown metrics, and more or fewer of them than the kind shows."""
    yield from metric_faults(spec.value, spec.digits if isinstance(spec, PointsSpec) else {})
    wanted = {IncumbentSpec: 1, FrontSpec: 2}.get(type(spec))
    if wanted is not None and spec.value and len(spec.value) != wanted:
        what = "one metric" if wanted == 1 else "two metrics or costs"
        yield ("value",), f"expected {what}, got {len(spec.value)}"
