"""`kind = "aggregate"`: each method over all tasks and seeds, with intervals by a bootstrap within tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from ....studies.catalog.metrics import Metric, find_metric
from ....studies.planning.probe_targets import probe_command
from ....studies.presentation.metric_words import difference_sentence, with_true_title
from ....studies.presentation.scores import AggregateSpec
from ....studies.presentation.selection import describe_levels, fixed_levels, selected_levels
from ....studies.resolve.trial import Trial
from ....studies.schema.factors import SEED
from ....studies.schema.level_names import level_name, level_names, level_text, one_line
from ....studies.study import Study
from ....studies.text.units import plural
from ...observations import selected_trials
from ...outcomes import omitted_trials
from ...provenance import provenance
from ...scores import Scores, collect_scores, scale_sentences
from ...statistics.estimates import Estimate
from ...statistics.stratified_bootstrap import (
    INTERQUARTILE_MEAN,
    MEAN,
    MEDIAN,
    Aggregate,
    Statistic,
    aggregate_all,
    optimality_gap,
    probability_of_improvement,
)
from ..captions import joined_titles
from ..differences import number_range
from ..table import Cell, CellStatus, ColumnKey, Footnotes, Table
from ..tally import NOT_RUN

BETTER = "better"
"""The column with the probability of improvement."""


def aggregate_table(study: Study, spec: AggregateSpec, outcomes: pl.DataFrame) -> Table:
    """The table that `spec` describes, over the study's trials in `outcomes`."""
    scores, trials = collect_scores(study, spec, outcomes), selected_trials(study, spec.select)
    levels = selected_levels(spec.select, study.factors)[spec.rows]
    columns, notes = _columns(spec, scores), Footnotes()
    cells = tuple(tuple(_cells(level_text(level), spec, scores, tuple(columns), notes)) for level in levels)
    return Table(
        name=spec.name,
        caption=tuple(_sentences(study, spec, scores, trials, [*columns])),
        corner=one_line(spec.rows),
        rows=level_names(levels),
        columns=tuple(columns.values()),
        cells=cells,
        footnotes=notes.as_tuple(),
        provenance=provenance(scores.trials, outcomes),
        keys=tuple(ColumnKey(metric=",".join(spec.value), level=name) for name in columns),
        spread="ci",
    )


def _columns(spec: AggregateSpec, scores: Scores) -> dict[str, str]:
    """The heading of each column, by what is in it."""
    arrow = " ↑" if scores.sign > 0 else " ↓"
    found = {"iqm": f"IQM{arrow}", "mean": f"mean{arrow}", "median": f"median{arrow}"}
    if spec.target is not None:
        found["gap"] = "gap ↓"
    if spec.baseline is not None:
        found[BETTER] = "better ↑"
    return found


def _cells(
    method: str, spec: AggregateSpec, scores: Scores, columns: Sequence[str], notes: Footnotes
) -> Iterator[Cell]:
    """The cells of a method; one that lacks a task has none, since the others would be no comparison."""
    number = Metric(name="score", title="score", decimals=spec.digits)
    runs, lost = scores.runs[method], scores.lost(method)
    if lost:
        mark = () if len(lost) == len(scores.tasks) else (notes.mark(f"No value on {', '.join(lost)}."),)
        yield Cell(status=CellStatus.MISSING, text=NOT_RUN, marks=mark)
        yield from (Cell(status=CellStatus.MISSING) for _ in columns[1:])
        return
    statistics: dict[str, Statistic] = {"iqm": INTERQUARTILE_MEAN, "mean": MEAN, "median": MEDIAN}
    if spec.target is not None:
        statistics["gap"] = optimality_gap(spec.target, sign=scores.sign)
    found = aggregate_all(runs, statistics, resamples=spec.resamples, seed=spec.bootstrap_seed)
    count = sum(map(len, runs))
    yield from (_cell(each, number, count) for each in found.values())
    if spec.baseline is None:
        return
    baseline = level_text(spec.baseline)
    if method == baseline or scores.lost(baseline):
        yield Cell(status=CellStatus.DONE)
        return
    better = probability_of_improvement(
        runs, scores.runs[baseline], sign=scores.sign, resamples=spec.resamples, seed=spec.bootstrap_seed
    )
    yield _cell(better, Metric(name=BETTER, title=BETTER, decimals=2), count)


def _cell(found: Aggregate, number: Metric, count: int) -> Cell:
    interval, half = "", None
    if found.low is not None and found.high is not None:
        interval = f"[{number.format(found.low)}, {number.format(found.high)}]"
        half = (found.high - found.low) / 2
    return Cell(
        status=CellStatus.DONE,
        estimate=Estimate(value=found.value, low=found.low, high=found.high, spread=half, n=count),
        text=number.format(found.value),
        interval=interval,
    )


def _sentences(
    study: Study, spec: AggregateSpec, scores: Scores, trials: Sequence[Trial], columns: Sequence[str]
) -> Iterator[str]:
    """Every sentence of the caption."""
    settings = [trial.settings for trial in trials]
    metrics = [with_true_title(find_metric(name), settings)[0] for name in spec.value]
    subject = one_line(spec.caption or joined_titles(tuple(metric.title for metric in metrics)))
    shown = (spec.rows, *spec.tasks, SEED)
    fixed = fixed_levels([trial.levels for trial in trials], shown, study.design)
    low, high = scores.run_counts
    seeds = "one seed" if high == 1 else f"{number_range([low, high])} seeds"
    tasks = f"{plural(len(scores.tasks), 'task')} ({', '.join(spec.tasks)})"
    at = f", at {describe_levels(fixed)}" if fixed else ""
    yield f"{subject.removesuffix('.')}: over {tasks} with {seeds}{at}."
    if difference := difference_sentence(metrics, settings):
        yield difference
    yield from scale_sentences(study, spec)
    yield "IQM: mean of the middle half of all runs; mean and median: of the tasks' means."
    if spec.target is not None:
        yield f"Gap: what is missing to {spec.target:g}, in mean."
    if BETTER in columns:
        yield (
            f"Better: probability that a run is better than one of {level_name(spec.baseline)}"
            " on the same task, ties half, mean of the tasks."
        )
    yield (
        "In brackets: 95 % interval by a bootstrap of the seeds within tasks"
        f" ({spec.resamples:,} resamples, seed {spec.bootstrap_seed}), with Student's t for few seeds;"
        " none where nothing varies."
    )
    yield from omitted_trials(scores.gaps, scores.planned, probe_command(study.name))
