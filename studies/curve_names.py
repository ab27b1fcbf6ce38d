"""What a figure calls the levels that its samples number, and where they stand along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .contents import Naming, places_of
from .curve_spec import INDICES, TIMES, CurveSpec
from .design import same
from .factors import SEED
from .labels import level_text, one_line, short_levels
from .samples import Samples
from .settings import Level

Ticks = tuple[tuple[float, str], ...]
"""Places along an axis with their texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of one figure; `levels` are the selected ones of every factor, in the order of the study."""

    spec: CurveSpec
    levels: Mapping[str, tuple[Level, ...]]
    drawn: Samples

    def short(self, factor: str | None) -> tuple[str, ...]:
        """The short names of a factor's levels; none for what is no factor."""
        return short_levels(self.levels.get(factor or "", ()))

    def full(self, factor: str | None) -> tuple[str, ...]:
        """The short names of a factor's levels, those that are no text with the factor's: `filter 64`."""
        texts = self.short(factor)
        if all(isinstance(level, str) for level in self.levels.get(factor or "", ())):
            return texts
        return tuple(f"{one_line(str(factor))} {text}" for text in texts)

    def naming(self) -> Naming:
        """The names of the levels of x and series, none for indices, and which of them is accented."""
        accented = [same(level) for level in self.levels.get(self.spec.accented or "", ())]
        wanted = None if self.spec.accent is None else same(self.spec.accent)
        return Naming(
            x=self.full(self.spec.x),
            series=self.full(self.spec.series),
            accent=accented.index(wanted) if wanted in accented else None,
        )

    def places(self) -> tuple[Mapping[object, float], Ticks]:
        """Where each x of the samples stands, and the ticks; none where round numbers do."""
        name = self.spec.x
        if name in TIMES:
            return {x: float(x) for x in self.drawn.frame["x"].unique()}, ()
        if name in INDICES:
            return places_of(self.drawn.frame["x"].unique().sort().to_list())
        if self.spec.kind == "box":
            return {number: float(number) for number in range(len(self.levels[name]))}, ()
        numbers = [float(level) for level in self.levels[name]]
        texts = map(level_text, self.levels[name])
        return dict(enumerate(numbers)), tuple(sorted(zip(numbers, texts, strict=True)))

    def side(self, role: str) -> tuple[Sequence[object], Sequence[str]]:
        """The rows or the columns of a heat map, as the samples have them, and their names."""
        name = self.spec.roles[role]
        if name in self.levels:
            return range(len(self.levels[name])), self.short(name)
        at, _ = places_of(self.drawn.frame[role].unique().sort().to_list())
        order = sorted(at, key=at.__getitem__)
        return order, [str(index) for index in order]

    def point(self, series: int, cell: int) -> str:
        """The name of a point of a cloud: its series, or the levels of its cell that vary in its panel."""
        if self.spec.series is not None:
            return self.full(self.spec.series)[series]
        levels = self.drawn.cells[cell]
        varied = [name for name, each in self.levels.items() if name != SEED and len(each) > 1]
        return ", ".join(
            self.full(name)[[same(level) for level in self.levels[name]].index(same(levels[name]))]
            for name in varied
            if name != self.spec.panels
        )
