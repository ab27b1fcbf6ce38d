"""A table as a paper prints it, from a study's trials, their stored outcomes and the published numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import polars as pl

from ...studies.catalog.metrics import find_metric
from ...studies.catalog.published import published_tables
from ...studies.presentation.changes import CHANGES, Changes, read_changes
from ...studies.presentation.metric_words import with_true_title
from ...studies.presentation.named_levels import with_levels
from ...studies.presentation.reader import AnyTableSpec, any_table_faults
from ...studies.presentation.selection import fixed_levels, is_selected, selected_levels
from ...studies.presentation.table import TableSpec
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import SEED
from ...studies.schema.level_names import level_name, level_text, one_line
from ...studies.study import Study
from ..provenance import overrides_sentence, provenance
from ..statistics.sequential import seeds_at_looks
from .axes import TableRow, columns_of, rows_of, rows_of_changes
from .captions import caption_sentences
from .cells import CellFiller
from .differences import column_differences
from .pick_best import pick_best
from .published_layout import add_paper_only, add_published_columns
from .published_match import match_published
from .table import ColumnKey, Footnotes, Table, TableError
from .tally import CellKey, Tally, tallies_at_looks, tally_trials

_Separate = dict[CellKey, tuple[Tally, ...]]
"""Tallies as they are made: for each place one, or one for every combination of what it is over."""


def build_table(
    study: Study,
    spec: AnyTableSpec,
    outcomes: pl.DataFrame,
    *,
    published: bool = False,
    paper_only: bool = False,
    begun: Collection[str] = (),
) -> Table:
    """The table that `spec` describes, over the study's trials in `outcomes`, the store's latest attempts.

    `published` adds the paper's numbers, `paper_only` also the rows and columns that only the paper has.
    `begun` are the trials with a checkpoint. TableError if the specification does not fit the study.
    """
    spec = with_levels(spec, study.design)
    if wrong := any_table_faults(spec, study.design, study.paper):
        faults = (f"table {spec.name}: {'.'.join(map(str, path))}: {message}" for path, message in wrong)
        raise TableError("\n".join(faults))
    if not isinstance(spec, TableSpec):
        from .summaries.build import summary_table  # noqa: PLC0415 -- loads NumPy, which plain tables do without

        return _with_overrides(summary_table(study, spec, outcomes), study)
    filler = make_filler(study, spec, outcomes, published=published, begun=begun)
    table = _assemble_table(study, filler, outcomes)
    table = _with_overrides(table, study)
    match = filler.published_match
    if match and paper_only:
        table = add_paper_only(table, match, filler.rows, filler.columns)
    return add_published_columns(table) if match and spec.published.show == "columns" else table


def _with_overrides(table: Table, study: Study) -> Table:
    """The table with the settings that are overridden, which the file's caption may describe otherwise."""
    sentence = overrides_sentence(study.overrides)
    if not sentence:
        return table
    return replace(table, caption=(table.caption[0], sentence, *table.caption[1:]))


def make_filler(
    study: Study,
    spec: TableSpec,
    outcomes: pl.DataFrame,
    *,
    published: bool = False,
    begun: Collection[str] = (),
) -> CellFiller:
    """The filler of a table's cells: its rows and columns, their trials, and the paper's numbers.

    Arguments are as of `build_table`, of a specification that fits the study.
    """
    changes = read_changes(spec, study.design) if spec.rows == CHANGES else None
    grows = bool(spec.smallest_difference) and SEED not in spec.select
    looks = seeds_at_looks(study.seeds, study.later_seeds if grows else ())
    trials = _selected_trials(study.with_later_seeds() if len(looks) > 1 else study, spec, changes)
    tally = partial(_tally, study.name, spec, outcomes=outcomes, begun=begun)
    grown, pick_remarks = _tallies_of_places(spec, trials, looks, tally)
    levels = selected_levels(spec.select, study.factors)
    rows = rows_of_changes(changes) if changes else rows_of(spec, levels)
    settings = [trial.settings for trial in trials]
    metrics = {name: with_true_title(find_metric(name, spec.digits), settings) for name in spec.value}
    columns, baselines = columns_of(spec, levels, metrics), _baselines(spec, changes, rows)
    paper = published_tables().get((study.paper or "", spec.published_table)) if published else None
    counts = tuple(map(len, looks))
    return CellFiller(
        spec=spec,
        rows=rows,
        columns=columns,
        trials=trials,
        grown={place: tallies for place, tallies in grown.items() if place[2] in spec.value},
        counts=counts,
        fallbacks={place[:2]: tallies[-1] for place, tallies in grown.items() if place[2] == spec.otherwise},
        pick_remarks=pick_remarks,
        over_budget=_over_budget(study, spec, changes),
        baseline=changes.describe_baseline() if changes else level_name(spec.baseline or ""),
        baselines=baselines,
        differences={
            (column.metric.name, column.level): column_differences(
                column, baselines, grown, spec, choices=_choices(changes), counts=counts
            )
            for column in columns
        },
        published_match=match_published(paper, spec.published, rows, columns) if paper else None,
        footnotes=Footnotes(),
    )


def _assemble_table(study: Study, filler: CellFiller, outcomes: pl.DataFrame) -> Table:
    """The table of a filler's cells, with the sentences around it."""
    spec, rows, columns = filler.spec, filler.rows, filler.columns
    cells = filler.fill()  # makes the footnotes too
    trials = _shown_trials(study, filler, outcomes)
    settings = [trial.settings for trial in trials]
    shown = [SEED, *(name for name in (spec.rows, spec.columns, *spec.over) if name is not None)]
    return Table(
        name=spec.name,
        caption=caption_sentences(
            spec,
            columns=columns,
            levels=selected_levels(spec.select, study.factors),
            settings=settings,
            fixed=fixed_levels([trial.levels for trial in trials], shown, study.design),
            tallies=filler.tallies.values(),
            cells=list(chain(*cells)),
            differences=tuple(filler.differences.values()),
            best=filler.best_of_columns,
            baseline=filler.baseline,
            published_match=filler.published_match,
            source_sheet=study.source_sheet,
            counts=filler.counts,
        ),
        corner="" if spec.rows == CHANGES else one_line(spec.rows),
        rows=tuple(row.head for row in rows),
        columns=tuple(column.head for column in columns),
        cells=cells,
        footnotes=filler.footnotes.as_tuple(),
        provenance=provenance(list(dict.fromkeys(trial.id for trial in trials)), outcomes),
        keys=tuple(
            ColumnKey(metric=column.metric.name, level=column.head if column.level else "")
            for column in columns
        ),
        column_headings=tuple(zip(*(column.headings for column in columns), strict=True)),
        factor_line=None if spec.columns is None else int(len(spec.value) > 1),
        groups=tuple(row.group for row in rows) if any(row.group for row in rows) else (),
        center=spec.center,
        spread=spec.spread,
    )


def _shown_trials(study: Study, filler: CellFiller, outcomes: pl.DataFrame) -> list[Trial]:
    """The trials of a table: of those with added seeds the ones that have ended."""
    ended, seeds = set(outcomes["trial"]), set(study.seeds)
    return [trial for trial in filler.trials if trial.levels[SEED] in seeds or trial.id in ended]


def _selected_trials(study: Study, spec: TableSpec, changes: Changes | None) -> list[Trial]:
    """The trials of the cells of a table, each at the level of its row."""
    trials = [trial for trial in study.cells if is_selected(spec.select, trial.levels)]
    if changes is None:
        return trials
    return [_with_change(trial, changes) for trial in trials if changes.has_row(trial.levels)]


def _tally(
    study: str, spec: TableSpec, trials: Sequence[Trial], *, outcomes: pl.DataFrame, begun: Collection[str]
) -> _Separate:
    """The tallies of trials by the places of a table."""
    return tally_trials(
        study,
        trials,
        outcomes,
        rows=spec.rows,
        columns=spec.columns,
        metrics=spec.value if spec.otherwise is None else (*spec.value, spec.otherwise),
        over=spec.over,
        separate=spec.pick is not None,
        begun=begun,
    )


def _tallies_of_places(
    spec: TableSpec,
    trials: Sequence[Trial],
    looks: Sequence[tuple[int, ...]],
    tally: Callable[[Sequence[Trial]], _Separate],
) -> tuple[dict[CellKey, tuple[Tally, ...]], dict[CellKey, str]]:
    """The tallies of each place at its looks, and remarks on levels that it could not be picked from."""
    if spec.pick is not None:
        best, remarks = pick_best(spec, tally(trials))
        return {place: (each,) for place, each in best.items()}, remarks
    first, *later = (
        {
            place: together
            for place, (together,) in tally([each for each in trials if each.levels[SEED] in seeds]).items()
        }
        for seeds in looks
    )
    return tallies_at_looks(first, later), {}


def _with_change(trial: Trial, changes: Changes) -> Trial:
    """The trial with the name of its row as its level of what the rows are."""
    return replace(trial, levels={**trial.levels, CHANGES: changes.row(trial.levels).label})


def _baselines(spec: TableSpec, changes: Changes | None, rows: Sequence[TableRow]) -> dict[str, str]:
    """The row that each row differs from; baselines differ from none."""
    if changes:
        labels = [row.label for row in changes.rows]
        return {
            row.label: labels[row.reference] for at, row in enumerate(changes.rows) if row.reference != at
        }
    if spec.baseline is None:
        return {}
    baseline = level_text(spec.baseline)
    return {row.level: baseline for row in rows if row.level != baseline}


def _choices(changes: Changes | None) -> dict[str, int]:
    """Of how many differences that of each row was kept."""
    return {row.label: row.choices for row in changes.rows} if changes else {}


def _over_budget(study: Study, spec: TableSpec, changes: Changes | None) -> set[tuple[str, str]]:
    """The rows and columns of trials that the study's budget does not allow."""
    refused = [trial for trial in study.over_budget if is_selected(spec.select, trial.levels)]
    refused = [trial for trial in refused if changes is None or changes.has_row(trial.levels)]
    selected = [(_with_change(trial, changes) if changes else trial).levels for trial in refused]
    return {
        (level_text(levels[spec.rows]), level_text(levels[spec.columns]) if spec.columns else "")
        for levels in selected
    }
