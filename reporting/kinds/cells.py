"""`cells`: a table with a factor in rows, and another or metrics in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import polars as pl
from pydantic import Field, ValidationInfo, field_validator

from ...diagnostics import nearest_hint
from ...studies.catalog.metrics import (
    ANALYTIC_COSTS,
    METRICS_AND_COSTS,
    find_metric,
    metric_family,
    unknown_metric,
)
from ...studies.catalog.published import published_tables
from ...studies.presentation.changes import (
    CHANGES,
    Changes,
    change_faults,
    read_changes,
    unselected_baseline_faults,
)
from ...studies.presentation.kinds import (
    Beside,
    Center,
    KeyFault,
    Significance,
    Spread,
    TableKind,
    find_levels,
    metric_faults,
)
from ...studies.presentation.metric_words import with_true_title
from ...studies.presentation.selection import (
    describe_mixed_levels,
    fixed_levels,
    is_selected,
    level_name_fault,
    select_faults,
    selected_levels,
)
from ...studies.resolve.trial import Trial
from ...studies.schema.design import Design
from ...studies.schema.factors import SEED
from ...studies.schema.level_names import level_name, level_text, one_line
from ...studies.schema.settings import Level, Names
from ...studies.text.strict_model import StrictModel, format_value
from ...studies.text.toml_positions import KeyPath
from ..outcomes import provenance
from ..statistics.sequential import seeds_at_looks
from ..tables.axes import TableRow, columns_of, rows_of, rows_of_changes
from ..tables.captions import caption_sentences
from ..tables.cells import CellFiller
from ..tables.differences import column_differences
from ..tables.published import add_paper_only, add_published_columns, match_published
from ..tables.table import ColumnKey, Footnotes, Table
from ..tables.tally import CellKey, Tally, pick_best, tallies_at_looks, tally_trials
from ..tables.unsolved import note_unsolved
from ..tables.untrained import untrained_remarks

if TYPE_CHECKING:
    from ...studies.study import Study


class GroupSpec(StrictModel):
    """`groups`: the headings over rows and columns, each with the levels or metrics under it."""

    rows: dict[str, list[Any]] = Field(default={})
    """headings of rows, each with a list of levels"""
    columns: dict[str, list[Any]] = Field(default={})
    """headings of columns, each with a list of levels or metrics"""


class PublishedSpec(StrictModel):
    """`published`: the paper's table, and its names of our rows and columns where they differ."""

    table: str | None = None
    """the paper's table; by default the one of this name"""
    rows: dict[str, str] = Field(default={})
    """the paper's names of rows, by level, where they do not follow from the blocks"""
    columns: dict[str, str] = Field(default={})
    """the paper's names of columns, by level, metric or `"metric:level"`"""
    show: Literal["below", "difference", "columns"] = "below"
    """where the paper's numbers are: below ours, below with our difference from them, or in columns"""


class CellsTable(TableKind):
    """`[[table]]`: a factor in rows, another or metrics in columns, and what each cell says of its trials."""

    kind: Literal["cells"] = "cells"
    """a table of cells, which these keys describe; other kinds have keys of their own"""
    rows: str
    """the factor whose levels are rows, or `"changes"`: the baseline, and cells by what differs from it"""
    columns: str | None = None
    """the factor whose levels are columns; without one, the metrics are the columns"""
    value: Names
    """a metric or a cost, or a list of them, shown side by side"""
    published: PublishedSpec = PublishedSpec()
    """the paper's table, as a text, or with these keys"""
    center: Center = "mean"
    """how the values of all seeds are summarised; iqm is the interquartile mean"""
    spread: Spread = "sd"
    """the spread after the centre: standard deviation, standard error, or 95 % confidence interval"""
    best: Literal["shown", "test"] = "shown"
    """which values are bold: all that are printed like the best, or all that no other value is significantly
    better than"""
    baseline: Any = None
    """the row that all other rows are compared with; for `changes`, the levels of factors, where they differ
    from the study's baseline"""
    against: Literal["baseline", "previous"] | None = None
    """the row that rows of `changes` are compared with: the baseline, or the row before, which is the default
    where the design takes one step after the other"""
    significance: Significance = "star"
    """the mark after a difference from the baseline: a star where p < 0.05 after correction, stars for 0.05,
    0.01 and 0.001, p itself, or none"""
    smallest_difference: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default={})
    """the smallest difference that matters, by metric, or a number for a single metric; differences that are
    shown to be smaller have ≈, and `study run --until-decided` adds seeds where neither this nor a difference
    is shown"""
    groups: GroupSpec = GroupSpec()
    """headings over rows and columns"""
    select: dict[str, Any] = Field(default={})
    """for a factor, the level or the list of levels that is kept"""
    over: Names = ()
    """factors over which a cell is aggregated, besides its seeds"""
    pick: Literal["best"] | None = None
    """each cell shows its best level of `over` by the first metric, instead of the mean over all"""
    otherwise: str | None = None
    """a metric that is shown in parentheses in cells without a `value`"""
    untrained: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(default={})
    """by metric, the value that a training must reach to count as trained; cells with trainings that end
    worse have a footnote with their number"""
    digits: dict[str, Annotated[int, Field(ge=0, le=12)]] = Field(default={})
    """decimals by metric, where they are not the metric's own"""

    @field_validator("value")
    @classmethod
    def check_not_empty(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Check that there is a metric."""
        if not names:
            raise ValueError("expected a metric, got an empty list")
        return names

    @field_validator("published", mode="before")
    @classmethod
    def expand_table_name(cls, table: object) -> object:
        """Return the keys for a table's name that is given instead of them."""
        return {"table": table} if isinstance(table, str) else table

    def margin(self, metric: str) -> float | None:
        """Return the smallest difference in a metric that matters; None if the table does not say."""
        return self.smallest_difference.get(metric)

    @field_validator("smallest_difference", mode="before")
    @classmethod
    def expand_number(cls, found: object, info: ValidationInfo) -> object:
        """Return the table for a number that is given instead of one with the metric that is shown."""
        metrics = info.data.get("value", ())
        if not isinstance(found, float | int) or isinstance(found, bool):
            return found
        if len(metrics) != 1:
            own = ", ".join(f"{name} = {found:g}" for name in metrics)
            raise ValueError(f"expected one for each metric, as in {{ {own} }}, got {found:g} for all")
        return {metrics[0]: float(found)}

    @property
    def published_table(self) -> str:
        """Return the name of the paper's table."""
        return self.published.table or self.name

    @property
    def level_keys(self) -> Mapping[str, str | None]:
        return {"baseline": self.rows}

    def named_metrics(self) -> Iterator[KeyFault]:
        yield from super().named_metrics()
        if self.otherwise:
            yield ("otherwise",), self.otherwise
        for name in self.untrained:
            yield ("untrained", name), name

    def with_levels(self, design: Design) -> Self:
        """Return the keys with levels for names, also under headings and beside names of the paper."""
        found, known = super().with_levels(design), design.known_levels
        levels = selected_levels(found.select, known)
        rows, columns = levels.get(self.rows, ()), levels.get(self.columns or "", ())
        row_texts, column_texts = (
            tuple(map(level_text, known.get(name or "", ()))) for name in (self.rows, self.columns)
        )
        groups, published, baseline = self.groups, self.published, found.baseline
        if isinstance(self.baseline, Mapping):
            baseline = {
                name: find_levels(level, known.get(name, ())) for name, level in self.baseline.items()
            }
        return found.model_copy(
            update={
                "baseline": baseline,
                "groups": GroupSpec(
                    rows={heading: find_levels(named, rows) for heading, named in groups.rows.items()},
                    columns={
                        heading: find_levels(named, columns) for heading, named in groups.columns.items()
                    },
                ),
                "published": published.model_copy(
                    update={
                        "rows": {
                            find_levels(name, row_texts): their for name, their in published.rows.items()
                        },
                        "columns": {
                            _column_text(name, column_texts): their
                            for name, their in published.columns.items()
                        },
                    }
                ),
            }
        )

    def faults(self, design: Design, paper: str | None) -> list[KeyFault]:
        """Return everything that does not fit; levels that overrides have removed are just not shown."""
        factors = design.known_levels
        faults = [*_factor_faults(self, factors), *select_faults(self.select, factors)]
        levels = factors if faults else selected_levels(self.select, factors)
        if self.against is not None and self.rows != CHANGES:
            faults.append((("against",), f'expected rows = "{CHANGES}", got rows of {self.rows}'))
        if self.rows == CHANGES:
            faults += change_faults(self, design)
            if not faults:
                faults += unselected_baseline_faults(self, design)
        elif not faults:
            faults += _mixed_level_faults(self, design)
        if self.columns is None or self.columns in factors:
            if self.rows in factors:
                faults += _baseline_faults(self, levels)
            if self.rows in factors or self.rows == CHANGES:
                faults += _group_faults(self, levels)
        faults += [*_significance_faults(self), *_margin_faults(self)]
        return [*faults, *_metric_faults(self), *_published_faults(self, factors, paper)]

    def table(self, study: Study, outcomes: pl.DataFrame, beside: Beside) -> Table:
        filler = make_filler(study, self, outcomes, beside)
        table, match = _assemble_table(study, filler, outcomes), filler.published_match
        if match and beside.paper_only:
            table = add_paper_only(table, match, filler.rows, filler.columns)
        return add_published_columns(table) if match and self.published.show == "columns" else table


def _column_text(name: str, texts: Sequence[str]) -> str:
    """Return the internal name of a column: a level, a metric, or `metric:level`."""
    metric, colon, level = name.partition(":")
    return f"{metric}:{find_levels(level, texts)}" if colon else str(find_levels(name, texts))


def _factor_faults(spec: CellsTable, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    met: dict[str, str] = {}
    places: list[tuple[KeyPath, str]] = [(("rows",), spec.rows)]
    if spec.columns is not None:
        places.append((("columns",), spec.columns))
    places += [(("over", number), factor) for number, factor in enumerate(spec.over)]
    for path, factor in places:
        known = (*factors, CHANGES) if path == ("rows",) else tuple(factors)
        if factor not in known:
            yield path, f"unknown factor '{factor}'{nearest_hint(factor, known)}"
        if factor in met:
            yield path, f"expected a factor other than {met[factor]}, got '{factor}'"
        met.setdefault(factor, "the rows'" if path[0] == "rows" else "the columns'")
    if SEED in spec.over:
        yield ("over", spec.over.index(SEED)), "every cell is aggregated over its seeds already"
    if spec.pick and not spec.over:
        yield ("pick",), 'expected factors to pick from, as in over = "lr"'


def _mixed_level_faults(spec: CellsTable, design: Design) -> Iterator[KeyFault]:
    """Yield the factors, with their levels, that a cell of the table would mix by accident."""
    shown = [name for name in (spec.rows, spec.columns, *spec.over) if name is not None]
    if mixed := describe_mixed_levels(shown, spec.select, design):
        key = "rows" if spec.columns is None else "columns"
        yield (key,), f"expected every other factor but {SEED} to have one level, got {mixed}"


def _baseline_faults(spec: CellsTable, levels: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    if spec.baseline is None:
        return
    if message := level_name_fault(spec.baseline, levels[spec.rows], spec.rows):
        yield ("baseline",), message
    if spec.published.show == "difference":
        path = ("published", "show")
        yield path, "expected below or columns, since differences are from the baseline, got difference"


def _significance_faults(spec: CellsTable) -> Iterator[KeyFault]:
    if spec.significance == "star":
        return
    asked = f'significance = "{spec.significance}"'
    if spec.baseline is None and spec.rows != CHANGES:
        yield ("significance",), f"expected a baseline beside {asked}, which is of differences from it"
    elif spec.center != "mean" and spec.significance != "none":
        yield ("significance",), f'expected center = "mean" beside {asked}, got "{spec.center}"'


def _margin_faults(spec: CellsTable) -> Iterator[KeyFault]:
    path: KeyPath = ("smallest_difference",)
    if not spec.smallest_difference:
        return
    if spec.baseline is None and spec.rows != CHANGES and spec.best != "test":
        yield path, f'expected a baseline, rows = "{CHANGES}" or best = "test" beside it: nothing is compared'
    if spec.center != "mean":
        yield path, f'expected center = "mean" beside it, got "{spec.center}"'
    if spec.pick is not None:
        yield path, "expected no pick, which would choose among levels anew with each seed"
    for name in spec.smallest_difference:
        if name not in spec.value:
            yield path, f"expected a metric of value, got '{name}'{nearest_hint(name, spec.value)}"
        elif name in ANALYTIC_COSTS:
            yield path, f"{name} is computed, not measured: no seed would tell more"


def _group_faults(spec: CellsTable, levels: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    """Yield unknown levels under a heading, and levels under two headings."""
    columns = levels[spec.columns] if spec.columns else spec.value
    for side, groups, known, factor in (
        ("rows", spec.groups.rows, levels.get(spec.rows, ()), spec.rows),
        ("columns", spec.groups.columns, columns, spec.columns or "value"),
    ):
        met: dict[str, str] = {}
        for heading, members in groups.items():
            for number, level in enumerate(members):
                place = ("groups", side, heading, number)
                if message := level_name_fault(level, known, factor):
                    yield place, message
                elif level_text(level) in met:
                    yield place, f"{format_value(level)} is in the group '{met[level_text(level)]}' already"
                else:
                    met[level_text(level)] = heading


def _metric_faults(spec: CellsTable) -> Iterator[KeyFault]:
    yield from metric_faults(spec.value, spec.digits, [spec.otherwise] if spec.otherwise else [])
    for name in spec.untrained:
        if metric_family(name) not in METRICS_AND_COSTS:
            yield ("untrained",), unknown_metric(name)
        elif find_metric(name).higher_is_better is None:
            yield ("untrained",), f"expected a metric of which higher or lower is better, got '{name}'"
    first = spec.value[0]
    if (
        spec.pick
        and metric_family(first) in METRICS_AND_COSTS
        and find_metric(first).higher_is_better is None
    ):
        yield ("pick",), f"expected a metric of which higher or lower is better, got '{first}'"
    yield from _otherwise_faults(spec)


def _otherwise_faults(spec: CellsTable) -> Iterator[KeyFault]:
    path: KeyPath = ("otherwise",)
    if spec.otherwise is None:
        return
    if metric_family(spec.otherwise) not in METRICS_AND_COSTS:
        yield path, unknown_metric(spec.otherwise)
    elif spec.pick and find_metric(spec.otherwise).higher_is_better is None:
        yield path, f"expected a metric of which higher or lower is better, got '{spec.otherwise}'"
    if spec.otherwise in spec.value:
        yield path, f"expected a metric other than value, got '{spec.otherwise}'"
    if len(spec.value) > 1:
        yield path, f"expected one metric in value, in place of which it is shown, got {len(spec.value)}"
    if spec.baseline is not None:
        yield path, "expected no baseline, whose differences are in parentheses too"


def _published_faults(
    spec: CellsTable, factors: Mapping[str, tuple[Level, ...]], paper: str | None
) -> Iterator[KeyFault]:
    """Yield an unknown table of the paper, and unknown rows and columns of that table or of ours.

    The published table's name defaults to the name of our table. It must exist where rows or columns are
    named. Names of rows and columns are only checked if the table is known.
    """
    tables = {name: table for (known, name), table in published_tables().items() if known == paper}
    named = spec.published.table is not None or spec.published.rows or spec.published.columns
    if named and spec.published_table not in tables:
        unknown = f"no published table '{spec.published_table}' of {paper or 'a paper: [study] names none'}"
        yield ("published",), unknown + nearest_hint(spec.published_table, tables)
    if spec.published_table not in tables or spec.rows not in factors:
        return
    table, columns = tables[spec.published_table], list(spec.value)
    if spec.columns is not None and spec.columns in factors:
        texts = [level_text(level) for level in factors[spec.columns]]
        columns += [*texts, *(f"{name}:{text}" for name in spec.value for text in texts)]
    rows = list(map(level_text, factors[spec.rows]))
    sides = (
        ("row", spec.published.rows, rows, table.rows),
        ("column", spec.published.columns, columns, table.columns),
    )
    for side, names, ours, theirs in sides:
        for our, their in names.items():
            path = ("published", f"{side}s", our)
            if our not in ours:
                yield path, f"no {side} '{our}'{nearest_hint(our, ours)}"
            if their not in theirs:
                unknown = f"{table.paper} {table.name} has no {side} '{their}'"
                yield path, unknown + nearest_hint(their, theirs)


def make_filler(
    study: Study,
    spec: CellsTable,
    outcomes: pl.DataFrame,
    beside: Beside = Beside(),  # noqa: B008 -- frozen
) -> CellFiller:
    """Return the filler of a table's cells: its rows and columns, their trials, and the paper's numbers."""
    changes = read_changes(spec, study.design) if spec.rows == CHANGES else None
    grows = bool(spec.smallest_difference) and SEED not in spec.select
    looks = seeds_at_looks(study.seeds, study.later_seeds if grows else ())
    trials = _selected_trials(study.with_later_seeds() if len(looks) > 1 else study, spec, changes)

    def tally(some: Sequence[Trial]) -> dict[CellKey, tuple[Tally, ...]]:
        return tally_trials(
            study.name,
            some,
            outcomes,
            rows=spec.rows,
            columns=spec.columns,
            metrics=spec.value if spec.otherwise is None else (*spec.value, spec.otherwise),
            over=spec.over,
            separate=spec.pick is not None,
            begun=beside.begun,
        )

    if spec.pick is not None:
        best, pick_remarks = pick_best(spec, tally(trials))
        grown = {place: (each,) for place, each in best.items()}
    else:
        by_look = [tally([each for each in trials if each.levels[SEED] in seeds]) for seeds in looks]
        first, *later = ({place: each for place, (each,) in found.items()} for found in by_look)
        grown, pick_remarks = tallies_at_looks(first, later), dict[CellKey, str]()
    untrained = untrained_remarks(spec, study.name, trials, outcomes) if spec.untrained else {}
    levels = selected_levels(spec.select, study.factors)
    rows = rows_of_changes(changes) if changes else rows_of(spec, levels)
    settings = [trial.settings for trial in trials]
    metrics = {name: with_true_title(find_metric(name, spec.digits), settings) for name in spec.value}
    columns, baselines = columns_of(spec, levels, metrics), _baselines(spec, changes, rows)
    paper = published_tables().get((study.paper or "", spec.published_table)) if beside.published else None
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
        untrained=untrained,
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
    spec, rows, columns = filler.spec, filler.rows, filler.columns
    cells = filler.fill()  # makes the footnotes too
    trials = _shown_trials(study, filler, outcomes)
    settings = [trial.settings for trial in trials]
    shown = [SEED, *(name for name in (spec.rows, spec.columns, *spec.over) if name is not None)]
    table = Table(
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
            sources=study.source_sheet.summary(study.name),
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
    return note_unsolved(table, settings)


def _shown_trials(study: Study, filler: CellFiller, outcomes: pl.DataFrame) -> list[Trial]:
    """Return the trials of a table: of those with added seeds the ones that have ended."""
    ended, seeds = set(outcomes["trial"]), set(study.seeds)
    return [trial for trial in filler.trials if trial.levels[SEED] in seeds or trial.id in ended]


def _selected_trials(study: Study, spec: CellsTable, changes: Changes | None) -> list[Trial]:
    """Return the trials of the cells of a table, each at the level of its row."""
    trials = [trial for trial in study.cells if is_selected(spec.select, trial.levels)]
    if changes is None:
        return trials
    return [_with_change(trial, changes) for trial in trials if changes.has_row(trial.levels)]


def _with_change(trial: Trial, changes: Changes) -> Trial:
    return replace(trial, levels={**trial.levels, CHANGES: changes.row(trial.levels).label})


def _baselines(spec: CellsTable, changes: Changes | None, rows: Sequence[TableRow]) -> dict[str, str]:
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
    """Return, for each row, the number of differences among which its difference was chosen."""
    return {row.label: row.choices for row in changes.rows} if changes else {}


def _over_budget(study: Study, spec: CellsTable, changes: Changes | None) -> set[tuple[str, str]]:
    refused = [trial for trial in study.over_budget if is_selected(spec.select, trial.levels)]
    refused = [trial for trial in refused if changes is None or changes.has_row(trial.levels)]
    selected = [(_with_change(trial, changes) if changes else trial).levels for trial in refused]
    return {
        (level_text(levels[spec.rows]), level_text(levels[spec.columns]) if spec.columns else "")
        for levels in selected
    }


TABLE = CellsTable
