"""`aggregate`: a table with statistics of each method over all tasks and seeds.

Intervals are from a bootstrap, which resamples runs within each task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from ...studies.catalog.metrics import BETTER_ARROWS, Metric
from ...studies.presentation.kinds import KeyFault, TableExtras, TableKind, describe_levels
from ...studies.schema.design import Design
from ...studies.schema.factors import SEED, level_name, level_names, level_text, one_line
from ...studies.study import Study
from ...studies.text.units import number_range, plural
from ..scores import BOOTSTRAP_SEED, RESAMPLES, ScoreKeys, Scores, collect_scores, scale_sentences
from ..subject import ResultSubject
from ..tables.differences import caption_start
from ..tables.table import NOT_RUN, Cell, CellStatus, ColumnKey, Footnotes, Table, interval_cell

if TYPE_CHECKING:
    from ..statistics.stratified_bootstrap import Statistic


BETTER = "better"
"""The name of the column with the probability of improvement."""


class AggregateTable(ScoreKeys, TableKind):
    """`[[table]] kind = "aggregate"`: statistics of methods over all tasks and seeds."""

    kind: Literal["aggregate"]
    rows: str
    """the factor whose levels are compared"""
    baseline: Any = None
    """the row to which the others are compared, by their probability of improvement"""
    target: float | None = None
    """the score that counts as sufficient; adds a column with the mean shortfall from it"""

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        return self.score_faults(design) or list(self.level_faults(design.known_levels))

    def table(self, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
        subject = ResultSubject(study, self.select, outcomes)
        scores, levels = collect_scores(self, subject), subject.levels[self.rows]
        arrow, notes = BETTER_ARROWS[scores.sign > 0], Footnotes()
        columns = {"iqm": f"IQM{arrow}", "mean": f"mean{arrow}", "median": f"median{arrow}"}
        columns |= {"gap": "gap ↓"} if self.target is not None else {}
        columns |= {BETTER: "better ↑"} if self.baseline is not None else {}
        return Table(
            name=self.name,
            caption=tuple(_sentences(self, subject, scores)),
            corner=one_line(self.rows),
            rows=level_names(levels),
            columns=tuple(columns.values()),
            cells=tuple(
                tuple(_cells(level_text(level), self, scores, tuple(columns), notes)) for level in levels
            ),
            footnotes=notes.as_tuple(),
            provenance=subject.provenance(),
            keys=tuple(ColumnKey(metric=",".join(self.value), level=name) for name in columns),
            spread="ci",
        )


def _cells(
    method: str, spec: AggregateTable, scores: Scores, columns: Sequence[str], notes: Footnotes
) -> Iterator[Cell]:
    """Yield the statistics of a method's scores over all tasks; empty cells if a task has no value."""
    from ..statistics.stratified_bootstrap import (  # noqa: PLC0415 -- loads NumPy
        INTERQUARTILE_MEAN,
        MEAN,
        MEDIAN,
        aggregate_all,
        optimality_gap,
        probability_of_improvement,
    )

    number = Metric(name="score", title="score", decimals=3)
    runs, lost = scores.runs[method], scores.lost(method)
    if lost:
        mark = () if len(lost) == len(scores.tasks) else (notes.mark(f"No value for {', '.join(lost)}."),)
        yield Cell(status=CellStatus.MISSING, text=NOT_RUN, marks=mark)
        yield from (Cell(status=CellStatus.MISSING) for _ in columns[1:])
        return
    statistics: dict[str, Statistic] = {"iqm": INTERQUARTILE_MEAN, "mean": MEAN, "median": MEDIAN}
    if spec.target is not None:
        statistics["gap"] = optimality_gap(spec.target, sign=scores.sign)
    found = aggregate_all(runs, statistics, resamples=RESAMPLES, seed=BOOTSTRAP_SEED, limits=scores.limits)
    count = sum(map(len, runs))
    yield from (interval_cell(each, number.format, count) for each in found.values())
    if spec.baseline is None:
        return
    baseline = level_text(spec.baseline)
    if method == baseline or scores.lost(baseline):
        yield Cell(status=CellStatus.DONE)
        return
    better = probability_of_improvement(
        runs, scores.runs[baseline], sign=scores.sign, resamples=RESAMPLES, seed=BOOTSTRAP_SEED
    )
    chance = Metric(name=BETTER, title=BETTER, decimals=2)
    yield interval_cell(better, chance.format, count)


def _sentences(spec: AggregateTable, subject: ResultSubject, scores: Scores) -> Iterator[str]:
    metrics = [subject.metric(name) for name in spec.value]
    fixed = subject.fixed((spec.rows, *spec.tasks, SEED))
    low, high = scores.run_counts
    seeds = "one seed" if high == 1 else f"{number_range([low, high])} seeds"
    tasks = f"{plural(len(scores.tasks), 'task')} ({', '.join(spec.tasks)})"
    at = f", at {describe_levels(fixed)}" if fixed else ""
    yield f"{caption_start(spec.caption, metrics)}: over {tasks} with {seeds}{at}."
    yield from subject.difference(metrics)
    yield from scale_sentences(spec, subject)
    yield "IQM: mean of the middle half of all runs; mean and median: of the tasks' means."
    if spec.target is not None:
        yield f"Gap: mean shortfall to {spec.target:g}."
    if spec.baseline is not None:
        yield (
            f"Better: probability that a run is better than one of {level_name(spec.baseline)}"
            " on the same task, counting ties half, averaged over tasks."
        )
    yield (
        "In brackets: 95 % interval by a bootstrap of the seeds within tasks"
        f" ({RESAMPLES:,} resamples, seed {BOOTSTRAP_SEED}), with Student's t for few seeds;"
        " none without variation."
    )
    yield from subject.omitted(scores.gaps, scores.planned)


TABLE = AggregateTable
