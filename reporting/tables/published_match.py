"""The paper's numbers beside ours: which of its cells is which of ours, and what only the paper has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from ...studies.catalog.metrics import Metric, with_sign
from ...studies.catalog.published import PublishedNumber, PublishedTable, match_published_keys
from ...studies.presentation.table import PublishedSpec
from .axes import TableColumn, TableRow


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMatch:
    """A paper's table matched with ours: `rows` and `columns` have its names by our levels and metrics."""

    paper: PublishedTable
    rows: Mapping[str, str]
    columns: Mapping[tuple[str, str], str]  # by metric and level

    def published_at(self, row: str, column: TableColumn) -> PublishedNumber | None:
        """The paper's number for one of our cells."""
        keys = self.rows.get(row), self.columns.get((column.metric.name, column.level))
        return self.paper.cells.get((keys[0], keys[1])) if keys[0] and keys[1] else None

    @property
    def paper_only_rows(self) -> tuple[str, ...]:
        """The rows that only the paper has."""
        return tuple(row for row in self.paper.rows if row not in self.rows.values())

    @property
    def paper_only_columns(self) -> tuple[str, ...]:
        """The columns that only the paper has."""
        return tuple(column for column in self.paper.columns if column not in self.columns.values())


def match_published(
    paper: PublishedTable, spec: PublishedSpec, rows: Sequence[TableRow], columns: Sequence[TableColumn]
) -> PublishedMatch:
    """Find the paper's names of our rows and columns: as the study gives them, else the same, else by blocks.

    A column of a metric and a level is named by both with a colon between or, if the metric is the first, by
    its level. A name that the study gives for a metric holds for all of its levels.
    """
    levels = [row.level for row in rows]
    unnamed = [level for level in levels if level not in spec.rows]
    row_names = {
        **match_published_keys(unnamed, paper.rows),
        **{level: spec.rows[level] for level in levels if level in spec.rows},
    }
    matched = match_published_keys([column.name for column in columns], paper.columns)
    column_names: dict[tuple[str, str], str] = {}
    for column in columns:
        metric, level = column.metric.name, column.level
        own_name = f"{metric}:{level}" if level else metric
        given = spec.columns.get(own_name) or spec.columns.get(level)
        if given is None and level and metric in spec.columns:
            given = f"{spec.columns[metric]}:{level}"
        by_level = matched.get(column.name) if not level or metric == columns[0].metric.name else None
        name = given or (own_name if own_name in paper.columns else by_level)
        if name in paper.columns:
            column_names[metric, level] = name
    return PublishedMatch(paper=paper, rows=row_names, columns=column_names)


def difference_from_baseline(number: PublishedNumber, baseline: PublishedNumber | None) -> str:
    """The difference of two printed numbers, in their digits; empty if one of them is not a number."""
    if baseline is None or number is baseline or not (number.text and baseline.text):
        return ""
    return with_sign(str(Decimal(number.text) - Decimal(baseline.text)))


def difference_from_published(value: float | None, number: PublishedNumber, metric: Metric) -> str:
    """Our value less a printed number; empty if one of them is missing."""
    if value is None or number.value is None:
        return ""
    return with_sign(metric.format(value - number.value))
