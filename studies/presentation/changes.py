"""Tables with `rows = "changes"`: each row is a difference from a baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

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
    from ...reporting.kinds.cells import CellsTable
    from ..designs.cumulative import Stepwise

CHANGES = "changes"
"""The value of `rows` that selects rows of changes."""

SEVERAL = "several"
"""The heading of rows in which more than one factor differs."""

BASELINE = "baseline"
"""The name of a baseline's row."""

CellKey = tuple[str, ...]
"""The levels that identify a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A row of a table of changes.

    `baseline` is the index of the baseline's row. `reference` is the index of the row from which the
    difference is computed: the baseline's, or the previous one. `choices` is the number of candidates from
    which this change was chosen; 1 except on a path.
    """

    name: str
    heading: str
    baseline: int
    reference: int
    choices: int = 1
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The rows of a table of changes, and their baseline.

    `baseline` has the levels of the factors that may differ. `around` has the factors with a separate
    baseline at each level. `changing` has the factors that differ in some row. `numbers` maps the identifying
    levels of each cell to its row. With `by_step`, differences are from the previous row.
    """

    baseline: Mapping[str, Level]
    around: tuple[str, ...]
    changing: frozenset[str]
    rows: tuple[ChangeRow, ...]
    numbers: Mapping[CellKey, int]
    by_step: bool

    def row(self, levels: Mapping[str, Level]) -> ChangeRow:
        """Return the row that shows the cell with these levels."""
        return self.rows[self.numbers[_key(levels, (*self.around, *self.baseline))]]

    def has_row(self, levels: Mapping[str, Level]) -> bool:
        """Return whether the table has a row for the cell with these levels.

        In an ablation path, only the cells on the path have a row.
        """
        return _key(levels, (*self.around, *self.baseline)) in self.numbers

    def describe_baseline(self) -> str:
        """Describe the baseline and its levels for a caption."""
        filled = filled_levels(self.baseline)
        levels = {name: level for name, level in filled.items() if name in self.changing}
        of = f" of each {' and '.join(self.around)}" if self.around else ""
        if self.by_step:
            return f"the row before (baseline{of}: {describe_levels(levels)})" if levels else "the row before"
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
    blocks: dict[CellKey, dict[CellKey, dict[str, Level]]] = {}
    for cell in design.cells():
        if is_selected(spec.select, cell):
            blocks.setdefault(_key(cell, around), {}).setdefault(_key(cell, (*around, *baseline)), cell)
    by_step = _takes_steps(spec, design) and spec.against != "baseline"
    rows: list[ChangeRow] = []
    numbers: dict[CellKey, int] = {}
    stepping = tuple(name for name in design.inner if name in baseline)
    rows_of_steps = cast("Stepwise", design).path() if _takes_steps(spec, design) else []
    for cells in blocks.values():
        first = next(iter(cells.values()))
        steps = [_key(design.with_absent({**first, **row}), stepping) for row in rows_of_steps]
        keys = ((cell, _key(cell, stepping)) for cell in cells.values())
        placed = [(cell, steps.index(key) if key in steps else None) for cell, key in keys]
        if rows_of_steps and design.kind == "path":
            placed = [(cell, position) for cell, position in placed if position is not None]
        for cell, row in _block_rows(placed, baseline, around, number=len(rows)):
            numbers[_key(cell, (*around, *baseline))] = len(rows)
            choices = _choices(design, len(rows), by_step=by_step) if rows_of_steps else 1
            rows.append(replace(row, reference=row.reference if by_step else row.baseline, choices=choices))
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
        by_step=by_step,
    )


def change_faults(spec: CellsTable, design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Yield the faults of a table of changes, such as a wrong baseline."""
    factors = design.known_levels
    if CHANGES in factors:
        yield (
            ("rows",),
            f"a factor is called {CHANGES}: rename it, since rows = {CHANGES} has another meaning",
        )
    if spec.against == "previous" and not _takes_steps(spec, design):
        message = "expected the study's own baseline and a design with steps"
        yield ("against",), f'{message}, such as design = "cumulative"'
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


def _key(levels: Mapping[str, Level], names: Sequence[str]) -> CellKey:
    return tuple(level_key(levels[name]) for name in names)


def _takes_steps(spec: CellsTable, design: Design) -> bool:
    return design.kind in ("cumulative", "path") and not spec.baseline and spec.columns not in design.inner


def _choices(design: Design, step: int, *, by_step: bool) -> int:
    if design.kind != "path" or not step:
        return 1
    left = len(cast("Stepwise", design).steps) + 1 - step
    # a difference from the row before depends on two choices: that row was one of left + 1 candidates
    return left * (left + 1 if by_step and step > 1 else 1)


def _block_rows(
    placed: Sequence[tuple[Mapping[str, Level], int | None]],
    baseline: Mapping[str, Level],
    around: Sequence[str],
    *,
    number: int,
) -> Iterator[tuple[Mapping[str, Level], ChangeRow]]:
    """Yield the cells that share a baseline, in the order of the table, each with its row.

    `number` is the index of the first row. Steps come in the order of their positions, then other cells by
    their number of changes.
    """
    if not placed:
        return
    cells, positions = zip(*placed, strict=True)
    first = {name: cells[0][name] for name in around} | dict(baseline)
    under = describe_levels({name: first[name] for name in around})
    changed = [_differing(cell, baseline) for cell in cells]
    order = sorted(
        range(len(cells)),
        key=lambda at: (
            *(positions[at] is None, positions[at] or 0, len(changed[at])),
            *map(list(baseline).index, changed[at]),
        ),
    )
    is_one_factor = len({names for names in changed if names}) < 2

    def rows(
        before: Mapping[str, Level], after: Sequence[Mapping[str, Level]]
    ) -> list[tuple[ChangeRow, Sequence[str]]]:
        """Return a row for each cell, named by its changes from `before` to `after`, and these factors."""
        found: list[tuple[ChangeRow, Sequence[str]]] = []
        for place, at in enumerate(order):
            names = changed[at]
            if positions[at]:
                names = [each for each in names if each not in changed[order[place - 1]]]
                heading, reference, describe = under, number + place - 1, step_name
            else:
                single = "" if is_one_factor or not names else names[0] if len(names) == 1 else SEVERAL
                heading, reference, describe = under or single, number, change_name
            name = ", ".join(describe(each, before[each], after[at][each]) for each in names) or BASELINE
            found.append((ChangeRow(name=name, heading=heading, baseline=number, reference=reference), names))
        return found

    found = rows(filled_levels(first), [filled_levels(cell) for cell in cells])
    if len({(row.heading, row.name) for row, _ in found}) < len(found):
        # filled placeholders may no longer tell levels apart: `conv(act={act})`, where relu is the default
        found = rows(first, cells)
    counts = Counter((row.heading, row.name) for row, _ in found)
    for at, (row, names) in zip(order, found, strict=True):
        is_alone = counts[row.heading, row.name] == 1
        yield cells[at], row if is_alone else replace(row, name=f"{row.name} ({', '.join(names)})")


def step_name(factor: str, before: Level, after: Level) -> str:
    """Return the name of a row for one change: `+ gate`, `+ norm = post`, `sa → conv(k=9)`."""
    if isinstance(after, bool):
        return f"+ {factor}" if after else f"− {factor}"
    name = change_name(factor, before, after)
    return name if name.startswith(("+ ", "− ")) or " → " in name else f"+ {name}"


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
