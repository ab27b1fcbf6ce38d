"""Tables with `rows = "changes"`: each row is a difference from a baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import nearest_hint
from ...grammar import RecipeError, parse
from ...grammar.difference import describe_difference
from ...grammar.nodes import Node
from ..schema.design import MAX_TRIALS, Design
from ..schema.factors import ABSENT, SEED, filled_levels, level_key, level_name
from ..schema.settings import Level
from ..text.strict_model import format_value
from ..text.toml_positions import KeyPath
from .kinds import describe_levels, is_selected, level_name_fault

if TYPE_CHECKING:
    from .table_keys import CellsTable

CHANGES = "changes"
"""The value of `rows` that selects rows of changes."""

SEVERAL = "several"
"""The heading of rows in which more than one factor differs."""

BASELINE = "baseline"
"""The name of a baseline's row."""

LevelTexts = tuple[str, ...]
"""The levels that identify a cell, as texts."""

_PlacedCell = tuple[Mapping[str, Level], tuple[str, ...]]
"""A cell, and the factors in which it differs from the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A row of a table of changes.

    `baseline` is the index of the baseline's row, from which the difference is computed.
    """

    name: str
    heading: str
    baseline: int
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The rows of a table of changes, and their baseline.

    `baseline` has the levels of the factors that may differ. `around` has the factors with a separate
    baseline at each level. `changing` has the factors that differ in some row. `numbers` maps the identifying
    levels of each cell to its row.
    """

    baseline: Mapping[str, Level]
    around: tuple[str, ...]
    changing: frozenset[str]
    rows: tuple[ChangeRow, ...]
    numbers: Mapping[LevelTexts, int]

    def row(self, levels: Mapping[str, Level]) -> ChangeRow:
        """Return the row that shows the cell with these levels."""
        return self.rows[self.numbers[_key(levels, (*self.around, *self.baseline))]]

    def describe_baseline(self) -> str:
        """Describe the baseline and its levels for a caption."""
        filled = filled_levels(self.baseline)
        levels = {name: level for name, level in filled.items() if name in self.changing}
        of = f" of each {' and '.join(self.around)}" if self.around else ""
        return f"the baseline{of}" + (f" ({describe_levels(levels)})" if levels else "")


def read_changes(spec: CellsTable, design: Design) -> Changes:
    """Return the rows of a table of changes without faults.

    Each baseline comes first, then cells with one changed factor, then with several.
    """
    shown = {SEED, *spec.over, *([spec.columns] if spec.columns else [])}
    named: Mapping[str, Level] = spec.baseline or {}
    around = tuple(name for name in design.around if name not in shown and name not in named)
    baseline = {
        name: named.get(name, design.baseline_level(name))
        for name in design.factors
        if name not in shown and name not in around
    }
    blocks: dict[LevelTexts, dict[LevelTexts, dict[str, Level]]] = {}
    for cell in design.cells():
        if is_selected(spec.select, cell):
            blocks.setdefault(_key(cell, around), {}).setdefault(_key(cell, (*around, *baseline)), cell)
    order = list(baseline)
    rows: list[ChangeRow] = []
    numbers: dict[LevelTexts, int] = {}
    for cells in blocks.values():
        placed: list[_PlacedCell] = [(cell, _differing(cell, baseline)) for cell in cells.values()]
        placed.sort(key=lambda each: (len(each[1]), *map(order.index, each[1])))
        start, titles = len(rows), _row_names(placed, baseline, around)
        for (cell, _), (heading, name) in zip(placed, titles, strict=True):
            numbers[_key(cell, (*around, *baseline))] = len(rows)
            rows.append(ChangeRow(name=name, heading=heading, baseline=start))
    names = Counter(row.name for row in rows)
    changing = {
        name for cells in blocks.values() for cell in cells.values() for name in _differing(cell, baseline)
    }
    settled = design.with_absent(baseline)
    return Changes(
        baseline=baseline,
        around=around,
        changing=frozenset(name for name in changing if around or settled[name] != ABSENT),
        rows=tuple(
            replace(row, label=row.name if names[row.name] == 1 else f"{row.heading}: {row.name}")
            for row in rows
        ),
        numbers=numbers,
    )


def change_faults(spec: CellsTable, design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Yield the faults of a table of changes, such as a wrong baseline."""
    factors = design.known_levels
    if CHANGES in factors:
        yield (
            ("rows",),
            f"a factor is called {CHANGES}: rename it, since rows = {CHANGES} has another meaning",
        )
    if spec.pick_by is not None:
        instead = 'remove it, or write rows = "FACTOR" and a baseline'
        yield ("pick_by",), f'pick_by has no effect with rows = "{CHANGES}": {instead}'
    if spec.baseline is not None and not isinstance(spec.baseline, Mapping):
        yield (
            ("baseline",),
            f'expected levels of factors, such as {{ norm = "pre" }}, got {format_value(spec.baseline)}',
        )
        return
    for name, level in (spec.baseline or {}).items():
        if name not in factors or name == SEED:
            yield ("baseline", name), f"unknown factor '{name}'{nearest_hint(name, factors)}"
        elif name == spec.columns or name in spec.over:
            yield ("baseline", name), f"{name} is already in columns or over: remove it from baseline"
        elif message := level_name_fault(level, factors[name], name):
            yield ("baseline", name), message


def unselected_baseline_faults(spec: CellsTable, design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Yield a fault if the table does not show the baseline. Differences cannot be computed without it."""
    if not all(design.factors.values()) or design.count() > MAX_TRIALS:
        return  # other checks report these faults
    changes = read_changes(spec, design)
    if any(changes.rows[row.baseline].name != BASELINE for row in changes.rows) or not changes.rows:
        several = {name: level for name, level in changes.baseline.items() if len(design.factors[name]) > 1}
        at = describe_levels(several)
        yield (("rows",), f"expected a baseline cell, {at}; none is among the selected cells")


def _key(levels: Mapping[str, Level], names: Sequence[str]) -> LevelTexts:
    return tuple(level_key(levels[name]) for name in names)


def _row_names(
    placed: Sequence[_PlacedCell], baseline: Mapping[str, Level], around: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the heading and name of each of these cells, which share a baseline."""
    own = {name: placed[0][0][name] for name in around} if placed else {}
    under, is_one_factor = describe_levels(own), len({names for _, names in placed if names}) < 2
    headings = [
        under if not changed or under or is_one_factor else changed[0] if len(changed) == 1 else SEVERAL
        for _, changed in placed
    ]
    # filled holes may not tell levels apart: `conv(act={act})`, where relu is the default
    for fill in (filled_levels, dict[str, Level]):
        before, names = fill({**own, **baseline}), list[str]()
        for cell, changed in placed:
            after = fill(cell)
            texts = (change_name(each, before[each], after[each]) for each in changed)
            names.append(", ".join(texts) or BASELINE)
        counts = Counter(zip(headings, names, strict=True))
        if len(counts) == len(placed):
            break
    # factors tell rows apart that still have equal names
    return [
        (heading, name if counts[heading, name] == 1 else f"{name} ({', '.join(changed)})")
        for heading, name, (_, changed) in zip(headings, names, placed, strict=True)
    ]


def _differing(cell: Mapping[str, Level], baseline: Mapping[str, Level]) -> tuple[str, ...]:
    return tuple(
        name
        for name, level in baseline.items()
        if cell[name] != ABSENT and level_key(cell[name]) != level_key(level)
    )


def change_name(factor: str, before: Level, after: Level) -> str:
    """Describe a change of levels in a name: `norm = post`, `sa → conv(k=9)`, `− highway_conv(k=20)`."""
    old, new = _recipe(before), _recipe(after)
    difference = describe_difference(old, new) if old and new else ""
    return level_name(difference) or f"{factor} = {level_name(after)}"


def _recipe(level: Level) -> Node | None:
    try:
        return parse(level).root if isinstance(level, str) else None
    except RecipeError:
        return None
