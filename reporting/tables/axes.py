"""The rows and columns of a table: their levels, metrics and headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import Metric, better_arrow
from ...studies.presentation.changes import Changes
from ...studies.schema.level_names import level_names, level_text, one_line
from ...studies.schema.settings import Level

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row: its level, its name, and its group's heading ("" for none)."""

    level: str
    head: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column: its metric, its level ("" if metrics are the columns), and the headings above it.

    `headings` are the lines above the column's name `head`, the outermost first; some may be empty.
    """

    metric: Metric
    level: str
    head: str
    headings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return its name in a published table: its level, or its metric if it has none."""
        return self.level or self.metric.name


def rows_of(spec: CellsTable, levels: Mapping[str, tuple[Level, ...]]) -> tuple[TableRow, ...]:
    """Return the rows in the order of the study, first those without a heading, then by group."""
    heads, under = _heads(levels[spec.rows]), _headings(spec.groups.rows)
    return tuple(
        TableRow(level=text, head=heads[text], group=under.get(text, ""))
        for text in _grouped(tuple(heads), under)
    )


def rows_of_changes(changes: Changes) -> tuple[TableRow, ...]:
    """Return the rows of a table of changes, each under its heading."""
    return tuple(TableRow(level=row.label, head=row.name, group=row.heading) for row in changes.rows)


def columns_of(
    spec: CellsTable, levels: Mapping[str, tuple[Level, ...]], metrics: Mapping[str, tuple[Metric, str]]
) -> tuple[TableColumn, ...]:
    """Return the columns, metric by metric, and within each by level in row order.

    `metrics` has each metric by name, with the text after its name in a heading.
    """
    under = _headings(spec.groups.columns)
    if spec.columns is None:
        return tuple(
            TableColumn(
                metric=metrics[name][0],
                level="",
                head=metric_head(*metrics[name]),
                headings=(under.get(name, ""),) if under else (),
            )
            for name in _grouped(spec.value, under)
        )
    heads = _heads(levels[spec.columns])
    return tuple(
        TableColumn(
            metric=metric,
            level=text,
            head=heads[text],
            headings=(
                *((metric_head(metric, words),) if len(spec.value) > 1 else ()),
                one_line(spec.columns),
                *((under.get(text, ""),) if under else ()),
            ),
        )
        for metric, words in (metrics[name] for name in spec.value)
        for text in _grouped(tuple(heads), under)
    )


def metric_head(metric: Metric, words: str) -> str:
    """Return a metric's column heading: its name, its settings, and an arrow towards better values."""
    return one_line(metric.name) + (f" ({words})" if words else "") + better_arrow(metric)


def _heads(levels: Sequence[Level]) -> dict[str, str]:
    return dict(zip(map(level_text, levels), level_names(levels), strict=True))


def _headings(groups: Mapping[str, Sequence[Level]]) -> dict[str, str]:
    return {level_text(level): one_line(heading) for heading, members in groups.items() for level in members}


def _grouped(texts: tuple[str, ...], under: Mapping[str, str]) -> tuple[str, ...]:
    """Return the levels without a heading, then those with one, by group and in the group's order."""
    return (*(text for text in texts if text not in under), *(text for text in under if text in texts))
