"""The cells of a table, from tallies to what is printed: numbers, words, bold and marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from .axes import Column, Row
from .beside import Beside, from_baseline, from_paper
from .footnotes import Footnotes
from .labels import level_text
from .measures import SHARED, measure, signed
from .metrics import Metric
from .published import Published
from .statistics import Estimate
from .table import Cell, Status
from .table_spec import TableSpec
from .tally import Place, Tally
from .winners import winners

NOT_RUN = "–"
"""What stands in a cell of which nothing is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filler:
    """Fills the cells of one table.

    `tallies` has the trials of each place that the study has, `instead` those of what stands in a row and a
    column where they have no value, `lost` remarks on levels without one, where some
    are picked from, `refused` the rows and columns whose trials the budget does not allow.
    """

    spec: TableSpec
    rows: Sequence[Row]
    columns: Sequence[Column]
    tallies: Mapping[Place, Tally]
    instead: Mapping[tuple[str, str], Tally]
    lost: Mapping[Place, str]
    refused: Collection[tuple[str, str]]
    beside: Beside | None
    notes: Footnotes

    def fill(self) -> tuple[tuple[Cell, ...], ...]:
        """The cell of every place, by row; in reading order, so that footnotes are lettered as met."""
        found = {
            place: tally.estimate(self.spec.center, self.spec.spread) for place, tally in self.tallies.items()
        }
        estimates = {place: estimate for place, estimate in found.items() if estimate is not None}
        wins = {
            place
            for column in self.columns
            for place in winners(
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

    def _place(self, row: str, column: Column) -> Place:
        """Where a cell's trials are in the tallies."""
        return row, column.level, column.metric.name

    def _cell(
        self, row: str, column: Column, estimates: Mapping[Place, Estimate], wins: Collection[Place]
    ) -> Cell:
        """One cell; nothing of ours where the study has no such trial."""
        place, metric = self._place(row, column), column.metric
        tally, estimate = self.tallies.get(place), estimates.get(place)
        published = self.beside.at(row, column) if self.beside else None
        marks = tuple(map(self.notes.mark, self._remarks(place, tally, published)))
        printed = self._printed(published, estimate, column) if published else ""
        if tally is None:
            refused = (row, column.level) in self.refused
            return Cell(
                status=Status.REFUSED if refused else Status.UNPLANNED,
                shown=Status.REFUSED.value if refused else "",
                marks=marks,
                published=published,
                printed=printed,
            )
        if not tally.values and (other := self._other(row, column)) is not None:
            return replace(other, marks=marks, published=published, printed=printed)
        word = NOT_RUN if tally.status is Status.MISSING else tally.status.value
        spread, interval = spread_texts(estimate, metric, self.spec)
        less = self._less(row, column, estimates)
        return Cell(
            status=tally.status,
            estimate=estimate,
            shown=metric.show(estimate.value) if estimate else word,
            spread=spread,
            interval=interval,
            difference="" if less is None else signed(metric.show(less)),
            less=less,
            best=place in wins,
            marks=marks,
            picked=tally.label,
            published=published,
            printed=printed,
        )

    def _other(self, row: str, column: Column) -> Cell | None:
        """The cell of the metric that stands where there is none of the column's; None without a value."""
        tally = self.instead.get((row, column.level))
        estimate = tally.estimate(self.spec.center, self.spec.spread) if tally else None
        if tally is None or estimate is None or self.spec.otherwise is None:
            return None
        metric = measure(self.spec.otherwise, self.spec.digits)
        spread, interval = spread_texts(estimate, metric, self.spec)
        parts = (metric.show(estimate.value), f"± {spread}" if spread else "", interval)
        return Cell(
            status=tally.status,
            estimate=estimate,
            shown=f"({' '.join(part for part in parts if part)})",
            picked=tally.label,
            metric=metric.name,
        )

    def _remarks(self, place: Place, tally: Tally | None, published: Published | None) -> list[str]:
        """The sentences of a cell's footnotes."""
        remarks: list[str] = []
        if tally is not None:
            several = bool(self.spec.over) and not tally.label  # levels, each with its seeds
            remarks += [tally.label] if tally.label else []
            instead = None if tally.values else self.instead.get(place[:2])
            name = place[2] if instead is None else self.spec.otherwise or ""
            remarks += (instead or tally).remarks(name, "trials" if several else "seeds")
        if lost := self.lost.get(place, ""):
            remarks.append(lost)
        return remarks

    def _less(self, row: str, column: Column, estimates: Mapping[Place, Estimate]) -> float | None:
        """What a cell is above or below the baseline of its column; None for the baseline itself."""
        if self.spec.baseline is None or row == level_text(self.spec.baseline):
            return None
        own = estimates.get(self._place(row, column))
        base = estimates.get(self._place(level_text(self.spec.baseline), column))
        return own.value - base.value if own and base else None

    def _printed(self, published: Published, estimate: Estimate | None, column: Column) -> str:
        """The text of the paper's number, and its difference from the baseline or from ours."""
        extra = ""
        if self.spec.published.show == "difference":
            extra = from_paper(estimate.value if estimate else None, published, column.metric)
        elif self.spec.baseline is not None and self.beside:
            extra = from_baseline(published, self.beside.at(level_text(self.spec.baseline), column))
        return f"{published.printed} ({extra})" if extra else published.printed


def spread_texts(estimate: Estimate | None, metric: Metric, spec: TableSpec) -> tuple[str, str]:
    """What stands behind the ± of a number, and its interval, of which it has at most one.

    A cost that all seeds share has neither.
    """
    if estimate is None or estimate.spread is None or estimate.low is None or estimate.high is None:
        return "", ""
    if metric.name in SHARED and not estimate.spread:
        return "", ""
    if spec.spread == "ci":
        return "", f"[{metric.show(estimate.low)}, {metric.show(estimate.high)}]"
    return metric.show(estimate.spread), ""
