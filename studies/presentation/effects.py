"""`[[table]] kind = "effects"`: what each factor does to a metric, and each two of them together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import Field

from ..schema.design import Design
from ..schema.factors import SEED
from ..schema.settings import Level, Name, Names
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .metric_checks import metric_faults
from .selection import absent_factors, select_faults, selected_levels

MAX_COLUMNS = 1_000
"""A model with more columns than these is not fitted."""


class EffectsSpec(StrictModel):
    """`[[table]] kind = "effects"`: the effect of every factor that has several levels."""

    kind: Literal["effects"]
    """that it is such a table"""
    name: Name
    """what `--table` calls it"""
    value: Names
    """a metric or a cost, or a list of them, side by side"""
    caption: str | None = None
    """how the caption begins; by default with the metric's title"""
    interactions: bool = True
    """whether the model has the interactions of each two factors"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    digits: dict[str, Annotated[int, Field(ge=0, le=12)]] = Field(default={})
    """decimals by metric, where they are not the metric's own"""


def effects_faults(spec: EffectsSpec, design: Design) -> list[tuple[KeyPath, str]]:
    """Everything in such a table that does not fit a study of this design."""
    faults = [*select_faults(spec.select, design.known_levels), *metric_faults(spec.value, spec.digits)]
    if not faults:
        faults += effect_factor_faults(spec.select, design, interactions=spec.interactions)
    return faults


def effect_factor_faults(
    select: Mapping[str, Any], design: Design, *, interactions: bool
) -> Iterator[tuple[KeyPath, str]]:
    """A study without a factor that varies, and one with more levels than a model can have columns."""
    varied = varied_factors(select, design.factors)
    columns = [len(levels) - 1 for levels in varied.values()]
    count = sum(columns) + (sum(map(math.prod, combinations(columns, 2))) if interactions else 0)
    if not varied:
        yield ("kind",), f"expected a factor other than {SEED} with several levels, got none"
    elif count > MAX_COLUMNS:
        of = f"{len(varied)} factors" + (" with their interactions" if interactions else "")
        yield ("kind",), f"expected a model of at most {MAX_COLUMNS:,} columns, got {count:,} of {of}"
    if absent := absent_factors(varied, select, design):
        names = " and ".join(absent)
        yield ("kind",), f"expected factors that every cell has; select cells that all have {names}, or none"


def varied_factors(
    select: Mapping[str, Any], factors: Mapping[str, tuple[Level, ...]]
) -> dict[str, tuple[Level, ...]]:
    """The factors that have several levels among those selected, with these."""
    levels = selected_levels(select, factors)
    return {name: each for name, each in levels.items() if name != SEED and len(each) > 1}
