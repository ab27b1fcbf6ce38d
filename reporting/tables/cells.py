"""The construction of a table of cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from ...studies.catalog.metrics import (
    ANALYTIC_COSTS,
    BETTER_ARROWS,
    Metric,
    find_metric,
    with_sign,
)
from ...studies.catalog.published import PublishedNumbers
from ...studies.presentation.changes import CHANGES, read_changes
from ...studies.presentation.kinds import Spread, is_selected, selected_levels
from ...studies.presentation.metric_words import with_true_title
from ...studies.resolve.trial import CellKey, Trial, first_of_each_kind
from ...studies.schema.factors import SEED, level_names, level_text, one_line
from ...studies.schema.settings import Level, TrialSettings
from ...studies.study import Study
from ..observe import counted_levels, counted_trials
from ..outcomes import provenance
from ..statistics.estimates import Estimate
from .differences import (
    NOT_SEPARABLE,
    ColumnTests,
    baseline_tests,
    find_bold_cells,
    groups_by_task,
    note_unlearnt,
    table_caption,
    table_sentences,
)
from .published import add_paper_only, match_tables, paper_words, published_line
from .reproduction import reproduction
from .table import Cell, CellStatus, ColumnKey, Footnote, Footnotes, PublishedLine, Table, TableExtras
from .tally import Place, Tally, pick_best, tally_trials, untrained_remarks

if TYPE_CHECKING:
    from ...studies.presentation.table_keys import CellsTable


TIE_NOTE = Footnote(mark=NOT_SEPARABLE, text="not separable from the best")
"""The footnote of values that the seeds cannot tell from the best of their column."""

ITEM_ERRORS = "± standard error of test items: it says nothing of other trainings"
"""The footnote of values of one run with an error over test items."""


class TableCells:
    """A table of cells: its rows, columns and trials, their values and tests, and the finished table.

    `changes` has the change to the baseline in each row, if rows are changes. `baselines` maps each row to
    the row that it is compared with.

    `trials` are the trials of all cells; their levels include that of their row. `trial_of_each_cell` has one
    trial for each cell. `settings` has their settings, once for trials that differ only in the seed, since
    these share an object of settings.
    `published_matches` match rows and columns with those of the papers' tables, if they are shown.
    """

    def __init__(
        self, study: Study, spec: CellsTable, outcomes: pl.DataFrame, extras: TableExtras | None = None
    ) -> None:
        """Find the rows, the columns and the trials of a table."""
        self.study, self.spec, self.outcomes, self.extras = study, spec, outcomes, extras or TableExtras()
        self.changes = read_changes(spec, study.design) if spec.rows == CHANGES else None
        self.trials = self._in_rows(counted_trials(study, outcomes))
        self.levels = selected_levels(spec.select, counted_levels(study, self.trials))
        self.trial_of_each_cell = list({id(trial.common): trial for trial in self.trials}.values())
        self.settings = [trial.settings for trial in first_of_each_kind(self.trial_of_each_cell)]
        self.baselines: dict[str, str] = {}
        if self.changes:
            changed = self.changes.rows
            self.rows = tuple(TableRow(level=row.label, head=row.name, group=row.heading) for row in changed)
            starts = ((row, changed[row.baseline]) for row in changed)
            self.baselines = {row.label: start.label for row, start in starts if row is not start}
        else:
            heads = _heads(self.levels[spec.rows])
            self.rows = tuple(TableRow(level=text, head=head) for text, head in heads.items())
            if spec.baseline is not None:
                baseline = level_text(spec.baseline)
                self.baselines = {row.level: baseline for row in self.rows if row.level != baseline}
        part = self.extras.part
        if part is not None:
            own = {row.level: row for row in self.rows}
            every = part.rows.items()
            self.rows = tuple(own.get(text) or TableRow(level=text, head=head) for text, head in every)
        self.columns = tuple(_columns(spec, self.levels, self.settings))
        own = study.published if self.extras.published else PublishedNumbers()
        alone = (
            each[0] for name, each in self.levels.items() if len(each) == 1 and name not in (SEED, spec.rows)
        )
        fixed = (*(part.column if part else ()), *alone)
        warns = not self.extras.paper_only and part is None  # then names without a match are shown
        self.published_matches = match_tables(spec, own, self.rows, self.columns, fixed, warns=warns)
        # the cells that are not trained because they exceed the budget, by row and column
        self._over_budget = {self.place(each.levels) for each in self._in_rows(study.over_budget)}
        self._footnotes = Footnotes()  # the cells add them

    def _in_rows(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return the selected trials that belong to a row of the table.

        If the rows are changes of a baseline, each trial gets the label of its row as a level.
        """
        select = self.spec.select
        chosen = [each for each in trials if is_selected(select, each.levels)] if select else list(trials)
        if (changes := self.changes) is None:
            return chosen
        return [
            Trial(
                study=trial.study,
                levels={**trial.levels, CHANGES: changes.row(trial.levels).label},
                settings=trial.common,
                seed=trial.seed,
            )
            for trial in chosen
        ]

    def place(self, levels: Mapping[str, Level]) -> tuple[str, str]:
        """Return the row and the column of a trial with these levels."""
        column = level_text(levels[self.spec.columns]) if self.spec.columns else ""
        return level_text(levels[self.spec.rows]), column

    @cached_property
    def _tallied(self) -> Mapping[Place, Tally]:
        """Return the values of each cell and metric, also of `otherwise`."""
        found = tally_trials(self.spec, self.study, self.trials, self.outcomes, self.extras.begun)
        if self.spec.pick_by is not None:
            return pick_best(self.spec, found, is_judged=self.study.runs is not None)
        return {place: tally for place, (tally,) in found.items()}

    @cached_property
    def tallies(self) -> Mapping[Place, Tally]:
        """Return the values that each cell shows."""
        return {place: tally for place, tally in self._tallied.items() if place[2] in self.spec.value}

    @cached_property
    def estimates(self) -> Mapping[Place, Estimate]:
        """Return the mean and the spread of each cell that has values."""
        return {
            place: estimate.within(find_metric(place[2]).bounds)
            for place, tally in self.tallies.items()
            if (estimate := tally.estimate(self.spec.spread)) is not None
        }

    @cached_property
    def differences(self) -> Mapping[tuple[str, str], ColumnTests]:
        """Return the differences between the rows and their baselines, by metric and level of a column."""
        return {(column.metric.name, column.level): baseline_tests(self, column) for column in self.columns}

    @cached_property
    def bold_cells(self) -> tuple[ColumnTests, ...]:
        """Return the best cells of each column, which are bold, with their tests."""
        return tuple(find_bold_cells(self, column) for column in self.columns)

    @cached_property
    def _untrained(self) -> Mapping[tuple[str, str], str]:
        """Return remarks on cells whose trainings did not learn, by row and column."""
        return untrained_remarks(self.spec, self.study, self.trials, self.outcomes)

    def published_values(self) -> dict[tuple[str, CellKey], float]:
        """Return the papers' numbers by the metric and the cell of the trials that repeat them.

        They are comparable with the metric's values; of several papers, the first one counts. If a table
        picks the best of several cells, its number belongs to each of them. A number for the mean over
        several cells belongs to none.
        """
        spec = self.spec
        if spec.over and spec.pick_by is None:
            return {}
        found: dict[tuple[str, CellKey], float] = {}
        for levels, cell in {trial.cell: (trial.levels, trial.cell) for trial in self.trials}.values():
            row, level = self.place(levels)
            for column in self.columns:
                if column.level != level:
                    continue
                for match in self.published_matches:
                    number = match.number_at(row, column.metric.name, level)
                    if (
                        number is not None
                        and number.value is not None
                        and not number.unit_note(column.metric)
                    ):
                        found.setdefault((column.metric.name, cell), number.value)
        return found

    def table(self) -> Table:
        """Return the finished table. If requested, rows and columns that only the paper has are added."""
        spec = self.spec
        best = {place for column in self.bold_cells for place in column.best}
        ties = {place for column in self.bold_cells for place in column.ties}
        cells = tuple(  # makes the footnotes too
            tuple(self._cell(row.level, column, best, ties) for column in self.columns) for row in self.rows
        )
        remarks, notes = table_sentences(self, list(chain(*cells)))
        table = Table(
            name=spec.name,
            caption=table_caption(self),
            corner="" if self.changes else one_line(spec.rows),
            rows=tuple(row.head for row in self.rows),
            columns=tuple(column.head for column in self.columns),
            cells=cells,
            footnotes=(*self._footnotes.as_tuple(), *([TIE_NOTE] if ties else [])),
            provenance=provenance({trial.id for trial in self.trials}, self.outcomes),
            keys=tuple(
                ColumnKey(metric=column.metric.name, level=column.head if column.level else "")
                for column in self.columns
            ),
            column_headings=tuple(zip(*(column.headings for column in self.columns), strict=True)),
            factor_line=None if spec.columns is None else int(len(spec.value) > 1),
            groups=tuple(row.group for row in self.rows) if any(row.group for row in self.rows) else (),
            spread=spec.spread,
            remarks=remarks,
            notes=notes,
        )
        table = note_unlearnt(table, groups_by_task(self))
        for place in self.papers:
            theirs = self.published_matches[place].paper
            if found := reproduction(table, theirs, small=self.study.header.small):
                title = theirs.title if self.marks_papers else ""
                table = replace(table, remarks=(*table.remarks, found.sentence_on(title)))
        if self.extras.paper_only:  # then the study has a single published table
            for match in self.published_matches:
                table = add_paper_only(table, match, self.rows, self.columns)
        return table

    def _cell(self, row: str, column: TableColumn, best: Collection[Place], ties: Collection[Place]) -> Cell:
        """Return the finished cell at a row and column; without trials it has only the paper's number."""
        place, metric = (row, column.level, column.metric.name), column.metric
        tally, estimate = self.tallies.get(place), self.estimates.get(place)
        baseline = (self.baselines.get(row, ""), column.level, metric.name)
        fallback: Tally | None = None  # of the metric in `otherwise`, in place of one without a value
        if tally is not None and not tally.values and self.spec.otherwise:
            fallback = self._tallied.get((row, column.level, self.spec.otherwise))
        marks = tuple(map(self._footnotes.mark, self._remarks(place, tally, fallback)))
        lines = self._published_lines(row, baseline[0], column)
        cell = Cell(status=CellStatus.UNPLANNED, marks=marks, published_lines=lines)
        if tally is None:
            if place[:2] not in self._over_budget:
                return cell
            return replace(cell, status=CellStatus.REFUSED, text=CellStatus.REFUSED.value)
        if fallback and self.spec.otherwise and (found := fallback.estimate(self.spec.spread)) is not None:
            metric = find_metric(self.spec.otherwise, self.spec.digits)
            estimate = found.within(metric.bounds)
            spread, interval = spread_texts(estimate, metric, self.spec.spread)
            parts = (metric.format(estimate.value), f"± {spread}" if spread else "", interval)
            return replace(
                cell,
                status=fallback.status,
                estimate=estimate,
                text=f"({' '.join(part for part in parts if part)})",
                picked=fallback.label,
                metric=metric.name,
            )
        differences = self.differences[metric.name, column.level]
        if (tested := differences.tested.get((place, baseline))) is not None:
            difference = tested.difference
            half = "" if difference.half_width is None else f" ± {metric.format(difference.half_width)}"
            star = "*" * tested.is_significant
            cell = replace(
                cell,
                difference_text=with_sign(metric.format(difference.mean)) + half + star,
                difference=difference.mean,
                difference_half_width=difference.half_width,
                is_significant=tested.is_significant,
                p=tested.p,
            )
        spread, interval = spread_texts(estimate, metric, self.spec.spread)
        if (error := self._item_error(*place)) is not None:
            spread = metric.format(error)
        if estimate is not None and tally.broken:
            text, spread, interval = f"{tally.broken} ({metric.format(estimate.value)})", "", ""
        elif estimate is not None:
            text = metric.format(estimate.value)
        else:
            text = f"> {metric.format(tally.bound)}" if tally.limits else tally.placeholder
        return replace(
            cell,
            status=tally.status,
            estimate=estimate,
            text=text,
            at_least=tally.bound if tally.limits and estimate is None else None,
            spread=spread,
            interval=interval,
            best=place in best,
            tie=place in ties,
            marks=(TIE_NOTE.mark, *marks) if place in ties else marks,
            picked=tally.label,
        )

    @cached_property
    def papers(self) -> Mapping[int, str]:
        """Return the papers whose numbers the table shows, by their place in `published_matches`."""
        words = map(paper_words, self.published_matches)
        return {place: each for place, each in enumerate(words) if each}

    @property
    def marks_papers(self) -> bool:
        """Return whether each paper has a footnote: if there are several, or the table is a part."""
        return len(self.papers) > 1 or self.extras.part is not None

    def _published_lines(self, row: str, baseline: str, column: TableColumn) -> tuple[PublishedLine, ...]:
        """Return the number of each paper below a cell."""
        lines: list[PublishedLine] = []
        for place, match in enumerate(self.published_matches):
            number = match.number_at(row, column.metric.name, column.level)
            if number is None:
                continue
            notes = [f"Published: {self.papers[place]}."] if self.marks_papers else []
            other = self.spec.otherwise and find_metric(self.spec.otherwise)
            unit_note = number.unit_note(column.metric) if not other or number.unit_note(other) else ""
            notes += [f"Published {unit_note}: not compared."] if unit_note else []
            theirs = match.number_at(baseline, column.metric.name, column.level) if baseline else None
            marks = map(self._footnotes.mark, notes)
            lines.append(published_line(number, theirs, marks, comparable=not unit_note))
        return tuple(lines)

    def _item_error(self, row: str, column: str, metric: str) -> float | None:
        """Return the error of test items of a cell with one run, which another program states."""
        runs = self.study.runs
        if runs is None or not any(each.item_errors for each in runs.runs):
            return None
        trials = [each.id for each in self.trials if self.place(each.levels) == (row, column)]
        return runs.item_error(self.study, trials, metric)

    def _remarks(self, place: Place, tally: Tally | None, fallback: Tally | None) -> list[str]:
        remarks: list[str] = []
        if tally is not None:
            remarks.append(tally.label)
            if self._item_error(*place) is not None:
                remarks.append(ITEM_ERRORS)
            over_levels = self.spec.pick_by is not None and not tally.label
            remarks += (fallback or tally).remarks("trials" if over_levels else f"{self.study.repeats}s")
            remarks.append(tally.pick_remark)
        return list(filter(None, [*remarks, self._untrained.get(place[:2], "")]))


def spread_texts(estimate: Estimate | None, metric: Metric, spread: Spread) -> tuple[str, str]:
    """Return an estimate's spread (the text after `±`), then its interval. At least one text is empty."""
    if estimate is None or estimate.spread is None or estimate.low is None or estimate.high is None:
        return "", ""
    if metric.name in ANALYTIC_COSTS and not estimate.spread:
        return "", ""
    if spread == "ci":
        return "", f"[{metric.format(estimate.low)}, {metric.format(estimate.high)}]"
    return metric.format(estimate.spread), ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row of the table: its level, its name, and the heading of its `group` of rows, or ""."""

    level: str
    head: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column of the table, with its metric and its level.

    The level is "" if each column is a metric. `headings` are the lines above the column's name `head`, the
    outermost first; some may be empty.
    """

    metric: Metric
    level: str
    head: str
    headings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the column's name in the paper's table: its level or, without one, its metric."""
        return self.level or self.metric.name


def _columns(
    spec: CellsTable, levels: Mapping[str, tuple[Level, ...]], settings: Sequence[TrialSettings]
) -> Iterator[TableColumn]:
    metrics = [with_true_title(find_metric(name, spec.digits), settings) for name in spec.value]
    for metric, words in metrics:
        title = metric_head(metric, words)
        if spec.columns is None:
            yield TableColumn(metric=metric, level="", head=title)
            continue
        factor = one_line(spec.columns)
        headings = (title, factor) if len(metrics) > 1 else (factor,)
        for text, head in _heads(levels[spec.columns]).items():
            yield TableColumn(metric=metric, level=text, head=head, headings=headings)


def metric_head(metric: Metric, words: str) -> str:
    """Return a metric's heading: its name, its settings, and an arrow that points to better values."""
    return one_line(metric.name) + (f" ({words})" if words else "") + BETTER_ARROWS[metric.higher_is_better]


def _heads(levels: Sequence[Level]) -> dict[str, str]:
    return dict(zip(map(level_text, levels), level_names(levels), strict=True))
