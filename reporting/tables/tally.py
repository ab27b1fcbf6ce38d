"""The values of one metric in each table cell, and the reasons for missing values."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import TYPE_CHECKING

import polars as pl

from ...studies.catalog.metrics import ANALYTIC_COSTS, MODEL_COSTS, find_metric
from ...studies.planning.final_values import (
    ValueStatus,
    combined_status,
    cost_per_epoch,
    count_reasons,
    find_outcomes,
    smallest_step,
    values_at,
)
from ...studies.presentation.kinds import Spread
from ...studies.resolve.costs import counted_cost
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import ABSENT, SEED, level_names, level_text
from ...studies.schema.settings import Level
from ..picked_levels import best_of
from ..statistics.estimates import Estimate, estimate, mean
from .table import NOT_RUN, CellStatus

if TYPE_CHECKING:
    from ..kinds.cells import CellsTable

Place = tuple[str, str, str]
"""The place of a cell in a table: its row, its column and its metric."""

TalliesByLook = Mapping[Place, tuple["Tally", ...]]
"""The tallies of each cell at the looks that it has reached; only one if no seed may be added."""

_CELL_SCHEMA = pl.Schema(dict.fromkeys(("row", "column", "over"), pl.String))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The values of a metric in one cell, one for each seed.

    `units` has the seed of each value, by which cells are paired. `gaps` has status and reason of each seed
    without a value. If the table picks levels of the factors in `over`, `label` names them, otherwise it is
    empty, and a value is the mean over these levels. If a value is infinite, so is the mean: `values` is
    empty, and `gaps` has only the infinite values. If trials ended before they reached a target, the mean is
    unknown: `values` is empty, `reached` has the costs at which the other trials reached it, and `limits` the
    costs at which these trials ended. `step` is the smallest difference that two values can have; 0 for costs
    that are computed, not measured.
    """

    trials: int
    values: Sequence[float]
    units: tuple[int, ...] = ()
    gaps: tuple[tuple[str, str], ...] = ()
    label: str = ""
    reached: tuple[float, ...] = ()
    limits: tuple[float, ...] = ()
    step: float = 0.0

    @property
    def status(self) -> CellStatus:
        """Return the status of the table cell; without values, it is the reason for this."""
        if self.values:
            return CellStatus.DONE if len(self.values) == self.trials else CellStatus.PARTIAL
        return CellStatus(self.gap_status)

    @property
    def counts_as_worst(self) -> bool:
        """Return whether a seed diverged, missed its target, or has an infinite value."""
        return any(status in _WORST for status, _ in self.gaps)

    @property
    def placeholder(self) -> str:
        """Return the text that is shown if the cell has no value."""
        return NOT_RUN if self.gap_status is ValueStatus.MISSING else self.gap_status.text

    @property
    def gap_status(self) -> ValueStatus:
        """Return the first status of the trials without a value."""
        return combined_status([status for status, _ in self.gaps])

    def estimate(self, spread: Spread = "sd") -> Estimate | None:
        """Return the mean of the values with its spread; None without values, or with a censored trial."""
        return estimate(self.values, spread=spread) if self.values else None

    @property
    def bound(self) -> float:
        """Return a lower bound of the mean, for trials that ended before they reached their target."""
        return mean((*self.reached, *self.limits))

    def remarks(self, noun: str = "seeds") -> list[str]:
        """Return sentences on why trials have no value, unless all share one reason, which the cell shows."""
        return [
            why if self.trials == 1 else f"{n} of {self.trials} {noun} {why}"
            for kind in ValueStatus
            for why, n in count_reasons(why for status, why in self.gaps if status == kind).items()
            if n < self.trials or kind not in _SELF_EXPLANATORY
        ]


_ENDED = (
    ValueStatus.INFINITE,
    ValueStatus.CENSORED,
    ValueStatus.FAILED,
    ValueStatus.DIVERGED,
    ValueStatus.NO_VALUE,
)
"""The statuses of trials that will never have a value."""

_WORST = (ValueStatus.INFINITE, ValueStatus.CENSORED, ValueStatus.DIVERGED)
"""The statuses of trials that count as worse than any value."""

_EMPTY = {ValueStatus.MISSING: "not run", ValueStatus.DIVERGED: "diverged"}
_FEWER = {ValueStatus.FAILED: "failed seeds", ValueStatus.DIVERGED: "diverged seeds"}
"""The words for levels of which all seeds, or some, lack a value for this reason."""

_SELF_EXPLANATORY = (
    ValueStatus.INFINITE,
    ValueStatus.CENSORED,
    ValueStatus.BEGUN,
    ValueStatus.PENDING,
    ValueStatus.MISSING,
)


_UNTRAINED = (ValueStatus.MISSING, ValueStatus.BEGUN)
"""The statuses of trials whose costs are counted."""


def tally_trials(
    spec: CellsTable, study: str, trials: Sequence[Trial], outcomes: pl.DataFrame, begun: Collection[str] = ()
) -> dict[Place, tuple[Tally, ...]]:
    """Return the values of each cell that has trials, as a tally.

    A tally also has the reasons for missing values. With `pick_by`, a cell has a tally for each combination
    of the levels of the factors in `over`. `outcomes` has the store's latest attempts, `begun` the trials
    that have begun and may have ended since. If the columns are metrics, the column in a cell's key is "".
    Costs of untrained trials are counted from their settings where that is possible.
    """
    located = _locate_trials(trials, spec.rows, spec.columns, spec.over)
    tallies: dict[Place, tuple[Tally, ...]] = {}
    places = find_outcomes((trial.id for trial in trials), outcomes)
    for metric in dict.fromkeys((*spec.value, *filter(None, (spec.otherwise, spec.pick_by)))):
        valued = located.hstack(values_at(study, places, outcomes, metric, begun=begun))
        if metric in ANALYTIC_COSTS:
            valued = _with_counted(valued, trials, metric)
        known, per_epoch = find_metric(metric), cost_per_epoch(metric, outcomes)
        step = pl.lit(0.0 if metric in ANALYTIC_COSTS else smallest_step(known, None))
        if per_epoch or known.steps_with_curriculum:
            same = {id(trial.common): trial.common for trial in trials}  # the same for the seeds of a cell
            steps = {key: smallest_step(known, settings) for key, settings in same.items()}
            found = [per_epoch.get(trial.id, steps[id(trial.common)]) for trial in trials]
            step = pl.Series(found, dtype=pl.Float64)
        valued = valued.with_columns(step=step)
        if spec.over and spec.pick_by is None:
            valued = _seed_means(valued)
        for row, column, tally in _tallies(valued, separate=spec.pick_by is not None):
            place = row, column, metric
            tallies[place] = (*tallies.get(place, ()), tally)
    return tallies


def tallies_by_look(
    first: Mapping[Place, Tally], later: Sequence[Mapping[Place, Tally]]
) -> dict[Place, tuple[Tally, ...]]:
    """Return the tallies of each cell, one for each look (interim test) so far.

    A look is reached when all added trials have a value. `later` has the tallies of all trials up to each
    later look. For the next look, trials that ended without a value are listed.
    """
    grown: dict[Place, tuple[Tally, ...]] = {}
    for place, tally in first.items():
        looks = [tally]
        for more in (tallies[place] for tallies in later):
            if len(more.gaps) > len(tally.gaps):  # an added trial has no value yet: the look is not reached
                ended = [gap for gap in more.gaps if gap[0] in _ENDED]
                lost = ended[len([gap for gap in tally.gaps if gap[0] in _ENDED]) :]
                trials = looks[-1].trials + len(lost)
                looks[-1] = replace(looks[-1], trials=trials, gaps=(*looks[-1].gaps, *lost))
                break
            looks.append(more)
        grown[place] = tuple(looks)
    return grown


def _locate_trials(
    trials: Sequence[Trial], rows: str, columns: str | None, over: Sequence[str]
) -> pl.DataFrame:
    by_seed = SEED in (rows, columns)
    keys = [(id(trial.common), trial.seed if by_seed else 0) for trial in trials]  # seeds share `common`
    of_cell = {key: trial.levels for key, trial in zip(keys, trials, strict=True)}
    numbers = {cell: number for number, cell in enumerate(of_cell)}
    names: dict[str, dict[str, str]] = {}
    for factor in over:
        known = {level_text(levels[factor]): levels[factor] for levels in of_cell.values()}
        names[factor] = dict(zip(known, level_names(list(known.values())), strict=True))

    def label(levels: Mapping[str, Level]) -> str:
        named = [factor for factor in over if levels[factor] != ABSENT] or over
        return ", ".join(f"{factor} {names[factor][level_text(levels[factor])]}" for factor in named)

    cells = pl.DataFrame(
        {
            "row": [level_text(levels[rows]) for levels in of_cell.values()],
            "column": ["" if columns is None else level_text(levels[columns]) for levels in of_cell.values()],
            "over": [label(levels) if over else "" for levels in of_cell.values()],
        },
        schema=_CELL_SCHEMA,
    )
    unit = pl.Series("unit", [trial.seed for trial in trials], dtype=pl.Int64)
    return cells[[numbers[key] for key in keys]].with_columns(unit)


def _seed_means(valued: pl.DataFrame) -> pl.DataFrame:
    """Return one value for each seed of a cell: the mean over its trials, which are at several levels.

    The trials of a seed are not independent. A seed that lacks a value of a trial has no mean, and the mean
    of costs that are lower bounds is one.
    """
    done, bound = (pl.col("status") == each for each in (ValueStatus.DONE, ValueStatus.CENSORED))
    first = {
        name: pl.col(name).sort_by(done.cast(pl.Int8) * 2 + bound, maintain_order=True).first()
        for name in ("status", "why")
    }
    return valued.group_by(["row", "column", "unit"], maintain_order=True).agg(
        value=pl.when((done | bound).all()).then(pl.col("value").mean()), step=pl.col("step").max(), **first
    )


def _with_counted(valued: pl.DataFrame, trials: Sequence[Trial], cost: str) -> pl.DataFrame:
    """Give untrained and failed trials the value of a cost that can be counted from their settings."""
    uncounted = (*_UNTRAINED, ValueStatus.FAILED) if cost in MODEL_COSTS else _UNTRAINED
    counted = pl.Series(
        [
            counted_cost(cost, trial.settings) if status in uncounted else None
            for trial, status in zip(trials, valued["status"], strict=True)
        ],
        dtype=pl.Float64,
    )
    has_count = counted.is_not_null()
    return valued.with_columns(
        value=pl.coalesce(counted, "value"),
        status=pl.when(has_count).then(pl.lit(ValueStatus.DONE)).otherwise("status"),
        why=pl.when(has_count).then(pl.lit("")).otherwise("why"),
    )


def _tallies(valued: pl.DataFrame, *, separate: bool) -> Iterator[tuple[str, str, Tally]]:
    done = pl.col("status") == ValueStatus.DONE
    cells = valued.group_by(["row", "column", *(["over"] if separate else [])], maintain_order=True).agg(
        trials=pl.len(),
        values=pl.col("value").filter(done),
        units=pl.col("unit").filter(done),
        limits=pl.col("value").filter(pl.col("status") == ValueStatus.CENSORED),
        step=pl.col("step").max(),
        statuses=pl.col("status").filter(~done),
        whys=pl.col("why").filter(~done),
    )
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}  # most cells have the same units
    for cell in cells.iter_rows(named=True):
        values, units, limits = cell["values"], tuple(cell["units"]), tuple(cell["limits"])
        gaps = tuple(zip(cell["statuses"], cell["whys"], strict=True))
        infinite = tuple(gap for gap in gaps if gap[0] == ValueStatus.INFINITE)
        has_mean = not infinite and not limits
        tally = Tally(
            trials=cell["trials"],
            values=array("d", values if has_mean else ()),  # a quarter of a tuple's memory
            units=shared.setdefault(units, units) if has_mean else (),
            gaps=infinite or gaps,
            label=cell.get("over", ""),
            reached=tuple(values) if limits and not infinite else (),
            limits=limits,
            step=cell["step"],
        )
        yield cell["row"], cell["column"], tally


def pick_best(
    spec: CellsTable, tallies_by_place: Mapping[Place, tuple[Tally, ...]]
) -> tuple[dict[Place, Tally], dict[Place, str]]:
    """Pick the best levels of the factors in `over` for each cell, and return the values at these levels.

    The second result maps cells to remarks on levels without a value or with fewer seeds, and on ties; a cell
    without such levels has no remark. If no level can be picked yet, the trials of all levels are merged.
    They then only have a value that all levels share, such as a number of parameters.
    """
    best: dict[Place, Tally] = {}
    remarks: dict[Place, str] = {}
    for place, tallies in tallies_by_place.items():
        ranked = {name: tallies_by_place[*place[:2], name] for name in (spec.pick_by, spec.otherwise) if name}
        valued = (
            (name, {at: each.values for at, each in enumerate(levels) if each.values})
            for name, levels in ranked.items()
        )
        tied = next(filter(None, starmap(best_of, valued)), [])
        if not tied:
            best[place] = Tally(
                trials=sum(tally.trials for tally in tallies),
                values=(),
                gaps=tuple(gap for tally in tallies for gap in tally.gaps)
                or tuple(gap for tally in next(iter(ranked.values())) for gap in tally.gaps),
            )
            if tallies[0].values and len({tuple(tally.values) for tally in tallies}) == 1:
                best[place] = replace(tallies[0], label="")
            continue
        number = tied[0]
        best[place] = tallies[number]
        levels = [
            max(each, key=lambda tally: len(tally.values)) for each in zip(*ranked.values(), strict=True)
        ]
        empty = [level.gap_status for level in levels if not level.values]
        few = [level.gap_status for level in levels if 0 < len(level.values) < len(levels[number].values)]
        why = _EMPTY.get(empty[0], "") if len(set(empty)) == 1 else ""
        of = f"of {len(levels)} levels of {' and '.join(spec.over)}"
        found = [f"{len(empty)} {of} {why or 'gave no value'}"] if empty else []
        for what, n in Counter(_FEWER.get(status, "fewer seeds") for status in few).items():
            found.append(f"{n} {of} {'have' if n > 1 else 'has'} {what}")
        found += [f"{len(tied)} {of} tie: the first of the file was taken"] if len(tied) > 1 else []
        if found:
            remarks[place] = ", ".join(found)
    return best, remarks


def untrained_remarks(
    spec: CellsTable, study: str, trials: Sequence[Trial], outcomes: pl.DataFrame
) -> dict[tuple[str, str], str]:
    """Return remarks on cells with trainings that did not learn, by row and column.

    The table's key `untrained` has a bound for each metric. A training has not learnt if its value is worse
    than this bound.
    """
    if not spec.untrained:
        return {}
    remarks: dict[tuple[str, str], list[str]] = defaultdict(list)
    keys = {"value": tuple(spec.untrained), "otherwise": None, "over": (), "pick_by": None}
    tallies = tally_trials(spec.model_copy(update=keys), study, trials, outcomes)
    for (row, column, name), (tally,) in tallies.items():
        metric, bound = find_metric(name), spec.untrained[name]
        sign, word = (1, "below") if metric.higher_is_better else (-1, "above")
        ends = sorted(value for value in tally.values if sign * value < sign * bound)
        if ends:
            low, high = metric.format(ends[0]), metric.format(ends[-1])
            found = low if low == high else f"{low} to {high}"
            of = f"{len(ends)} of {tally.trials} trainings" if tally.trials > 1 else "the training"
            remark = f"{of} ended without learning: {name} {found}, {word} {metric.format(bound)}"
            remarks[row, column].append(remark)
    return {place: "; ".join(each) for place, each in remarks.items()}
