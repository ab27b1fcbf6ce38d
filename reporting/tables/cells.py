"""The construction of a table of cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from ...studies.catalog.metrics import (
    ANALYTIC_COSTS,
    BETTER_ARROWS,
    Metric,
    find_metric,
    with_sign,
)
from ...studies.catalog.published import published_tables
from ...studies.claims.interim_tests import seeds_at_looks
from ...studies.presentation.changes import CHANGES, Changes, read_changes
from ...studies.presentation.kinds import Spread, TableExtras, is_selected, selected_levels
from ...studies.presentation.metric_words import with_true_title
from ...studies.resolve.trial import CellKey as TrialCell
from ...studies.resolve.trial import Trial, first_of_each_kind
from ...studies.schema.factors import SEED, level_names, level_text, one_line
from ...studies.schema.settings import Level, TrialSettings
from ...studies.study import Study
from ..outcomes import provenance
from ..statistics.estimates import Estimate
from .differences import (
    ColumnTests,
    baseline_tests,
    caption_sentences,
    find_bold_cells,
    groups_by_task,
    note_unlearnt,
    significance_text,
)
from .published import PublishedMatch, add_paper_only, difference_from_baseline, match_published
from .table import Cell, CellStatus, ColumnKey, Footnotes, Table
from .tally import CellKey, TalliesByLook, Tally, pick_best, tallies_by_look, tally_trials, untrained_remarks

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable


@dataclass(frozen=True, kw_only=True)
class TableCells:
    """A table of cells while it is built.

    Each property is computed on first use. If the table has a smallest difference, differences are tested at
    several looks as seeds are added. `counts` are the numbers of seeds at the looks; the last look is shown.
    """

    spec: CellsTable
    study: Study
    outcomes: pl.DataFrame
    extras: TableExtras = TableExtras()  # noqa: RUF009 -- frozen

    def table(self) -> Table:
        """Return the finished table. If requested, rows and columns that only the paper has are added."""
        spec, match, shown = self.spec, self.published_match, self.shown_trials
        best = {place for column in self.bold_cells for place in column.best}
        cells = tuple(  # makes the footnotes too
            tuple(self._cell(row.level, column, best) for column in self.columns) for row in self.rows
        )
        table = Table(
            name=spec.name,
            caption=caption_sentences(self, list(chain(*cells))),
            corner="" if self.changes else one_line(spec.rows),
            rows=tuple(row.head for row in self.rows),
            columns=tuple(column.head for column in self.columns),
            cells=cells,
            footnotes=self.footnotes.as_tuple(),
            provenance=provenance({trial.id for trial in shown}, self.outcomes),
            keys=tuple(
                ColumnKey(metric=column.metric.name, level=column.head if column.level else "")
                for column in self.columns
            ),
            column_headings=tuple(zip(*(column.headings for column in self.columns), strict=True)),
            factor_line=None if spec.columns is None else int(len(spec.value) > 1),
            groups=tuple(row.group for row in self.rows) if any(row.group for row in self.rows) else (),
            spread=spec.spread,
        )
        table = note_unlearnt(table, groups_by_task(self))
        if match and self.extras.paper_only:
            table = add_paper_only(table, match, self.rows, self.columns)
        return table

    def place(self, levels: Mapping[str, Level]) -> tuple[str, str]:
        """Return the row and the column of a trial with these levels."""
        column = level_text(levels[self.spec.columns]) if self.spec.columns else ""
        return level_text(levels[self.spec.rows]), column

    @cached_property
    def footnotes(self) -> Footnotes:
        """Return the footnotes of the table. Its cells add them."""
        return Footnotes()

    @cached_property
    def changes(self) -> Changes | None:
        """Return the change to the baseline in each row; None if rows are levels of a factor."""
        return read_changes(self.spec, self.study.design) if self.spec.rows == CHANGES else None

    @cached_property
    def levels(self) -> Mapping[str, tuple[Level, ...]]:
        """Return the selected levels of each factor."""
        return selected_levels(self.spec.select, self.study.factors)

    @cached_property
    def looks(self) -> tuple[tuple[int, ...], ...]:
        """Return the seeds that each look (interim test) uses."""
        grows = bool(self.spec.smallest_difference) and SEED not in self.spec.select
        return seeds_at_looks(self.study.seeds, self.study.later_seeds if grows else ())

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of seeds that each look (interim test) uses."""
        return tuple(map(len, self.looks))

    @cached_property
    def trials(self) -> list[Trial]:
        """Return the trials of all cells, including trials of seeds that may be added later.

        The levels of each trial include that of its row.
        """
        study = self.study.with_later_seeds() if len(self.looks) > 1 else self.study
        return self._in_rows(study.cells)

    @cached_property
    def shown_trials(self) -> list[Trial]:
        """Return the trials behind the numbers of the table.

        These are the trials of the study's seeds. A trial of an added seed belongs to them once it has ended.
        """
        if len(self.looks) == 1:
            return self.trials
        seeds = set(self.study.seeds)
        ended = {trial.id for trial in self.trials if trial.seed not in seeds}
        ended.intersection_update(self.outcomes["trial"])
        return [trial for trial in self.trials if trial.seed in seeds or trial.id in ended]

    @cached_property
    def trial_of_each_cell(self) -> list[Trial]:
        """Return one of the shown trials of each cell, whose seeds share an object of settings."""
        return list({id(trial.common): trial for trial in self.shown_trials}.values())

    @cached_property
    def settings(self) -> list[TrialSettings]:
        """Return the settings of the shown trials, once for trials that differ only in the seed."""
        return [trial.settings for trial in first_of_each_kind(self.trial_of_each_cell)]

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
            if changes.has_row(trial.levels)
        ]

    @cached_property
    def rows(self) -> tuple[TableRow, ...]:
        """Return the rows of the table."""
        if self.changes:
            changed = self.changes.rows
            return tuple(TableRow(level=row.label, head=row.name, group=row.heading) for row in changed)
        heads = _heads(self.levels[self.spec.rows])
        return tuple(TableRow(level=text, head=head) for text, head in heads.items())

    @cached_property
    def columns(self) -> tuple[TableColumn, ...]:
        """Return the columns of the table."""
        found = (find_metric(name, self.spec.digits) for name in self.spec.value)
        metrics = [with_true_title(metric, self.settings) for metric in found]
        columns: list[TableColumn] = []
        for metric, words in metrics:
            title = metric_head(metric, words)
            if self.spec.columns is None:
                columns.append(TableColumn(metric=metric, level="", head=title))
                continue
            factor = one_line(self.spec.columns)
            headings = (title, factor) if len(metrics) > 1 else (factor,)
            heads = _heads(self.levels[self.spec.columns])
            columns += [
                TableColumn(metric=metric, level=text, head=head, headings=headings)
                for text, head in heads.items()
            ]
        return tuple(columns)

    @cached_property
    def _tallied(self) -> tuple[TalliesByLook, Mapping[CellKey, str]]:
        """Return the values of each cell at each look (interim test), and remarks on some cells.

        A remark says how many of a cell's levels have no value.
        """
        spec = self.spec

        def tally(trials: Sequence[Trial]) -> dict[CellKey, tuple[Tally, ...]]:
            return tally_trials(spec, self.study.name, trials, self.outcomes, self.extras.begun)

        if spec.pick_by is not None:
            best, remarks = pick_best(spec, tally(self.trials))
            return {place: (each,) for place, each in best.items()}, remarks
        looks = map(frozenset, self.looks)
        by_look = [tally([each for each in self.trials if each.seed in seeds]) for seeds in looks]
        first, *later = ({place: each for place, (each,) in found.items()} for found in by_look)
        return tallies_by_look(first, later), {}

    @cached_property
    def look_tallies(self) -> TalliesByLook:
        """Return the values of each cell at each look (interim test) that it has reached."""
        return {place: looks for place, looks in self._tallied[0].items() if place[2] in self.spec.value}

    @cached_property
    def fallbacks(self) -> Mapping[tuple[str, str], Tally]:
        """Return the values of the fallback metric, which the key `otherwise` names, by row and column.

        Cells without a value of their own metric show it.
        """
        every = self._tallied[0].items()
        return {place[:2]: looks[-1] for place, looks in every if place[2] == self.spec.otherwise}

    @cached_property
    def untrained(self) -> Mapping[tuple[str, str], str]:
        """Return remarks on cells whose trainings did not learn, by row and column."""
        return untrained_remarks(self.spec, self.study.name, self.trials, self.outcomes)

    @cached_property
    def over_budget(self) -> Collection[tuple[str, str]]:
        """Return the cells that are not trained because they exceed the budget, by row and column."""
        return {self.place(trial.levels) for trial in self._in_rows(self.study.source.over_budget)}

    @cached_property
    def baselines(self) -> Mapping[str, str]:
        """Map each row to the row that it is compared with."""
        if self.changes:
            rows = self.changes.rows
            return {
                row.label: rows[row.reference].label for at, row in enumerate(rows) if row.reference != at
            }
        if self.spec.baseline is None:
            return {}
        baseline = level_text(self.spec.baseline)
        return {row.level: baseline for row in self.rows if row.level != baseline}

    @cached_property
    def differences(self) -> Mapping[tuple[str, str], ColumnTests]:
        """Return the differences between the rows and their baselines, by metric and level of a column."""
        return {(column.metric.name, column.level): baseline_tests(self, column) for column in self.columns}

    @cached_property
    def published_match(self) -> PublishedMatch | None:
        """Match this table's rows and columns with those of the paper's table, if it is shown."""
        key = (self.study.paper or "", self.spec.published_table)
        paper = published_tables().get(key) if self.extras.published else None
        return match_published(paper, self.spec.published, self.rows, self.columns) if paper else None

    def published_values(self) -> dict[tuple[str, TrialCell], float]:
        """Return the paper's numbers by the metric and the cell of the trials that repeat them.

        If a table picks the best of several cells, its number belongs to each of them. A number for the mean
        over several cells belongs to none.
        """
        spec, match = self.spec, self.published_match
        if match is None or (spec.over and spec.pick_by is None):
            return {}
        found: dict[tuple[str, TrialCell], float] = {}
        for levels, cell in {trial.cell: (trial.levels, trial.cell) for trial in self.shown_trials}.values():
            row, level = self.place(levels)
            for column in self.columns:
                number = match.published_at(row, column)
                if column.level == level and number is not None and number.value is not None:
                    found[column.metric.name, cell] = number.value
        return found

    @cached_property
    def bold_cells(self) -> tuple[ColumnTests, ...]:
        """Return the best cells of each column, which are bold, with their tests."""
        return tuple(find_bold_cells(self, column) for column in self.columns)

    @cached_property
    def tallies(self) -> Mapping[CellKey, Tally]:
        """Return the values that each cell shows: those of its last look (interim test)."""
        return {place: looks[-1] for place, looks in self.look_tallies.items()}

    @cached_property
    def estimates(self) -> Mapping[CellKey, Estimate]:
        """Return the mean and the spread of each cell that has values."""
        return {
            place: estimate.within(find_metric(place[2]).bounds)
            for place, tally in self.tallies.items()
            if (estimate := tally.estimate(self.spec.spread)) is not None
        }

    def _cell(self, row: str, column: TableColumn, best: Collection[CellKey]) -> Cell:
        """Return the finished cell at a row and column.

        A cell without trials in the study shows only the paper's number.
        """
        place, metric, match = (row, column.level, column.metric.name), column.metric, self.published_match
        tally, estimate = self.tallies.get(place), self.estimates.get(place)
        baseline = (self.baselines.get(row, ""), column.level, metric.name)
        fallback = self.fallbacks.get(place[:2]) if tally is not None and not tally.values else None
        published = match.published_at(row, column) if match else None
        shared: dict[str, Any] = {
            "marks": tuple(map(self.footnotes.mark, self._remarks(place, tally, fallback))),
            "published": published,
        }
        if match and published:
            theirs = match.published_at(baseline[0], column) if baseline[0] else None
            extra = difference_from_baseline(published, theirs)
            shared["published_text"] = f"{published.text_with_deviation}{f' ({extra})' if extra else ''}"
        if tally is None:
            if (row, column.level) in self.over_budget:
                return Cell(status=CellStatus.REFUSED, text=CellStatus.REFUSED.value, **shared)
            return Cell(status=CellStatus.UNPLANNED, **shared)
        if fallback and self.spec.otherwise and (found := fallback.estimate(self.spec.spread)) is not None:
            # the metric in `otherwise`, in place of one without a value
            metric = find_metric(self.spec.otherwise, self.spec.digits)
            estimate = found.within(metric.bounds)
            spread, interval = spread_texts(estimate, metric, self.spec.spread)
            parts = (metric.format(estimate.value), f"± {spread}" if spread else "", interval)
            return Cell(
                status=fallback.status,
                estimate=estimate,
                text=f"({' '.join(part for part in parts if part)})",
                picked=fallback.label,
                metric=metric.name,
                **shared,
            )
        differences = self.differences[metric.name, column.level]
        if (decided := differences.decided.get((place, baseline))) is not None:
            difference, is_tested = decided.shown, decided.p is not None and differences.margin is not None
            half = "" if difference.half_width is None else f" ± {metric.format(difference.half_width)}"
            text = with_sign(metric.format(difference.mean)) + half + significance_text(decided)
            shared |= {
                "difference_text": text,
                "difference": difference.mean,
                "difference_half_width": difference.half_width,
                "is_significant": decided.differs,
                "is_within": decided.is_within if is_tested else None,
                "p": decided.p,
            }
        spread, interval = spread_texts(estimate, metric, self.spec.spread)
        if estimate is not None:
            text = metric.format(estimate.value)
        else:
            text = f"> {metric.format(tally.bound)}" if tally.limits else tally.placeholder
        return Cell(
            status=tally.status,
            estimate=estimate,
            text=text,
            at_least=tally.bound if tally.limits and estimate is None else None,
            spread=spread,
            interval=interval,
            best=place in best,
            picked=tally.label,
            **shared,
        )

    def _remarks(self, place: CellKey, tally: Tally | None, fallback: Tally | None) -> list[str]:
        remarks: list[str] = []
        if tally is not None:
            remarks += [tally.label] if tally.label else []
            over_levels = self.spec.pick_by is not None and not tally.label
            remarks += (fallback or tally).remarks("trials" if over_levels else "seeds")
        others = (self._tallied[1].get(place, ""), self.untrained.get(place[:2], ""))
        return [*remarks, *filter(None, others)]


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


def metric_head(metric: Metric, words: str) -> str:
    """Return a metric's heading: its name, its settings, and an arrow that points to better values."""
    return one_line(metric.name) + (f" ({words})" if words else "") + BETTER_ARROWS[metric.higher_is_better]


def _heads(levels: Sequence[Level]) -> dict[str, str]:
    return dict(zip(map(level_text, levels), level_names(levels), strict=True))
