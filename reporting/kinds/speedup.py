"""`speedup`: a table with the baseline's cost to reach a target divided by that of each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from ...studies.planning.final_values import ValueStatus, cost_per_epoch
from ...studies.presentation.kinds import (
    describe_levels,
)
from ...studies.presentation.table_keys import SpeedupTable
from ...studies.schema.factors import SEED, level_key, level_name, level_names, one_line
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import number_range
from ..observe import observe
from ..statistics.estimates import Interval
from ..statistics.speedup import (
    BOUND_WORDS,
    HALFWAY_SENTENCE,
    SpeedupEstimate,
    TargetCosts,
    format_ratio,
    speedups,
)
from ..subject import ResultSubject
from ..tables.differences import caption_start
from ..tables.table import NOT_RUN, Cell, CellStatus, ColumnKey, Footnotes, Table, TableExtras, interval_cell


def table(spec: SpeedupTable, study: Study, outcomes: pl.DataFrame, extras: TableExtras) -> Table:
    """Return the table of speedups."""
    subject, notes = ResultSubject(study, spec.select, outcomes), Footnotes()
    levels = subject.levels[spec.rows]
    columns = [_column(spec, subject, name, levels, notes) for name in spec.value]
    metrics = [subject.metric(name) for name in spec.value]
    cells = [cell for column in columns for cell in column]
    fixed = subject.fixed((spec.rows, SEED))
    start, at = caption_start(spec.caption, metrics), f", at {describe_levels(fixed)}" if fixed else ""
    return Table(
        name=spec.name,
        caption=f"{start}: the value of {level_name(spec.baseline)} divided by the value of each row{at}.",
        remarks=tuple(_remarks(cells)),
        notes=tuple(_notes(cells)),
        corner=one_line(spec.rows),
        rows=level_names(levels),
        columns=tuple(f"× {metric.name} ↑" for metric in metrics),
        cells=tuple(zip(*columns, strict=True)),
        footnotes=notes.as_tuple(),
        provenance=subject.provenance(),
        keys=tuple(ColumnKey(metric=name, level="") for name in spec.value),
        spread="ci",
    )


def _column(
    spec: SpeedupTable, subject: ResultSubject, name: str, levels: Sequence[Level], notes: Footnotes
) -> list[Cell]:
    values = observe(subject.study, subject.trials, subject.outcomes, name)
    known = {row["trial"]: row for row in values.iter_rows(named=True)}
    per_epoch = cost_per_epoch(name, subject.outcomes)
    cells: list[TargetCosts] = []
    remarks: list[tuple[str, ...]] = []
    for level in levels:
        own = {
            int(each.levels[SEED]): each
            for each in subject.trials
            if level_key(each.levels[spec.rows]) == level_key(level)
        }
        ends = {seed: known[trial.id] for seed, trial in own.items()}
        reached, limits = (
            {seed: end["value"] for seed, end in ends.items() if end["status"] == status}
            for status in (ValueStatus.DONE, ValueStatus.CENSORED)
        )
        steps = {seed: per_epoch[own[seed].id] for seed in reached}
        cells.append(TargetCosts(reached=reached, limits=limits, resolution=steps))
        whys = Counter(end["why"] for end in ends.values() if end["why"])
        remarks.append(tuple(notes.mark(f"{n} of its seeds {why}") for why, n in whys.items()))
    baseline = next(at for at, level in enumerate(levels) if level_key(level) == level_key(spec.baseline))
    has_baseline = bool(cells[baseline].reached or cells[baseline].limits)
    return [
        Cell(status=CellStatus.DONE, text="1", marks=marks)
        if place == baseline and has_baseline
        else _cell(spec, each, marks, censored=bool(cells[place].limits and cells[baseline].limits))
        for place, (each, marks) in enumerate(zip(speedups(cells, baseline), remarks, strict=True))
    ]


def _cell(
    spec: SpeedupTable, found: SpeedupEstimate | None, marks: tuple[str, ...], *, censored: bool
) -> Cell:
    if found is None:
        status = CellStatus.CENSORED if censored else CellStatus.MISSING
        return Cell(status=status, text=NOT_RUN, marks=marks)
    form = partial(format_ratio, decimals=2)
    if found.bound:
        at_least = found.value if found.bound == ">" else None
        text = f"{found.bound} {form(found.value)}"
        return Cell(status=CellStatus.CENSORED, text=text, marks=marks, at_least=at_least)
    return interval_cell(Interval(found.value, found.low, found.high), form, found.n, marks=marks)


def _notes(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a sentence on means and intervals."""
    counts = sorted({cell.count for cell in cells if cell.count})
    if counts == [1]:
        yield f"One seed, so without an interval. {HALFWAY_SENTENCE}"
    elif counts:
        yield (
            f"Geometric mean of {number_range(counts)} seeds; in brackets: 95 % interval of the mean "
            "logarithm. Its variance is pooled over the rows, or the row's own if it is larger, and no less "
            f"than that of the times between evaluations. {HALFWAY_SENTENCE}"
        )


def _remarks(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield sentences on cells that have only a bound, or nothing."""
    there = {cell.text[:1] for cell in cells if cell.status is CellStatus.CENSORED}
    if there & {"<", ">"}:
        yield f"{BOUND_WORDS}: trainings ended before they reached the target."
    if NOT_RUN in there:
        yield f"{NOT_RUN}: no bound, as trainings of the row and of the baseline missed the target."
