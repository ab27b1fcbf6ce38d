"""The cells of a table, from tallies to what is printed: numbers, words, bold and marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ...studies.catalog.metrics import ANALYTIC_COSTS, Metric, find_metric, with_sign
from ...studies.catalog.published import PublishedNumber
from ...studies.schema.level_names import level_text
from ...studies.schema.table import TableSpec
from ..statistics.estimates import Estimate
from .axes import TableColumn, TableRow
from .bold import best_places
from .published_match import PublishedMatch, difference_from_baseline, difference_from_published
from .table import Cell, CellStatus, Footnotes
from .tally import CellKey, Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFiller:
    """Fills the cells of one table.

    `tallies` has the trials of each place that the study has, `fallbacks` by row and column those of the
    metric that is shown where they have no value. `pick_remarks` tell which levels, of those that a place is
    picked from, have no value; `over_budget` has the rows and columns whose trials the budget does not allow.
    """

    spec: TableSpec
    rows: Sequence[TableRow]
    columns: Sequence[TableColumn]
    tallies: Mapping[CellKey, Tally]
    fallbacks: Mapping[tuple[str, str], Tally]
    pick_remarks: Mapping[CellKey, str]
    over_budget: Collection[tuple[str, str]]
    published_match: PublishedMatch | None
    footnotes: Footnotes

    def fill(self) -> tuple[tuple[Cell, ...], ...]:
        """The cell of every place, by row; in reading order, so that footnotes are lettered as met."""
        found = {
            place: tally.estimate(self.spec.center, self.spec.spread) for place, tally in self.tallies.items()
        }
        estimates = {place: estimate for place, estimate in found.items() if estimate is not None}
        wins = {
            place
            for column in self.columns
            for place in best_places(
                [self._place(row.level, column) for row in self.rows],
                self.tallies,
                estimates,
                metric=column.metric,
                spec=self.spec,
            )
        }
        return tuple(
            tuple(self._cell(row.level, column, estimates, wins) for column in self.columns)
            for row in self.rows
        )

    def _place(self, row: str, column: TableColumn) -> CellKey:
        """Where a cell's trials are in the tallies."""
        return row, column.level, column.metric.name

    def _cell(
        self, row: str, column: TableColumn, estimates: Mapping[CellKey, Estimate], wins: Collection[CellKey]
    ) -> Cell:
        """One cell; nothing of ours where the study has no such trial."""
        place, metric = self._place(row, column), column.metric
        tally, estimate = self.tallies.get(place), estimates.get(place)
        published = self.published_match.published_at(row, column) if self.published_match else None
        marks = tuple(map(self.footnotes.mark, self._remarks(place, tally, published)))
        printed = self._published_text(published, estimate, column) if published else ""
        if tally is None:
            refused = (row, column.level) in self.over_budget
            return Cell(
                status=CellStatus.REFUSED if refused else CellStatus.UNPLANNED,
                text=CellStatus.REFUSED.value if refused else "",
                marks=marks,
                published=published,
                published_text=printed,
            )
        if not tally.values and (other := self._fallback_cell(row, column)) is not None:
            return replace(other, marks=marks, published=published, published_text=printed)
        spread, interval = spread_texts(estimate, metric, self.spec)
        less = self._baseline_difference(row, column, estimates)
        return Cell(
            status=tally.status,
            estimate=estimate,
            text=metric.format(estimate.value) if estimate else tally.placeholder,
            spread=spread,
            interval=interval,
            difference_text="" if less is None else with_sign(metric.format(less)),
            difference=less,
            best=place in wins,
            marks=marks,
            picked=tally.label,
            published=published,
            published_text=printed,
        )

    def _fallback_cell(self, row: str, column: TableColumn) -> Cell | None:
        """The cell of the metric that stands where there is none of the column's; None without a value."""
        tally = self.fallbacks.get((row, column.level))
        estimate = tally.estimate(self.spec.center, self.spec.spread) if tally else None
        if tally is None or estimate is None or self.spec.otherwise is None:
            return None
        metric = find_metric(self.spec.otherwise, self.spec.digits)
        spread, interval = spread_texts(estimate, metric, self.spec)
        parts = (metric.format(estimate.value), f"± {spread}" if spread else "", interval)
        return Cell(
            status=tally.status,
            estimate=estimate,
            text=f"({' '.join(part for part in parts if part)})",
            picked=tally.label,
            metric=metric.name,
        )

    def _remarks(self, place: CellKey, tally: Tally | None, published: PublishedNumber | None) -> list[str]:
        """The sentences of a cell's footnotes."""
        remarks: list[str] = []
        if tally is not None:
            several = bool(self.spec.over) and not tally.label  # levels, each with its seeds
            remarks += [tally.label] if tally.label else []
            instead = None if tally.values else self.fallbacks.get(place[:2])
            remarks += (instead or tally).remarks("trials" if several else "seeds")
        if lost := self.pick_remarks.get(place, ""):
            remarks.append(lost)
        return remarks

    def _baseline_difference(
        self, row: str, column: TableColumn, estimates: Mapping[CellKey, Estimate]
    ) -> float | None:
        """What a cell is above or below the baseline of its column; None for the baseline itself."""
        if self.spec.baseline is None or row == level_text(self.spec.baseline):
            return None
        own = estimates.get(self._place(row, column))
        base = estimates.get(self._place(level_text(self.spec.baseline), column))
        return own.value - base.value if own and base else None

    def _published_text(
        self, published: PublishedNumber, estimate: Estimate | None, column: TableColumn
    ) -> str:
        """The text of the paper's number, and its difference from the baseline or from ours."""
        extra = ""
        if self.spec.published.show == "difference":
            extra = difference_from_published(estimate.value if estimate else None, published, column.metric)
        elif self.spec.baseline is not None and self.published_match:
            extra = difference_from_baseline(
                published, self.published_match.published_at(level_text(self.spec.baseline), column)
            )
        return f"{published.text_with_deviation} ({extra})" if extra else published.text_with_deviation


def spread_texts(estimate: Estimate | None, metric: Metric, spec: TableSpec) -> tuple[str, str]:
    """What stands behind the ± of a number, and its interval, of which it has at most one.

    A cost that all seeds share has neither.
    """
    if estimate is None or estimate.spread is None or estimate.low is None or estimate.high is None:
        return "", ""
    if metric.name in ANALYTIC_COSTS and not estimate.spread:
        return "", ""
    if spec.spread == "ci":
        return "", f"[{metric.format(estimate.low)}, {metric.format(estimate.high)}]"
    return metric.format(estimate.spread), ""
