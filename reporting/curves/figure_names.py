"""The names of the levels that a figure's samples number, and their positions along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...studies.presentation.curve import INDEX_AXES, TIME_AXES, CurveSpec
from ...studies.schema.design import level_key
from ...studies.schema.factors import ABSENT, SEED
from ...studies.schema.level_names import level_text, one_line, short_level_names
from ...studies.schema.settings import Level
from .aggregate import AxisLabels, index_positions
from .samples import Samples

Ticks = tuple[tuple[float, str], ...]
"""Places along an axis with their texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureNames:
    """The names of one figure; `levels` are the selected ones of every factor, in the order of the study."""

    spec: CurveSpec
    levels: Mapping[str, tuple[Level, ...]]
    samples: Samples

    def short_names(self, factor: str | None) -> tuple[str, ...]:
        """The short names of a factor's levels; none if it is not a factor."""
        return short_level_names(self.levels.get(factor or "", ()))

    def full_names(self, factor: str | None) -> tuple[str, ...]:
        """The short names of a factor's levels; any that is not text gets the factor's name: `filter 64`."""
        texts = self.short_names(factor)
        if all(isinstance(level, str) for level in self.levels.get(factor or "", ())):
            return texts
        return tuple(f"{one_line(str(factor))} {text}" for text in texts)

    def level_names(self) -> AxisLabels:
        """The names of the levels of x and series, none for indices, and which of them is accented."""
        accented = [level_key(level) for level in self.levels.get(self.spec.accent_factor or "", ())]
        wanted = None if self.spec.accent is None else level_key(self.spec.accent)
        return AxisLabels(
            x=self.full_names(self.spec.x),
            series=self.full_names(self.spec.series),
            accent=accented.index(wanted) if wanted in accented else None,
        )

    def positions(self) -> tuple[Mapping[object, float], Ticks]:
        """The position of each x of the samples, and the ticks; none for round numbers."""
        name = self.spec.x
        if name in TIME_AXES:
            return {x: float(x) for x in self.samples.frame["x"].unique()}, ()
        if name in INDEX_AXES:
            return index_positions(self.samples.frame["x"].unique().sort().to_list())
        if self.spec.kind == "box":
            return {number: float(number) for number in range(len(self.levels[name]))}, ()
        numbers = [float(level) for level in self.levels[name]]
        texts = map(level_text, self.levels[name])
        return dict(enumerate(numbers)), tuple(sorted(zip(numbers, texts, strict=True)))

    def heatmap_axis(self, role: str) -> tuple[Sequence[object], Sequence[str]]:
        """The rows or the columns of a heat map, as the samples have them, and their names."""
        name = self.spec.roles[role]
        if name in self.levels:
            return range(len(self.levels[name])), self.short_names(name)
        at, _ = index_positions(self.samples.frame[role].unique().sort().to_list())
        order = sorted(at, key=at.__getitem__)
        labels = self.samples.labels.get(role, {})
        return order, [labels.get(str(index), str(index)) for index in order]

    def point_name(self, series: int, cell: int) -> str:
        """The name of a point of a cloud: its series, or the levels of its cell that vary in its panel."""
        if self.spec.series is not None:
            return self.full_names(self.spec.series)[series]
        levels = self.samples.cells[cell]
        varied = [name for name, each in self.levels.items() if name != SEED and len(each) > 1]
        return ", ".join(
            self.full_names(name)[
                [level_key(level) for level in self.levels[name]].index(level_key(levels[name]))
            ]
            for name in varied
            if name not in (self.spec.panels, self.spec.rows) and levels[name] != ABSENT
        )
