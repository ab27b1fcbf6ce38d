"""Keys of tables that show a study's cells, which are combinations of factor levels, and their checks.

`reporting/kinds/` has the function that makes each table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator

from ...errors import nearest_hint
from ..catalog.metrics import (
    CURRENCIES,
    METRICS,
    METRICS_AND_COSTS,
    direction_faults,
    is_target,
    metric_family,
    pick_faults,
    unknown_metric,
)
from ..catalog.published import PublishedNumbers, PublishedTable
from ..schema.design import Design
from ..schema.factors import SEED, level_text
from ..schema.settings import Level, Names, NonEmptyNames
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from ..text.units import listed
from .changes import CHANGES, change_faults, unselected_baseline_faults
from .kinds import (
    KeyFault,
    SpreadTable,
    TableKind,
    column_text,
    factor_faults,
    find_levels,
    level_name_fault,
    metric_faults,
    mixed_levels_fault,
    select_faults,
    selected_levels,
)


class PublishedSpec(StrictModel):
    """A value of the key `published`: the papers' table to compare with.

    `rows` and `columns` have the paper's names where they differ from this table's names.
    """

    table: str | None = None
    """the table's name, which several papers may use, or `"PAPER:TABLE"` (default: the name of this table)"""
    rows: dict[str, str] = Field(default={})
    """the paper's names of rows, by level; needed where equal blocks do not determine them"""
    columns: dict[str, str] = Field(default={})
    """the paper's names of columns, by level, metric or `"metric:level"`"""


class CellsTable(SpreadTable):
    """`[[table]]` of the kind "cells": a factor as rows, and another factor or metrics as columns."""

    kind: Literal["cells"] = "cells"
    """a table of cells, with these keys; other kinds have other keys"""
    rows: str
    """the factor whose levels are rows, or `"changes"`: the baseline, and cells named by their difference
    from it"""
    columns: str | None = None
    """the factor whose levels are columns (default: the metrics are the columns)"""
    value: NonEmptyNames
    """a metric or a cost, or a list of them, shown side by side"""
    published: Annotated[tuple[PublishedSpec, ...], Field(strict=False)] = ()
    """the papers' table by name, or a table with these keys, or a list of them (default: by this name)"""
    bold: Literal["tested", "best"] = "tested"
    """what is bold: `"tested"`, the best value of several seeds, where ≈ marks values that a test cannot tell
    from it; `"best"`, all values that are printed like the best, without a test"""
    baseline: Any = None
    """the row to which all other rows are compared; for `changes`, factor levels that differ from the study's
    baseline"""
    over: Names = ()
    """factors over which a cell is aggregated, besides its seeds"""
    pick_by: str | None = None
    """the metric, preferably of the dev split, whose mean over seeds picks the level of `over` in each cell
    (default: a cell shows the mean over all levels)"""
    otherwise: str | None = None
    """a metric shown in parentheses in cells without a `value`"""
    untrained: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(default={})
    """by metric, the value that counts as trained; a footnote counts a cell's trainings that end worse"""
    digits: dict[str, Annotated[int, Field(ge=0, le=12)]] = Field(default={})
    """decimals by metric (default: the metric's own)"""
    studies: Names = ()
    """studies whose columns are side by side: files relative to this one, or names in the same store"""

    @property
    def studies_beside(self) -> tuple[str, ...]:
        return self.studies

    @field_validator(
        "published", mode="before", json_schema_input_type=str | PublishedSpec | list[str | PublishedSpec]
    )
    @classmethod
    def expand_table_names(cls, tables: object) -> object:
        """Convert `published = "NAME"` to the long form `published = [{ table = "NAME" }]`."""
        every = list(tables) if isinstance(tables, list | tuple) else [tables]
        return [{"table": table} if isinstance(table, str) else table for table in every]

    @property
    def published_names(self) -> tuple[str, ...]:
        return tuple(each.table or self.name for each in self.published or (PublishedSpec(),))

    def published_tables(self, published: PublishedNumbers) -> list[tuple[PublishedSpec, PublishedTable]]:
        """Return the papers' tables that this table shows, each once with its names of rows and columns."""
        found: dict[tuple[str, str], tuple[PublishedSpec, PublishedTable]] = {}
        for spec in self.published or (PublishedSpec(),):
            for table in published.find(spec.table or self.name):
                found.setdefault((table.paper, table.name), (spec, table))
        return list(found.values())

    def named_metrics(self) -> Iterator[KeyFault]:
        yield from super().named_metrics()
        for key, name in (("otherwise", self.otherwise), ("pick_by", self.pick_by)):
            if name is not None:
                yield (key,), name
        for name in self.untrained:
            yield ("untrained", name), name

    def with_levels(self, design: Design) -> Self:
        """Replace the names of levels in this table's keys, as in `baseline`, by the levels, in a copy.

        A table of several studies is left as it is: its levels are theirs.
        """
        if self.studies:
            return self
        found, known = super().with_levels(design), design.known_levels
        row_texts, column_texts = (
            tuple(map(level_text, known.get(name or "", ()))) for name in (self.rows, self.columns)
        )
        baseline, published = found.baseline, self.published
        if isinstance(self.baseline, Mapping):
            baseline = {
                name: find_levels(level, known.get(name, ())) for name, level in self.baseline.items()
            }
        published = tuple(
            each.model_copy(
                update={
                    "rows": {find_levels(name, row_texts): their for name, their in each.rows.items()},
                    "columns": {
                        column_text(name, column_texts): their for name, their in each.columns.items()
                    },
                }
            )
            for each in self.published
        )
        return found.model_copy(update={"baseline": baseline, "published": published})

    def faults(self, design: Design, published: PublishedNumbers) -> list[KeyFault]:
        """Return the faults of this table's keys in a study. Levels that overrides removed are no faults."""
        if self.studies:
            return [*_studies_faults(self), *_metric_faults(self), *_published_faults(self, {}, published)]
        factors = design.known_levels
        faults = [*_factor_faults(self, factors), *select_faults(self.select, factors)]
        levels = factors if faults else selected_levels(self.select, factors)
        if self.rows == CHANGES:
            faults += change_faults(self, design)
            if not faults:
                faults += unselected_baseline_faults(self, design)
        elif not faults:
            # a cell must not mix levels of a factor that the table does not show
            shown = [name for name in (self.rows, self.columns, *self.over) if name is not None]
            if mixed := mixed_levels_fault(shown, self.select, design, over_hint="average them: over = {}"):
                faults.append((("rows" if self.columns is None else "columns",), mixed))
        known = (self.columns is None or self.columns in factors) and self.rows in factors
        if known and self.baseline is not None:
            message = level_name_fault(self.baseline, levels[self.rows], self.rows)
            faults += [(("baseline",), message)] if message else []
        return [*faults, *_metric_faults(self), *_published_faults(self, factors, published)]


def _studies_faults(spec: CellsTable) -> Iterator[KeyFault]:
    """Yield a fault for each key that compares rows, and for a study that is named twice."""
    for number, name in enumerate(spec.studies):
        if name in spec.studies[:number]:
            yield ("studies", number), f"the study '{name}' is listed twice"
    if spec.baseline is not None:
        yield ("baseline",), "a table of several studies compares no rows: remove baseline"
    if spec.rows == CHANGES:
        yield ("rows",), "a table of several studies has no changes of a baseline: expected a factor"


def _factor_faults(spec: CellsTable, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    named: list[tuple[KeyPath, str]] = [(("rows",), spec.rows)]
    named += [] if spec.columns is None else [(("columns",), spec.columns)]
    named += [(("over", number), factor) for number, factor in enumerate(spec.over)]
    for path, message in factor_faults(named, factors, {"rows": (CHANGES,)}):
        family = next((name for name in spec.value if name in METRICS and METRICS[name].index_titles), None)
        is_index = path == ("columns",) and family is not None
        hint = f'; to show several metrics, leave out columns: value = ["{family}[40]", "{family}[80]"]'
        yield path, message + (hint if is_index else "")
    if SEED in spec.over:
        yield ("over", spec.over.index(SEED)), "every cell already averages its seeds: remove seed from over"


def _metric_faults(spec: CellsTable) -> Iterator[KeyFault]:
    yield from metric_faults(spec.value, spec.digits, [spec.otherwise] if spec.otherwise else [])
    for name in spec.untrained:
        if metric_family(name) not in METRICS_AND_COSTS:
            yield ("untrained",), unknown_metric(name)
        yield from direction_faults("untrained", name)
    for message in pick_faults(spec.pick_by, spec.over):
        yield ("pick_by",), message
    path: KeyPath = ("otherwise",)
    if spec.otherwise is None:
        return
    if metric_family(spec.otherwise) not in METRICS_AND_COSTS:
        yield path, unknown_metric(spec.otherwise)
    if spec.pick_by:
        yield from direction_faults("otherwise", spec.otherwise)
    if spec.otherwise in spec.value:
        yield path, f"expected a metric that is not in value, got '{spec.otherwise}'"
    if len(spec.value) > 1:
        yield path, f"expected a single metric in value together with otherwise, got {len(spec.value)}"
    if spec.baseline is not None:
        yield path, "otherwise cannot be combined with baseline: remove one of them"


def _published_faults(
    spec: CellsTable, factors: Mapping[str, tuple[Level, ...]], published: PublishedNumbers
) -> Iterator[KeyFault]:
    """Yield a fault if `published` names an unknown table, or a row or column that does not exist.

    A row or column must exist in both tables. The published table's name defaults to the name of our table.
    The published table must exist if the keys name rows or columns. Names of rows and columns are checked
    only if the table is known.
    """
    columns = list(spec.value)
    if spec.columns is not None and spec.columns in factors:
        texts = [level_text(level) for level in factors[spec.columns]]
        columns += [*texts, *(f"{name}:{text}" for name in spec.value for text in texts)]
    rows = list(map(level_text, factors.get(spec.rows, ())))
    for number, each in enumerate(spec.published):
        if each.table is None and not each.rows and not each.columns:
            continue
        at: KeyPath = ("published",) if len(spec.published) == 1 else ("published", number)
        name = each.table or spec.name
        yield from ((at, message) for message in published.faults(name))
        tables = published.find(name)
        if not tables or spec.rows not in factors:
            continue
        title = listed([table.title for table in tables])
        sides = (
            ("row", each.rows, rows, [row for table in tables for row in table.rows]),
            ("column", each.columns, columns, [column for table in tables for column in table.columns]),
        )
        for side, names, ours, theirs in sides:
            for our, their in names.items():
                path = (*at, f"{side}s", our)
                if our not in ours:
                    yield path, f"no {side} '{our}'{nearest_hint(our, ours)}"
                if their not in theirs and not published.is_partial:
                    yield path, f"{title} has no {side} '{their}'{nearest_hint(their, theirs)}"


class SpeedupTable(TableKind):
    """`[[table]] kind = "speedup"`: costs to reach a target, relative to a baseline."""

    kind: Literal["speedup"]
    rows: str
    """the factor whose levels are compared"""
    baseline: Any
    """the row to which the others are compared"""
    value: NonEmptyNames
    """a target, as `flops_to[dev_loss <= 1.5]`, or a list of them, side by side"""

    def faults(self, design: Design, published: PublishedNumbers) -> list[KeyFault]:
        factors = design.known_levels
        faults = [
            *factor_faults([(("rows",), self.rows)], factors, {}),
            *select_faults(self.select, factors),
            *metric_faults(self.value),
        ]
        for number, name in enumerate(self.value):
            if not is_target(name):
                expected = ", ".join(f"{family}[…]" for family in CURRENCIES)
                faults.append((("value", number), f"expected {expected}, got '{name}'"))
        if faults:
            return faults
        if mixed := mixed_levels_fault([self.rows], self.select, design):
            faults.append((("rows",), mixed))
        return [*faults, *self.level_faults(factors)]
