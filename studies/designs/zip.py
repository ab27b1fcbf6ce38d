"""The zip design: one cell with all first levels, one with all second levels, and so on."""

from __future__ import annotations

from collections.abc import Iterator

from ..schema.design import Design
from ..schema.factors import level_key
from ..schema.settings import Level
from ..text.toml_positions import KeyPath


class Zip(Design):
    """A design whose first cell has all first levels, whose second has all second levels, and so on."""

    title = "a cell of all first levels, a cell of all second levels, and so on"
    has_conditions = False
    repeats_levels = True

    def make_rows(self) -> list[dict[str, Level]]:
        count = len(next(iter(self.inner.values()), (0,)))
        return [{name: levels[number] for name, levels in self.inner.items()} for number in range(count)]

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield faults: unequal numbers of levels, and cells that are repeated, apart from labels."""
        if len({len(levels) for levels in self.inner.values()}) > 1:
            lengths = ", ".join(f"{name} has {len(levels)}" for name, levels in self.inner.items())
            yield ("study", "design"), f"zip needs factors with equally many levels, but {lengths}"
            return
        met: dict[tuple[str, ...], int] = {}
        for number, row in enumerate(self.rows()):
            key = tuple(level_key(level) for name, level in row.items() if name not in self.labels)
            if key and met.setdefault(key, number) != number:
                place = ("factors", next(iter(row)), number)
                yield place, f"cell {number + 1} of the zip repeats cell {met[key] + 1}"

    def explain_kind(self) -> str:
        return "factors change together; it compares rows, and cannot attribute effects to factors"


DESIGN = Zip
