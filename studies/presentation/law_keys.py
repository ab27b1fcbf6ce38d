"""Keys of the table and the figure of power laws, and their checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from ...errors import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, metric_family
from ..catalog.published import PublishedNumbers
from ..schema.design import MAX_TRIALS, Design
from ..schema.factors import SEED, level_key
from ..schema.settings import Level
from .kinds import (
    CurveKind,
    KeyFault,
    PickKeys,
    TableKind,
    factor_faults,
    is_selected,
    metric_faults,
    place_of,
    select_faults,
)


class LawKeys(PickKeys):
    """Base class for figures and tables of power laws, with the study-file keys that they share."""

    kind: Literal["scaling"]
    value: str
    """the metric"""
    x: str
    """a cost such as `parameters` or `flops`, or another metric"""
    series: str | None = None
    """the factor with one law for each level, at most 6"""
    offset: bool = False
    """whether the law falls to an offset, y = e + a xᵇ with b < 0; it needs at least four cells"""
    held_out: int = Field(default=0, ge=0, le=20)
    """how many of the most expensive planned cells of each series are predicted instead of fitted"""

    def named_metrics(self) -> Iterator[KeyFault]:
        yield from super().named_metrics()
        yield ("x",), self.x

    def faults(self, design: Design, published: PublishedNumbers) -> list[KeyFault]:
        """Return the faults of the keys, such as unknown metrics and factors, or too many series."""
        factors = design.known_levels
        faults = [*select_faults(self.select, factors), *metric_faults([self.value])]
        if metric_family(self.x) not in METRICS_AND_COSTS:
            hint = nearest_hint(self.x, METRICS_AND_COSTS)
            faults.append((("x",), f"expected a cost or a metric, got '{self.x}'{hint}"))
        elif self.x == self.value:
            faults.append((("x",), f"expected a metric or a cost other than value, got '{self.x}'"))
        faults += factor_faults([(("series",), self.series)] if self.series else [], factors)
        faults += self.over_faults(factors)
        for number, name in enumerate(self.over):
            if name in design.ladder:
                faults.append((("over", number), f"expected a factor other than sizes, got '{name}'"))
        if self.series == SEED:
            faults.append((("series",), "expected a factor other than seeds, got 'seed'"))
        if faults:
            return faults
        faults += self.series_faults(self.series, factors) if self.series else ()
        faults += self.level_faults(factors)
        written = design.as_written or design
        if self.held_out and written.count() <= MAX_TRIALS:  # `build_grid` reports too many cells
            cells = (cell for cell in written.cells() if is_selected(self.select, cell))
            places = {(self.series_of(cell), place_of(cell, self.over)) for cell in cells}
            most = max(Counter(series for series, _ in places).values(), default=0)
            if self.held_out > (limit := max(0, most - 2)):
                why = f"a law is fitted to two or more cells, and each series has {most}"
                faults.append((("held_out",), f"expected at most {limit}, got {self.held_out}: {why}"))
        return faults

    def series_of(self, levels: Mapping[str, Level]) -> str:
        """Return the text of the level whose law a cell belongs to; "" without `series`."""
        return level_key(levels[self.series]) if self.series else ""


class ScalingTable(LawKeys, TableKind):
    """`[[table]] kind = "scaling"`: the power law of each series, with predictions for held-out cells."""

    baseline: Any = None
    """the level of `series` with whose exponent the others are compared; not with an offset"""

    def faults(self, design: Design, published: PublishedNumbers) -> list[KeyFault]:
        faults = super().faults(design, published)
        if self.offset and self.baseline is not None:
            faults.append((("baseline",), "exponents of laws with an offset are not compared: remove it"))
        return faults


class ScalingFigure(LawKeys, CurveKind):
    """`[[curve]] kind = "scaling"`: the result of every cell against its cost, with power laws."""

    accent: Any = None
    """the only level of `series` in colour"""
