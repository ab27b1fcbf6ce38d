"""`[[curve]] kind = "effects"` and `"interaction"`: the means of a grid at the levels of its factors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field

from ...diagnostics import nearest_hint
from ..schema.design import Design
from ..schema.settings import Name
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .effects import effect_factor_faults, varied_factors
from .metric_checks import metric_faults
from .selection import level_name_fault, select_faults

MAX_SERIES = 6
"""More lines than these cannot be told apart."""


class EffectsCurveSpec(StrictModel):
    """`[[curve]] kind = "effects"`: the mean at each level of every factor that has several."""

    kind: Literal["effects"]
    """that it is such a figure"""
    name: Name
    """what `--curve` and the file call it"""
    value: str
    """the metric, or a cost"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    interactions: bool = True
    """whether the model has the interactions of each two factors"""
    caption: str | None = None
    """the text above the figure; by default metric and levels"""

    needs_history: ClassVar[bool] = False


class InteractionSpec(StrictModel):
    """`[[curve]] kind = "interaction"`: the mean at each combination of two factors' levels."""

    kind: Literal["interaction"]
    """that it is such a figure"""
    name: Name
    """what `--curve` and the file call it"""
    value: str
    """the metric, or a cost"""
    x: str
    """the factor whose levels stand side by side"""
    series: str
    """the factor with a line for each of its levels, of which there are at most 6"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    accent: Any = None
    """the level of `series` in colour"""
    caption: str | None = None
    """the text above the figure; by default metric and factors"""

    needs_history: ClassVar[bool] = False


def effect_figure_faults(
    spec: EffectsCurveSpec | InteractionSpec, design: Design
) -> list[tuple[KeyPath, str]]:
    """Everything in such a figure that does not fit a study of this design."""
    faults = [*select_faults(spec.select, design.known_levels), *metric_faults([spec.value], {})]
    if not faults:
        interactions = isinstance(spec, InteractionSpec) or spec.interactions
        faults += effect_factor_faults(spec.select, design, interactions=interactions)
    if not faults and isinstance(spec, InteractionSpec):
        faults += _interaction_faults(spec, design)
    return faults


def _interaction_faults(spec: InteractionSpec, design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Names that are no factors with several levels, and levels that cannot be drawn."""
    varied = varied_factors(spec.select, design.factors)
    for key, name in (("x", spec.x), ("series", spec.series)):
        if name not in varied:
            yield (key,), f"expected a factor with several levels, got '{name}'{nearest_hint(name, varied)}"
    if spec.x == spec.series:
        yield ("series",), f"expected something other than x's, got '{spec.series}'"
    levels = varied.get(spec.series, ())
    if len(levels) > MAX_SERIES:
        yield ("series",), f"expected at most {MAX_SERIES} levels, got {len(levels)}: select some of them"
    if spec.accent is not None and levels and (message := level_name_fault(spec.accent, levels, spec.series)):
        yield ("accent",), message
