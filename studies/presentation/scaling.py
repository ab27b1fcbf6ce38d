"""`kind = "scaling"`: a metric against a cost with a fitted law, as a figure and as a table."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from ...diagnostics import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, find_metric, metric_family
from ..schema.design import Design
from ..schema.factors import SEED
from ..schema.settings import Name, Names
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .effect_figures import MAX_SERIES
from .metric_checks import metric_faults
from .selection import level_name_fault, select_faults, selected_levels


class LawKeys(StrictModel):
    """What a figure and a table of laws have in common."""

    kind: Literal["scaling"]
    """that it is of laws"""
    name: Name
    """what `--table` or `--curve` calls it"""
    x: str
    """a cost such as `parameters` or `flops`, or another metric"""
    series: str | None = None
    """the factor with a law for each of its levels, of which there are at most 6"""
    over: Names = ()
    """factors, such as a learning rate, of which each cell has the level that is best by its seeds' mean"""
    offset: bool = False
    """whether the law has an offset that no size falls below, y = e + a xᵇ; it takes at least four cells, and
    with fewer there is none"""
    held_out: int = Field(default=0, ge=0, le=20)
    """so many cells of each series with the highest cost are not fitted, but foretold"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    caption: str | None = None
    """the text above; by default metric, cost and levels"""


class ScalingSpec(LawKeys):
    """`[[curve]] kind = "scaling"`: every cell by its cost and its result, and a law through each series."""

    value: str
    """the metric"""
    accent: Any = None
    """the level of `series` in colour"""

    @property
    def metric(self) -> str:
        """What the law is of."""
        return self.value

    needs_history: ClassVar[bool] = False


class ScalingTableSpec(LawKeys):
    """`[[table]] kind = "scaling"`: the law of each series, and what it foretells of cells held out."""

    value: Names
    """the metric"""

    @property
    def metric(self) -> str:
        """What the law is of."""
        return self.value[0]


def table_of_laws_faults(spec: ScalingTableSpec, design: Design) -> list[tuple[KeyPath, str]]:
    """Everything in such a table that does not fit a study of this design."""
    if len(spec.value) != 1:
        return [(("value",), f"expected one metric, got {len(spec.value)}")]
    return _law_faults(spec, design)


def scaling_faults(spec: ScalingSpec, design: Design) -> list[tuple[KeyPath, str]]:
    """Everything in such a figure that does not fit a study of this design."""
    faults = _law_faults(spec, design)
    if spec.accent is None or faults:
        return faults
    if spec.series is None:
        return [(("accent",), "expected a factor that it is a level of, as series")]
    levels = selected_levels(spec.select, design.known_levels)[spec.series]
    message = level_name_fault(spec.accent, levels, spec.series)
    return [(("accent",), message)] if message else []


def _law_faults(spec: ScalingSpec | ScalingTableSpec, design: Design) -> list[tuple[KeyPath, str]]:
    """Unknown metrics and factors, and series beyond what can be told apart."""
    factors = design.known_levels
    faults = [*select_faults(spec.select, factors), *metric_faults([spec.metric], {})]
    if metric_family(spec.x) not in METRICS_AND_COSTS:
        hint = nearest_hint(spec.x, METRICS_AND_COSTS)
        faults.append((("x",), f"expected a cost or a metric, got '{spec.x}'{hint}"))
    elif spec.x == spec.metric:
        faults.append((("x",), f"expected something other than value's, got '{spec.x}'"))
    for number, name in enumerate(spec.over):
        if name not in factors:
            faults.append((("over", number), f"unknown factor '{name}'{nearest_hint(name, factors)}"))
        elif name in (SEED, spec.series, *design.ladder):
            message = f"expected a factor other than seeds, sizes and that of series, got '{name}'"
            faults.append((("over", number), message))
    if (
        spec.over
        and metric_family(spec.metric) in METRICS_AND_COSTS
        and find_metric(spec.metric).higher_is_better is None
    ):
        faults.append((("over",), f"expected a metric with a better direction, got '{spec.metric}'"))
    if spec.series is None:
        return faults
    if spec.series not in factors:
        faults.append((("series",), f"unknown factor '{spec.series}'{nearest_hint(spec.series, factors)}"))
    elif spec.series == SEED:
        faults.append((("series",), "expected a factor other than seeds, got 'seed'"))
    elif not faults and len(levels := selected_levels(spec.select, factors)[spec.series]) > MAX_SERIES:
        message = f"expected at most {MAX_SERIES} levels, got {len(levels)}: select some of them"
        faults.append((("series",), message))
    return faults
