"""The cells of a table, made of tallies: numbers, words, bold and marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...studies.catalog.metrics import ANALYTIC_COSTS, Metric, find_metric, with_sign
from ...studies.catalog.published import PublishedNumber
from ...studies.resolve.trial import Trial
from ..statistics.estimates import Estimate
from ..statistics.pooled_differences import Difference
from .axes import TableColumn, TableRow
from .bold import BestOfColumn, best_of_column
from .differences import ColumnDifferences, significance_text
from .published import PublishedMatch, difference_from_baseline, difference_from_published
from .table import Cell, CellStatus, Footnotes
from .tally import CellKey, Grown, Tally

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable


@dataclass(frozen=True, kw_only=True)
class CellFiller:
    """Filler of the cells of one table.

    `trials` are the trials of its cells with all seeds that count, each at the level of its row. `grown` has
    the tallies of each place, one for each look. Looks are held at `counts` of seeds, and the last is shown.
    `fallbacks` has, by row and column, the tally of the metric that is shown if the last look has no value.
    `pick_remarks` name the levels without a value among the levels that a place is picked from. `untrained`
    says, by row and column, how many trainings have learnt too little to count as trained. `over_budget` has
    the rows and columns whose trials the budget does not allow. `baselines` maps each row to the row that it
    is compared with, and `baseline` names the baseline in words. `differences` has the differences of each
    column, by metric and level.
    """

    spec: CellsTable
    rows: Sequence[TableRow]
    columns: Sequence[TableColumn]
    trials: Sequence[Trial]
    grown: Grown
    counts: Sequence[int]
    fallbacks: Mapping[tuple[str, str], Tally]
    pick_remarks: Mapping[CellKey, str]
    untrained: Mapping[tuple[str, str], str]
    over_budget: Collection[tuple[str, str]]
    baseline: str
    baselines: Mapping[str, str]
    differences: Mapping[tuple[str, str], ColumnDifferences]
    published_match: PublishedMatch | None
    footnotes: Footnotes

    def fill(self) -> tuple[tuple[Cell, ...], ...]:
        """Return the cells of all places by row, filled in reading order, in which footnotes are lettered."""
        estimates = self._estimates()
        best = {place for column in self.best_of_columns for place in column.places}
        return tuple(
            tuple(self._cell(row.level, column, estimates, best) for column in self.columns)
            for row in self.rows
        )

    @cached_property
    def best_of_columns(self) -> tuple[BestOfColumn, ...]:
        """Return the best places of each column."""
        estimates = self._estimates()
        return tuple(
            best_of_column(
                [self._place(row.level, column) for row in self.rows],
                self.grown,
                estimates,
                metric=column.metric,
                spec=self.spec,
                counts=self.counts,
            )
            for column in self.columns
        )

    @cached_property
    def tallies(self) -> Mapping[CellKey, Tally]:
        """Return the trials that are shown of each place."""
        return {place: looks[-1] for place, looks in self.grown.items()}

    def _estimates(self) -> dict[CellKey, Estimate]:
        return {
            place: estimate.within_share() if find_metric(place[2]).is_share else estimate
            for place, tally in self.tallies.items()
            if (estimate := tally.estimate(self.spec.center, self.spec.spread)) is not None
        }

    def _place(self, row: str, column: TableColumn) -> CellKey:
        return row, column.level, column.metric.name

    def _cell(
        self, row: str, column: TableColumn, estimates: Mapping[CellKey, Estimate], best: Collection[CellKey]
    ) -> Cell:
        """Return one cell; it has only the paper's number if the study has no such trial."""
        place, metric = self._place(row, column), column.metric
        tally, estimate = self.tallies.get(place), estimates.get(place)
        published = self.published_match.published_at(row, column) if self.published_match else None
        marks = tuple(map(self.footnotes.mark, self._remarks(place, tally, published)))
        published_text = self._published_text(row, published, estimate, column) if published else ""
        if tally is None:
            refused = (row, column.level) in self.over_budget
            return Cell(
                status=CellStatus.REFUSED if refused else CellStatus.UNPLANNED,
                text=CellStatus.REFUSED.value if refused else "",
                marks=marks,
                published=published,
                published_text=published_text,
            )
        if not tally.values and (fallback := self._fallback_cell(row, column)) is not None:
            return replace(fallback, marks=marks, published=published, published_text=published_text)
        spread, interval = spread_texts(estimate, metric, self.spec)
        differences = self.differences[metric.name, column.level]
        difference, decided = differences.by_row.get(row), differences.decided.get(row)
        return Cell(
            status=tally.status,
            estimate=estimate,
            text=metric.format(estimate.value) if estimate else tally.placeholder,
            spread=spread,
            interval=interval,
            difference_text=_difference_text(
                difference, metric, significance_text(decided, self.spec.significance)
            ),
            difference=difference.mean if difference else None,
            difference_half_width=difference.half_width if difference else None,
            is_significant=decided is not None and decided.differs,
            is_within=None
            if decided is None or decided.p is None or differences.margin is None
            else decided.is_within,
            p=decided.p if decided else None,
            best=place in best,
            marks=marks,
            picked=tally.label,
            published=published,
            published_text=published_text,
        )

    def _fallback_cell(self, row: str, column: TableColumn) -> Cell | None:
        """Return the cell of the fallback metric if the column's has no value; None if it has none either."""
        tally = self.fallbacks.get((row, column.level))
        estimate = tally.estimate(self.spec.center, self.spec.spread) if tally else None
        if tally is None or estimate is None or self.spec.otherwise is None:
            return None
        metric = find_metric(self.spec.otherwise, self.spec.digits)
        estimate = estimate.within_share() if metric.is_share else estimate
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
        remarks: list[str] = []
        if tally is not None:
            over_levels = bool(self.spec.over) and not tally.label
            remarks += [tally.label] if tally.label else []
            fallback = None if tally.values else self.fallbacks.get(place[:2])
            remarks += (fallback or tally).remarks("trials" if over_levels else "seeds")
        if pick_remark := self.pick_remarks.get(place, ""):
            remarks.append(pick_remark)
        if remark := self.untrained.get(place[:2], ""):
            remarks.append(remark)
        return remarks

    def _published_text(
        self, row: str, published: PublishedNumber, estimate: Estimate | None, column: TableColumn
    ) -> str:
        extra = ""
        if self.spec.published.show == "difference":
            extra = difference_from_published(estimate.value if estimate else None, published, column.metric)
        elif self.published_match and (baseline := self.baselines.get(row)):
            extra = difference_from_baseline(published, self.published_match.published_at(baseline, column))
        return f"{published.text_with_deviation} ({extra})" if extra else published.text_with_deviation


def _difference_text(difference: Difference | None, metric: Metric, significance: str) -> str:
    if difference is None:
        return ""
    half = f" ± {metric.format(difference.half_width)}" if difference.half_width is not None else ""
    return with_sign(metric.format(difference.mean)) + half + significance


def spread_texts(estimate: Estimate | None, metric: Metric, spec: CellsTable) -> tuple[str, str]:
    """Return the text after the ± of a number, and its interval; at most one is not empty."""
    if estimate is None or estimate.spread is None or estimate.low is None or estimate.high is None:
        return "", ""
    if metric.name in ANALYTIC_COSTS and not estimate.spread:
        return "", ""
    if spec.spread == "ci":
        return "", f"[{metric.format(estimate.low)}, {metric.format(estimate.high)}]"
    return metric.format(estimate.spread), ""
