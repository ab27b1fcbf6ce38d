"""`[[curve]] kind = "scaling"`: a metric against a cost, both logarithmic, with a fitted power law."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ...diagnostics import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, metric_family
from ..schema.design import Design
from ..schema.factors import SEED
from ..schema.settings import Name
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .effect_figures import MAX_SERIES
from .metric_checks import metric_faults
from .selection import select_faults, selected_levels, unknown_level_message


class ScalingSpec(StrictModel):
    """`[[curve]] kind = "scaling"`: every cell by its cost and its result, and a law through each series."""

    kind: Literal["scaling"]
    """that it is such a figure"""
    name: Name
    """what `--curve` and the file call it"""
    value: str
    """the metric"""
    x: str
    """a cost such as `parameters` or `flops`, or another metric"""
    series: str | None = None
    """the factor with a law for each of its levels, of which there are at most 6"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    accent: Any = None
    """the level of `series` in colour"""
    caption: str | None = None
    """the text above the figure; by default metric, cost and levels"""

    @property
    def needs_history(self) -> bool:
        """Final values are enough."""
        return False


def scaling_faults(spec: ScalingSpec, design: Design) -> list[tuple[KeyPath, str]]:
    """Everything in such a figure that does not fit a study of this design."""
    factors = design.known_levels
    faults = [*select_faults(spec.select, factors), *metric_faults([spec.value], {})]
    if metric_family(spec.x) not in METRICS_AND_COSTS:
        hint = nearest_hint(spec.x, METRICS_AND_COSTS)
        faults.append((("x",), f"expected a cost or a metric, got '{spec.x}'{hint}"))
    elif spec.x == spec.value:
        faults.append((("x",), f"expected something other than value's, got '{spec.x}'"))
    if spec.series is None:
        if spec.accent is not None:
            faults.append((("accent",), "expected a factor that it is a level of, as series"))
        return faults
    if spec.series not in factors or spec.series == SEED:
        faults.append((("series",), f"unknown factor '{spec.series}'{nearest_hint(spec.series, factors)}"))
    if faults:
        return faults
    levels = selected_levels(spec.select, factors)[spec.series]
    if len(levels) > MAX_SERIES:
        message = f"expected at most {MAX_SERIES} levels, got {len(levels)}: select some of them"
        faults.append((("series",), message))
    if spec.accent is not None and (message := unknown_level_message(spec.accent, levels)):
        faults.append((("accent",), message))
    return faults
