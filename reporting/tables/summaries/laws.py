"""`kind = "scaling"`: the law of each series, and what it foretells of cells that are held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from ....studies.catalog.metrics import Metric, find_metric
from ....studies.planning.probe_targets import probe_command
from ....studies.presentation.metric_words import difference_sentence, with_true_title
from ....studies.presentation.scaling import ScalingTableSpec
from ....studies.presentation.selection import describe_levels, fixed_levels, selected_levels
from ....studies.schema.design import level_key
from ....studies.schema.factors import SEED
from ....studies.schema.level_names import level_name, one_line, short_level_names
from ....studies.study import Study
from ...observations import selected_trials
from ...outcomes import omitted_trials
from ...provenance import provenance
from ...scaling_cells import FittedLaw, LawCell, fit_law, fitted_cells, law_cells
from ...statistics.estimates import Estimate
from ...statistics.power_law import MIN_OFFSET_CELLS, OffsetLaw
from ..table import Cell, CellStatus, ColumnKey, Footnotes, Table
from ..tally import NOT_RUN

_ALL = "all"


def table_of_laws(study: Study, spec: ScalingTableSpec, outcomes: pl.DataFrame) -> Table:
    """The table that `spec` describes, over the study's trials in `outcomes`."""
    trials = selected_trials(study, spec.select)
    settings = [trial.settings for trial in trials]
    metric, cost = (with_true_title(find_metric(name), settings)[0] for name in (spec.metric, spec.x))
    found = law_cells(study, spec, outcomes)
    levels = selected_levels(spec.select, study.factors)[spec.series] if spec.series else ()
    series = [found.of(level_key(level)) for level in levels] if spec.series else [found.of("")]
    names = short_level_names([level_name(level) for level in levels]) if spec.series else (_ALL,)
    columns = ["exponent", *(["offset"] if spec.offset else []), "cells"]
    columns += [text for place in range(spec.held_out) for text in _held_out_columns(place, spec.held_out)]
    fixed = fixed_levels([trial.levels for trial in trials], (SEED, spec.series or ""), study.design)
    return Table(
        name=spec.name,
        caption=(
            *_sentences(spec, metric, cost),
            *([f"At {describe_levels(fixed)}."] if fixed else []),
            *([difference] if (difference := difference_sentence([metric], settings)) else []),
            *omitted_trials(
                found.observations.gaps,
                len(found.observations.values) + found.observations.gaps.total(),
                probe_command(study.name),
            ),
        ),
        corner=spec.series or "law",
        rows=tuple(map(one_line, names)),
        columns=tuple(columns),
        cells=tuple(tuple(_row(spec, metric, cells)) for cells in series),
        footnotes=Footnotes().as_tuple(),
        provenance=provenance(found.observations.trials, outcomes),
        keys=tuple(ColumnKey(metric=metric.name, level=text) for text in columns),
        spread="ci",
    )


def _held_out_columns(place: int, count: int) -> tuple[str, str]:
    """The headings of what is foretold and of what came, of the last sizes in their order."""
    which = "" if count == 1 else f" {place + 1}"
    return f"foretold{which}", f"measured{which}"


def _row(spec: ScalingTableSpec, metric: Metric, cells: Sequence[LawCell]) -> Iterator[Cell]:
    """A series: its law, and each cell that is held out."""
    law, fitted = fit_law(spec, cells), fitted_cells(spec, cells)
    yield _exponent(law)
    if spec.offset:
        yield _offset(law, metric)
    yield _number(float(len(fitted)), str(len(fitted)))
    held = cells[len(fitted) :]
    for place in range(spec.held_out):
        cell = held[place] if place < len(held) else None
        yield _foretold(law, cell, metric)
        yield (
            _empty() if cell is None else _number(cell.result, metric.format(cell.result), len(cell.results))
        )


def _exponent(law: FittedLaw | None) -> Cell:
    if law is None:
        return _empty()
    half = law.half_width
    bounds = None if half is None else (law.exponent - half, law.exponent + half)
    if isinstance(law, OffsetLaw):
        bounds = law.exponent_interval
    return _between(law.exponent, bounds, lambda value: f"{value:.3f}".replace("-", "−"), law.n)


def _offset(law: FittedLaw | None, metric: Metric) -> Cell:
    if not isinstance(law, OffsetLaw):
        return _empty()
    return _between(law.offset, law.offset_interval, metric.format, law.n)


def _foretold(law: FittedLaw | None, cell: LawCell | None, metric: Metric) -> Cell:
    """What the law says of a cell, with the interval of one cell."""
    if law is None or cell is None:
        return _empty()
    value, low, high = law.next_cell(cell.cost)
    return _between(value, None if low is None or high is None else (low, high), metric.format, law.n)


def _measured(cell: LawCell | None, metric: Metric) -> Cell:
    if cell is None:
        return _empty()
    return _number(cell.result, metric.format(cell.result), len(cell.results))


def _between(
    value: float, bounds: tuple[float, float] | None, form: Callable[[float], str], count: int
) -> Cell:
    """A number with its interval, if it has one."""
    low, high = bounds or (None, None)
    half = None if low is None or high is None else (high - low) / 2
    return Cell(
        status=CellStatus.DONE,
        estimate=Estimate(value=value, low=low, high=high, spread=half, n=count),
        text=form(value),
        interval="" if low is None or high is None else f"[{form(low)}, {form(high)}]",
    )


def _number(value: float, text: str, count: int = 1) -> Cell:
    estimate = Estimate(value=value, low=None, high=None, spread=None, n=count)
    return Cell(status=CellStatus.DONE, estimate=estimate, text=text)


def _empty() -> Cell:
    return Cell(status=CellStatus.NO_VALUE, text=NOT_RUN)


def _sentences(spec: ScalingTableSpec, metric: Metric, cost: Metric) -> Iterator[str]:
    """What is fitted, and what brackets are."""
    subject = one_line(spec.caption or f"{metric.title} by {cost.title[:1].lower()}{cost.title[1:]}")
    yield f"{subject.removesuffix('.')}."
    law = "y = offset + a xᵇ" if spec.offset else "y = a xᵇ"
    yield f"Law: {law}, by least squares on the logarithms of the cells' geometric means; a cell counts once."
    if spec.offset:
        yield (
            "In brackets: 95 % profile intervals (F, degrees of freedom: cells less 3); with fewer than"
            f" {MIN_OFFSET_CELLS} cells a law without an offset."
        )
    else:
        yield "In brackets: 95 % intervals (t, degrees of freedom: cells less 2)."
    if spec.held_out:
        last = "cell" if spec.held_out == 1 else f"{spec.held_out} cells"
        yield f"Foretold: the {last} of the highest cost, not fitted, with the interval of a cell."
    if spec.over:
        yield f"Of {' and '.join(spec.over)} the best level of each cell, by the mean of its seeds."
