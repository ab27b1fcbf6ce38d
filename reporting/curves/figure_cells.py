"""The values that a figure of cells shows, with the positions and the names of their levels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import polars as pl

from ...studies.catalog.metrics import METRICS_AND_COSTS, Currency, Metric, find_metric
from ...studies.planning.final_values import (
    TOTAL_COSTS,
    ValueStatus,
    combined_status,
    last_members,
    without_whole_dev,
)
from ...studies.presentation.figure_keys import INDEX_AXES, TIME_AXES, CellFigure
from ...studies.presentation.kinds import Spread, place_of, selected_seeds
from ...studies.presentation.metric_words import in_sentence, with_true_title
from ...studies.resolve.trial import CellKey, Trial
from ...studies.schema.factors import ABSENT, SEED, level_key, level_name, named_levels, one_line
from ...studies.schema.settings import Level
from ...studies.text.units import number_range, plural
from ..observe import BROKEN, observe
from ..picked_levels import MAX_LISTED, Picks, pick_cells, pick_note
from ..subject import ResultSubject, final_values
from .curve import Axis, Content, Curve, Panel, Ticks, subject_curve

SPREADS: Mapping[Spread, str] = {"sd": "± 1 s.d", "se": "± 1 standard error", "ci": "95 % t interval"}
"""The words for each kind of interval."""

SPENT_AXES: Mapping[str, Currency] = {"tokens": "tokens", "flops": "flops", "seconds": "seconds"}
"""The axes that show a cost of training other than steps, with the unit of each cost."""

POSITION_COLUMNS = ("panel", "series", "x", "y")
"""Columns with the position of a value: the index of a level, or a measured value on the axis."""

_WHOLE_DEV = (
    "The value after the last epoch is left out: it is of the whole dev split, and the others are of a part."
)
_INDEXED_METRIC = r"^[^\[]*\[([^,\]]*)(?:,([^,\]]*)(?:,[^\]]*)?)?\]$"  # for a metric with an index
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")
_LEFT_OUT = (
    ValueStatus.FAILED,
    ValueStatus.DIVERGED,
    ValueStatus.PRUNED,
    ValueStatus.INCOMPLETE,
    ValueStatus.MISSING,
)
_POSITION_SCHEMA = {"trial": pl.String, "cell": pl.Int32, **dict.fromkeys(POSITION_COLUMNS, pl.Int32)}


@dataclass(frozen=True, kw_only=True)
class FigureCells:
    """The values that a figure shows: all finite values of finished trials.

    Trials without a finite value are only counted. `frame` has the columns `trial`, `cell`, POSITION_COLUMNS
    and `value`. `cell` numbers the combinations of levels without the seed, and `cells` has their levels.
    `picked` has the cells that the key `pick_by` picks, if it is set. `trials` are all selected trials.
    `gaps` counts the trials without a value by status, `diverged` the diverged ones by `cell`, and `statuses`
    has the text of the status of the trials at each position. `metrics` are the stored histories, if the
    figure needs them. `lacks_whole_dev` is true if values of the whole dev split are left out, because others
    are of a part.
    """

    spec: CellFigure
    subject: ResultSubject
    picked: Picks
    metrics: pl.DataFrame | None
    frame: pl.DataFrame
    trials: tuple[str, ...]
    cells: tuple[Mapping[str, Level], ...]
    gaps: Counter[str]
    diverged: Counter[int]
    statuses: Mapping[tuple[int, ...], str]
    lacks_whole_dev: bool

    @property
    def planned(self) -> int:
        """Return the number of selected trials."""
        return len(self.trials)

    @property
    def levels(self) -> Mapping[str, tuple[Level, ...]]:
        """Return the selected levels of every factor, in the order of the study."""
        return self.subject.levels

    @cached_property
    def metric(self) -> Metric:
        """Return the metric of the figure, with a title that suits its trials."""
        over_index = not {*INDEX_AXES}.isdisjoint(self.spec.roles.values())
        metric = find_metric(self.spec.value)
        return with_true_title(metric, self.subject.settings, over_index=over_index)[0]

    @cached_property
    def x_metric(self) -> Metric | None:
        """Return the metric on the horizontal axis, if it shows one."""
        return self.subject.metric(self.spec.x) if self.spec.x in METRICS_AND_COSTS else None

    def axis_title(self, name: str) -> str:
        """Return the title of an axis. The axis shows an index, a metric, a cost, a time or a factor."""
        if name in INDEX_AXES:
            return dict(zip(INDEX_AXES, self.metric.index_titles, strict=False)).get(name, "Index")
        if self.spec.is_course and name == self.spec.x:
            return TIME_AXES[name]
        if name in METRICS_AND_COSTS:
            shown = self.x_metric or METRICS_AND_COSTS[name]
            return shown.axis_title or shown.title
        return one_line(name)

    def full_names(self, factor: str | None) -> tuple[str, ...]:
        """Return the displayed names of a factor's levels, such as `conv` or, for a number, `width 64`."""
        return named_levels(factor or "", self.levels.get(factor or "", ()))

    def cell_name(self, cell: int, without: Collection[str | None] = ()) -> str:
        """Return the name of a cell: its levels of all factors that vary, except the factors in `without`."""
        own, names = self.cells[cell], list[str]()
        for factor, levels in self.levels.items():
            if factor not in (SEED, *without) and len(levels) > 1 and own[factor] != ABSENT:
                place = [*map(level_key, levels)].index(level_key(own[factor]))
                names.append(self.full_names(factor)[place])
        return ", ".join(names)

    @cached_property
    def accent(self) -> int | None:
        """Return the index of the level that is drawn in colour; None without such a level."""
        factor = self.spec.level_keys.get("accent")
        keys = [level_key(level) for level in self.levels.get(factor or "", ())]
        accent = getattr(self.spec, "accent", None)
        wanted = None if accent is None else level_key(accent)
        return keys.index(wanted) if wanted in keys else None

    def frames(self) -> list[pl.DataFrame]:
        """Return the values of each panel, row by row. A row has a panel for each level of `panels`."""
        rows, columns = (len(self.full_names(name)) or 1 for name in (self.spec.rows, self.spec.panels))
        return [self.frame.filter(panel=number) for number in range(rows * columns)]

    def panels(self, contents: Iterable[Content]) -> tuple[Panel, ...]:
        """Return the panels with these contents, which are in the order of `frames`."""
        rows, columns = (self.full_names(name) or ("",) for name in (self.spec.rows, self.spec.panels))
        return tuple(
            Panel(title=title, row=row, content=content)
            for (row, title), content in zip(product(rows, columns), contents, strict=True)
        )

    def curve(
        self, panels: tuple[Panel, ...], notes: Iterable[str], *, ticks: Ticks = (), own_scales: bool = False
    ) -> Curve:
        """Return the figure with these panels, and with notes on their marks.

        `ticks` are those of the horizontal axis; without them, they are at round numbers. Panels with
        `own_scales` are not comparable by eye.
        """
        spec, subject, metric, roles = self.spec, self.subject, self.metric, self.spec.roles
        fixed, title = subject.fixed(roles.values()), metric.axis_title or metric.title
        axes = [self.axis_title(roles[role]) for role in ("y", "x") if role in roles]
        over = " and ".join(in_sentence(each).partition(",")[0] for each in axes)
        by = f"{',' if ',' in title else ''} {'against' if spec.marks_cells else 'by'} {over}"
        shown = [name for name in roles.values() if name in subject.levels]
        log_x, log_y = (getattr(spec, key, False) for key in ("logx", "logy"))
        return subject_curve(
            spec,
            subject,
            self,
            caption="; ".join([title + by, *(f"{name} {level_name(each)}" for name, each in fixed.items())]),
            fixed=fixed,
            metrics=[each for each in (metric, self.x_metric) if each],
            notes=(
                *pick_note(spec, subject, self.picked, shown),
                *notes,
                *(("Each panel has scales of its own.",) if own_scales else ()),
                *((_WHOLE_DEV,) if self.lacks_whole_dev else ()),
            ),
            x=Axis(title=self.axis_title(spec.x), log=log_x, ticks=ticks),
            y=Axis(title=self.axis_title(roles["y"]) if "y" in roles else title, log=log_y),
            panels=panels,
            own_scales=own_scales,
            trials=self.trials,
        )

    def placeholders(self, panel: int) -> dict[tuple[object, object], str]:
        """Return the texts in place of missing values in a panel, by row and column."""
        return {(y, x): word for (at, _, x, y), word in self.statuses.items() if at == panel}

    def index_positions(self, role: str) -> tuple[Mapping[object, float], Ticks]:
        """Return the axis positions of a metric's indices, such as test lengths, and the ticks.

        If all indices are plain numbers, they are the positions, and no ticks are returned. The position of a
        range such as `10-20` is its middle. Words are in alphabetical order, at equal distances.
        """
        indices: list[str] = self.frame[role].unique().sort().to_list()
        ranges = {index: _RANGE.fullmatch(index) for index in indices}
        try:
            return {index: float(index) for index in indices}, ()
        except ValueError:  # not all are plain numbers
            pass
        if all(ranges.values()):
            at: dict[object, float] = {
                index: (float(found[1]) + float(found[2])) / 2 for index, found in ranges.items() if found
            }
            order = sorted(indices, key=at.__getitem__)
            return at, tuple((at[index], index.replace("-", "–")) for index in order)
        return {word: float(n) for n, word in enumerate(indices)}, tuple(enumerate(indices))

    def index_labels(self, name: str) -> dict[str, str]:
        """Return the texts of the indices on an axis, if another metric has them and all trials agree."""
        families, place = self.metric.index_labels, INDEX_AXES.index(name)
        if self.metrics is None or place >= len(families):
            return {}
        drawn = self.metrics.join(self.frame.select("trial"), on="trial", how="semi")
        alike = _by_index(drawn, families[place]).group_by("index").agg(pl.col("value").unique())
        if not len(alike) or alike["value"].list.len().max() != 1:
            return {}
        return {index: f"{value[0]:.0f}" for index, value in alike.iter_rows()}

    def second_metric(self) -> dict[int, dict[int, str]]:
        """Return the texts of notes on the second metric of a heat map, by panel and index.

        A text has the label of the index, the label of the next index, and the mean of the second metric. The
        shown metric names the second metric in its field `noted`.
        """
        metric, name = self.metric, INDEX_AXES[-1]
        if not metric.noted or self.metrics is None or name not in self.spec.roles.values():
            return {}
        if not (texts := self.index_labels(name)):
            return {}
        panels = self.frame.select("trial", "panel").unique()
        values = _by_index(self.metrics, metric.noted).join(panels, on="trial")
        means = values.group_by("panel", pl.col("index").cast(pl.Int32)).agg(pl.col("value").mean())
        found: dict[int, dict[int, str]] = {}
        for panel, index, value in means.sort("panel", "index").iter_rows():
            pair = f"{texts.get(str(index), index)} {texts.get(str(index + 1), index + 1)}"
            found.setdefault(panel, {})[index] = f"{pair} {find_metric(metric.noted).format(value)}"
        return found

    @property
    def nothing(self) -> list[str]:
        """Return a note that there is nothing to draw; empty if there is."""
        awaits_probe = self.gaps[ValueStatus.PENDING] > 0
        note = f"Nothing to draw: no trial is {'probed' if awaits_probe else 'done'}."
        return [] if len(self.frame) else [note]

    def mean_text(self, value: float, cell: int) -> str:
        """Return the text of a cell's mean, marked if it lacks seeds that diverged."""
        return self.metric.format(value) + "*" * (cell in self.diverged)

    def mean_notes(self, mark: str, interval: str = "", *, diverged: str = "*") -> list[str]:
        """Return notes on the marks of means and intervals, such as "Bar: mean of 3 seeds".

        `diverged` describes how means look that lack seeds.
        """
        if self.nothing:
            return self.nothing
        places = ("panel", "cell") if self.spec.marks_cells else POSITION_COLUMNS
        counts = self.frame.group_by(places).len()["len"]
        low, high = min(counts), max(counts)
        shown: Spread = getattr(self.spec, "spread", "sd")
        part = f"; {interval}: {SPREADS[shown]}." if interval else "."
        chosen = selected_seeds(self.spec.select, self.subject.study.factors)
        noun = self.subject.study.repeats
        seeds = chosen or (f"one {noun}" if high == 1 else f"{number_range([low, high])} {noun}s")
        mean = f"{seeds}." if high == 1 else f"mean of {seeds}{part}"
        has_diverged = not self.diverged.keys().isdisjoint(self.frame["cell"])
        return [
            f"{mark}: {mean}",
            *[f"{diverged}: without the {noun}s that diverged or failed."] * has_diverged,
        ]

    def lost_note(self) -> list[str]:
        """Return a note that names the cells without a value in which seeds diverged; empty without them."""
        over = self.spec.over
        drawn = {place_of(self.cells[cell], over) for cell in self.frame["cell"].unique()}
        lost = (cell for cell in sorted(self.diverged) if place_of(self.cells[cell], over) not in drawn)
        names = dict.fromkeys(self.cell_name(cell, over) for cell in lost)
        listed = "; ".join(names) if len(names) <= MAX_LISTED else plural(len(names), "cell")
        return (
            [f"Without a value, since {self.subject.study.repeats}s diverged or failed: {listed}."]
            if names
            else []
        )


def collect_cells(spec: CellFigure, subject: ResultSubject, metrics: pl.DataFrame | None) -> FigureCells:
    """Collect the values that a figure shows from the results in the store.

    A figure of final values does not need or read `metrics`.
    """
    study, outcomes, picked = subject.study, subject.outcomes, pick_cells(spec, subject)
    # a figure shows only trials that have all of its factors; all seeds of a cell share their settings
    of_cells = {id(trial.common): trial.levels for trial in subject.trials}
    shown = spec.roles.values()
    lacking = {cell for cell, levels in of_cells.items() if any(levels.get(name) == ABSENT for name in shown)}
    trials = [trial for trial in subject.trials if id(trial.common) not in lacking]
    placed, cells = _locate_trials(spec, subject.levels, trials)
    finals = observe(study, trials, outcomes, spec.value)
    ends = placed.with_columns(finals["seed"], finals["status"], finals["why"])
    if spec.over:  # trials without a result are counted, whatever is picked
        numbers = [number for number, levels in enumerate(cells) if place_of(levels) in picked]
        ends = ends.filter(pl.col("cell").is_in(numbers) | pl.col("status").is_in(_LEFT_OUT))
    trained = ends.filter(~pl.col("status").is_in(_LEFT_OUT))
    history, lacks_whole_dev = metrics, False
    if metrics is not None and spec.is_course and study.runs is None:
        tasks = {trial.id: trial.common.task for trial in study.with_later_seeds().trials}
        history = without_whole_dev(metrics, outcomes, tasks)
        lacks_whole_dev = spec.value.startswith("dev_") and len(history) < len(metrics)
    if spec.is_course or (spec.needs_history and study.runs is None):
        values = _values(spec, placed, outcomes, history)
    else:
        values = finals.filter(status=ValueStatus.DONE).select("trial", "value")
        if spec.marks_cells:
            across = observe(study, trials, outcomes, spec.x).filter(status=ValueStatus.DONE)
            values = values.join(across.select("trial", x="value").unique("trial"), on="trial")
        values = values.unique("trial", maintain_order=True)
    values = values.filter(pl.col("value").is_finite())
    frame = trained.drop(name for name in values.columns if name in POSITION_COLUMNS).join(values, on="trial")
    # a done trial whose value is not finite is not drawn, and counts as one without a value
    drawn, done = pl.col("trial").is_in(frame["trial"].implode()), pl.col("status") == ValueStatus.DONE
    valued = pl.when(done & ~drawn).then(pl.lit(ValueStatus.NO_VALUE)).otherwise("status")
    ends = ends.with_columns(status=pl.when(drawn).then(pl.lit(ValueStatus.DONE)).otherwise(valued))
    places = ends.group_by(POSITION_COLUMNS).agg("status")
    return FigureCells(
        spec=spec,
        subject=subject,
        picked=picked,
        metrics=metrics,
        frame=frame.select("trial", "cell", *POSITION_COLUMNS, "value"),
        trials=tuple(ends["trial"].unique(maintain_order=True)),
        cells=cells,
        gaps=Counter(ends.filter(~done)["status"]),
        # a figure by seed has no means that could lack one
        diverged=Counter(
            ends.filter(pl.col("status").is_in(BROKEN))["cell"] if SEED not in spec.roles.values() else ()
        ),
        statuses={tuple(place): combined_status(statuses).text for *place, statuses in places.iter_rows()},
        lacks_whole_dev=lacks_whole_dev,
    )


def _by_index(metrics: pl.DataFrame, family: str) -> pl.DataFrame:
    index = pl.col("name").str.extract(_INDEXED_METRIC, 1).alias("index")
    return last_members(metrics, family).select("trial", index, "value")


def _locate_trials(
    spec: CellFigure, levels: Mapping[str, tuple[Level, ...]], trials: Sequence[Trial]
) -> tuple[pl.DataFrame, tuple[Mapping[str, Level], ...]]:
    """Return the index of each trial's panel, series, x and y, and the levels of each cell."""
    shown = spec.roles
    roles = [shown.get(role) for role in ("series", "x", "y")]
    columns = len(levels[spec.panels]) if spec.panels is not None else 1
    orders = {
        factor: {level_key(level): n for n, level in enumerate((*each, ABSENT))}
        for factor, each in levels.items()
    }
    cells: dict[CellKey, int] = {}
    kept: list[Mapping[str, Level]] = []
    rows: list[tuple[str | int, ...]] = []
    places: dict[str | int, tuple[int, ...]] = {}
    by_seed = SEED in shown.values()
    for trial in trials:
        key = trial.id if by_seed else id(trial.common)  # otherwise all seeds of a cell are at one place
        if key not in places:
            numbers = {name: orders[name][level_key(level)] for name, level in trial.levels.items()}
            cell = trial.cell
            if cell not in cells:
                cells[cell] = len(kept)
                kept.append(trial.levels)
            row, column = (numbers.get(name or "") or 0 for name in (spec.rows, spec.panels))
            others = (numbers.get(name or "") or 0 for name in roles)
            places[key] = (cells[cell], row * columns + column, *others)
        rows.append((trial.id, *places[key]))
    return pl.DataFrame(rows, schema=_POSITION_SCHEMA, orient="row"), tuple(kept)


def _values(
    spec: CellFigure, placed: pl.DataFrame, outcomes: pl.DataFrame, metrics: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the values of the metric that a figure shows, in the columns `trial` and `value`.

    If an axis shows time or the index of a metric, there is also a column x or y. A trial has a row for each
    time or index that the figure shows.
    """
    if metrics is None:
        raise ValueError(f"expected the metrics of the store for the curve {spec.name}, got none")
    if spec.is_course:
        named = metrics.filter(pl.col("name") == spec.value)
        if currency := SPENT_AXES.get(spec.x):
            named = _with_spent(named, currency, placed, outcomes)
        # several steps may have the same x, such as an epoch; the last one counts
        return named.unique(["trial", spec.x], keep="last", maintain_order=True).select(
            "trial", pl.col(spec.x).alias("x"), "value"
        )
    return _indexed_values(spec, outcomes, metrics)


def _with_spent(
    course: pl.DataFrame, currency: Currency, placed: pl.DataFrame, outcomes: pl.DataFrame
) -> pl.DataFrame:
    """Add a column with the training cost up to each step, such as tokens.

    Trials of a cell take the same tokens and operations. Their seconds are averaged, so that their values
    have the same position.
    """
    totals = outcomes.select("trial", "steps", each=TOTAL_COSTS[currency] / pl.col("steps")).join(
        placed.select("trial", "cell"), on="trial"
    )
    # seeds of a cell run at different speeds; without a common x, their curves could not be averaged
    each = pl.col("each").mean().over("cell") if currency == "seconds" else pl.col("each")
    found = each * pl.col("step")
    return (
        course.join(totals, on="trial", maintain_order="left")
        .with_columns((found if currency == "seconds" else found.round()).alias(currency))
        .drop_nulls(currency)
    )


def _indexed_values(spec: CellFigure, outcomes: pl.DataFrame, metrics: pl.DataFrame) -> pl.DataFrame:
    """Return each trial's last value at every index of the metric.

    A metric such as `attention[3,7]` has the indices 3 and 7. If no axis shows an index, the final value is
    used. Indices that are not on an axis are averaged within each trial, except in a box plot, which shows
    all values.
    """
    axes = {role: name for role, name in spec.roles.items() if name in INDEX_AXES}
    where = [
        pl.col("name").str.extract(_INDEXED_METRIC, INDEX_AXES.index(name) + 1).alias(role)
        for role, name in axes.items()
    ]
    last = last_members(metrics, spec.value)
    values = last.sort("trial", "name").select("trial", *where, "value").drop_nulls(list(axes))
    if not axes:
        finals = final_values(outcomes, [spec.value]).select("trial", value=spec.value).drop_nulls()
        plain = finals.join(values, on="trial", how="anti")
        return pl.concat([plain, values])
    if spec.kind == "box":
        return values
    return values.group_by("trial", *axes, maintain_order=True).agg(pl.col("value").mean())
