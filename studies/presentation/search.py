"""`[[table]]` and `[[curve]]` of a search: what is shown of its points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ...diagnostics import nearest_hint
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


class ImportanceSpec(StrictModel):
    """`[[table]] kind = "importance"`: what each dimension of a search accounts for."""

    kind: Literal["importance"]
    """that it is such a table"""
    name: Name
    """what `--table` calls it"""
    value: Names = ()
    """the metric or cost; by default the first that is optimised"""
    top: float = Field(default=0.1, gt=0, lt=1)
    """the share of points that PED-ANOVA counts as the best"""
    resamples: int = Field(default=100, ge=20, le=10_000)
    """how many times points are drawn anew for the intervals"""
    bootstrap_seed: int = Field(default=0, ge=0)
    """the seed that draws them"""
    caption: str | None = None
    """how the caption begins; by default with the metric's title"""


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
    """`[[curve]] kind = "front"` and `"hypervolume"`: what no point surpasses in two things at once."""

    kind: Literal["front", "hypervolume"]
    """the points with their front, or the hypervolume that the front has after each point"""
    name: Name
    """what `--curve` and the file call it"""
    value: Names = ()
    """two metrics or costs, that of the height first; by default what is optimised, with parameters"""
    against: Name | None = None
    """of a hypervolume: another search of the same space in the same store, such as a random one"""
    caption: str | None = None
    """the text above the figure; by default with the metrics' titles"""

    needs_history: ClassVar[bool] = False


class DimensionsSpec(StrictModel):
    """`[[curve]] kind = "slices"` and `"parallel"`: every point by its values."""

    kind: Literal["slices", "parallel"]
    """a panel for each dimension with a dot for each point, or an axis for each with a line for each point"""
    name: Name
    """what `--curve` and the file call it"""
    value: Names = ()
    """the metric or cost; by default the first that is optimised"""
    dimensions: Names = ()
    """the dimensions that are shown; by default all"""
    caption: str | None = None
    """the text above the figure; by default with the metric's title"""

    needs_history: ClassVar[bool] = False


class PlaneSpec(StrictModel):
    """`[[curve]] kind = "contour"` and `"rank"`: every point by two of its values."""

    kind: Literal["contour", "rank"]
    """what is to be expected over two dimensions, or the points there, darker the better they are"""
    name: Name
    """what `--curve` and the file call it"""
    value: Names = ()
    """the metric or cost; by default the first that is optimised"""
    dimensions: Names = ()
    """at least two: that of the height, and one for each panel; by default the first two"""
    caption: str | None = None
    """the text above the figure; by default with the metric's title"""

    needs_history: ClassVar[bool] = False


SearchTableSpec = PointsSpec | ImportanceSpec
"""What `[[table]]` says of a search."""

SearchCurveSpec = IncumbentSpec | FrontSpec | DimensionsSpec | PlaneSpec
"""What `[[curve]]` says of a search."""

SEARCH_SPECS = (PointsSpec, ImportanceSpec, IncumbentSpec, FrontSpec, DimensionsSpec, PlaneSpec)


def search_faults(spec: SearchTableSpec | SearchCurveSpec) -> Iterator[tuple[KeyPath, str]]:
    """Unknown metrics, and more or fewer of them than the kind shows."""
    yield from metric_faults(spec.value, spec.digits if isinstance(spec, PointsSpec) else {})
    wanted = {ImportanceSpec: 1, IncumbentSpec: 1, DimensionsSpec: 1, PlaneSpec: 1, FrontSpec: 2}.get(
        type(spec)
    )
    if wanted is not None and spec.value and len(spec.value) != wanted:
        what = "one metric" if wanted == 1 else "two metrics or costs"
        yield ("value",), f"expected {what}, got {len(spec.value)}"
    if isinstance(spec, FrontSpec) and spec.kind == "front" and spec.against is not None:
        yield ("against",), "for a hypervolume alone, got a front"
    named = spec.dimensions if isinstance(spec, PlaneSpec) else ()
    if named and len(set(named)) != max(len(named), 2):
        yield ("dimensions",), f"expected at least two different dimensions, got {', '.join(named)}"


def dimension_faults(
    spec: SearchTableSpec | SearchCurveSpec, dimensions: Mapping[str, object]
) -> Iterator[tuple[KeyPath, str]]:
    """Dimensions that the search does not have."""
    named = spec.dimensions if isinstance(spec, DimensionsSpec | PlaneSpec) else ()
    for number, name in enumerate(named):
        if name not in dimensions:
            path: KeyPath = ("dimensions",) if len(named) == 1 else ("dimensions", number)
            yield path, f"unknown dimension '{name}'{nearest_hint(name, dimensions)}"
