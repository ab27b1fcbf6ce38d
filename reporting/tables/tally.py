"""The values of one metric in each table cell, and the reasons for missing values."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from ...studies.catalog.metrics import ANALYTIC_COSTS, find_metric
from ...studies.planning.final_values import (
    ValueStatus,
    combined_status,
    count_reasons,
)
from ...studies.presentation.kinds import Spread
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import ABSENT, SEED, level_names, level_text
from ...studies.schema.settings import Level
from ...studies.study import Study
from ..observe import BROKEN, UNTRAINED, best_levels, broken_words, observe
from ..statistics.estimates import Estimate, estimate, mean
from .table import NOT_RUN, CellStatus

if TYPE_CHECKING:
    from ...studies.presentation.table_keys import CellsTable

Place = tuple[str, str, str]
"""The place of a cell in a table: its row, its column and its metric."""

_CELL_SCHEMA = pl.Schema(dict.fromkeys(("row", "column", "over"), pl.String))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The values of a metric in one cell, one for each seed.

    `units` has the seed of each value, by which cells are paired. `gaps` has status and reason of each seed
    without a value. If the table picks levels of the factors in `over`, `label` names them, otherwise it is
    empty, and a value is the mean over these levels. `tied` has the labels of all levels that are the best,
    and `pick_remark` is on ties and on levels that lack values.

    If a value is infinite, so is the mean: `values` is empty, and `gaps` has only the infinite values. If
    trials ended before they reached a target, the mean is unknown: `values` is empty, `reached` has the costs
    at which the other trials reached it, and `limits` the costs at which these trials ended. `step` is the
    smallest difference that two values can have; 0 for costs that are computed, not measured. With `pick_by`,
    `ends` has status and value of each seed of the file, by which levels are picked.
    """

    trials: int
    values: Sequence[float]
    units: tuple[int, ...] = ()
    gaps: tuple[tuple[str, str], ...] = ()
    label: str = ""
    tied: tuple[str, ...] = ()
    pick_remark: str = ""
    reached: tuple[float, ...] = ()
    limits: tuple[float, ...] = ()
    step: float = 0.0
    ends: tuple[tuple[str, float | None], ...] = ()

    @property
    def status(self) -> CellStatus:
        """Return the status of the table cell; without values, it is the reason for this."""
        if self.values:
            return CellStatus.DONE if len(self.values) == self.trials else CellStatus.PARTIAL
        return CellStatus(self.gap_status)

    @property
    def counts_as_worst(self) -> bool:
        """Return whether a seed diverged, failed, missed its target, or has an infinite value."""
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

    @property
    def broken(self) -> str:
        """Return a text such as `2 of 4 diverged` if some seeds diverged or failed, else ""."""
        return broken_words((status for status, _ in self.gaps), self.trials) if self.values else ""

    def remarks(self, noun: str = "seeds") -> list[str]:
        """Return sentences on why trials have no value, unless all share one reason, which the cell shows."""
        return [
            why if self.trials == 1 else f"{n} of {self.trials} {noun} {why}"
            for kind in ValueStatus
            for why, n in count_reasons(why for status, why in self.gaps if status == kind).items()
            if n < self.trials or kind not in _SELF_EXPLANATORY
        ]


_WORST = (ValueStatus.INFINITE, ValueStatus.CENSORED, *BROKEN)
"""The statuses of trials that count as worse than any value."""

_EMPTY = {ValueStatus.FAILED: "failed", ValueStatus.DIVERGED: "diverged"}
_FEWER = {ValueStatus.FAILED: "failed seeds", ValueStatus.DIVERGED: "diverged seeds"}
"""The words for levels of which all seeds, or some, lack a value for this reason."""

_SELF_EXPLANATORY = (
    ValueStatus.INFINITE,
    ValueStatus.CENSORED,
    ValueStatus.BEGUN,
    ValueStatus.PENDING,
    ValueStatus.MISSING,
)


def tally_trials(
    spec: CellsTable,
    study: Study,
    trials: Sequence[Trial],
    outcomes: pl.DataFrame,
    begun: Collection[str] = (),
) -> dict[Place, tuple[Tally, ...]]:
    """Return the values of each cell that has trials, as a tally.

    A tally also has the reasons for missing values. With `pick_by`, a cell has a tally for each combination
    of the levels of the factors in `over`. `outcomes` has the store's latest attempts, `begun` the trials
    that have begun and may have ended since. If the columns are metrics, the column in a cell's key is "".
    """
    located = _locate_trials(trials, spec.rows, spec.columns, spec.over)
    tallies: dict[Place, tuple[Tally, ...]] = {}
    for metric in dict.fromkeys((*spec.value, *filter(None, (spec.otherwise, spec.pick_by)))):
        valued = located.hstack(observe(study, trials, outcomes, metric, begun=begun, digits=spec.digits))
        if spec.over and spec.pick_by is None:
            valued = _seed_means(valued)
        for row, column, tally in _tallies(valued, study.later_seeds, separate=spec.pick_by is not None):
            place = row, column, metric
            tallies[place] = (*tallies.get(place, ()), tally)
    return tallies


def _locate_trials(
    trials: Sequence[Trial], rows: str, columns: str | None, over: Sequence[str]
) -> pl.DataFrame:
    by_seed = SEED in (rows, columns)
    keys = [(id(trial.common), trial.seed if by_seed else 0) for trial in trials]  # seeds share `common`
    of_cell = {key: trial.levels for key, trial in zip(keys, trials, strict=True)}
    numbers = {cell: number for number, cell in enumerate(of_cell)}
    cells = pl.DataFrame(
        {
            "row": [level_text(levels[rows]) for levels in of_cell.values()],
            "column": ["" if columns is None else level_text(levels[columns]) for levels in of_cell.values()],
            "over": over_labels(over, list(of_cell.values())),
        },
        schema=_CELL_SCHEMA,
    )
    unit = pl.Series("unit", [trial.seed for trial in trials], dtype=pl.Int64)
    return cells[[numbers[key] for key in keys]].with_columns(unit)


def over_labels(over: Sequence[str], cells: Sequence[Mapping[str, Level]]) -> list[str]:
    """Return a label for each cell, with its levels of the factors in `over`, without those that it lacks."""
    names: dict[str, dict[str, str]] = {}
    for factor in over:
        known = {level_text(levels[factor]): levels[factor] for levels in cells}
        names[factor] = dict(zip(known, level_names(list(known.values())), strict=True))
    return [
        ", ".join(
            f"{factor} {names[factor][level_text(levels[factor])]}"
            for factor in [factor for factor in over if levels[factor] != ABSENT] or over
        )
        for levels in cells
    ]


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


def _tallies(
    valued: pl.DataFrame, later_seeds: Sequence[int], *, separate: bool
) -> Iterator[tuple[str, str, Tally]]:
    done = pl.col("status") == ValueStatus.DONE
    cells = valued.group_by(["row", "column", *(["over"] if separate else [])], maintain_order=True).agg(
        trials=pl.len(),
        values=pl.col("value").filter(done),
        units=pl.col("unit").filter(done),
        limits=pl.col("value").filter(pl.col("status") == ValueStatus.CENSORED),
        step=pl.col("step").max(),
        statuses=pl.col("status").filter(~done),
        whys=pl.col("why").filter(~done),
        ends=pl.struct("status", "value").filter(~pl.col("unit").is_in(list(later_seeds))),
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
            ends=tuple((end["status"], end["value"]) for end in cell["ends"]),
        )
        yield cell["row"], cell["column"], tally


def pick_best(
    spec: CellsTable, tallies: Mapping[Place, tuple[Tally, ...]], *, is_judged: bool = False
) -> dict[Place, Tally]:
    """Pick the best levels of the factors in `over` for each cell, and return the values at these levels.

    While no level can be picked, the trials of all levels are merged. They then only have a value that all
    levels share, such as a number of parameters.
    """
    metrics = [name for name in (spec.pick_by, spec.otherwise) if name]
    best: dict[Place, Tally] = {}
    for place, levels in tallies.items():
        ranked = [tallies[*place[:2], name] for name in metrics]
        bests = [
            best_levels(metric, {level.label: level.ends for level in each}, is_judged=is_judged)
            for metric, each in zip(metrics, ranked, strict=True)
        ]
        # the first metric that has values picks, once all levels have run
        values = next((number for number, each in enumerate(ranked) if any(one.values for one in each)), None)
        tied = None if None in bests or values is None else bests[values]
        if tied:
            picked = next(level for level in levels if level.label == tied[0])
            remark = _pick_remark(spec.over, tied, list(zip(*ranked, strict=True)))
            best[place] = replace(picked, tied=tuple(tied), pick_remark=remark)
        elif (
            place[2] in ANALYTIC_COSTS
            and levels[0].values
            and len({*map(tuple, (level.values for level in levels))}) == 1
        ):
            best[place] = replace(levels[0], label="")
        else:
            gaps = [gap for level in levels for gap in level.gaps]
            gaps = gaps or [gap for level in ranked[0] for gap in level.gaps]
            waiting = tuple(gap for level in ranked[0] for gap in level.gaps if gap[0] in UNTRAINED)
            best[place] = Tally(
                trials=sum(level.trials for level in levels), values=(), gaps=waiting or tuple(gaps)
            )
    return best


def _pick_remark(over: Sequence[str], tied: Sequence[str], levels: Sequence[tuple[Tally, ...]]) -> str:
    """Return a remark on ties, and on levels without a value or with fewer seeds than the picked one, or "".

    `tied` has the labels of the best levels. A level has a tally for each metric that picks; the one with the
    most values counts.
    """
    counted = [max(level, key=_count_done) for level in levels]
    most = max(_count_done(tally) for tally in counted if tally.label == tied[0])
    empty = [tally.gap_status for tally in counted if not _count_done(tally)]
    fewer = [tally.gap_status for tally in counted if 0 < _count_done(tally) < most]
    of, parts = f"of {len(levels)} levels of {' and '.join(over)}", list[str]()
    if empty:
        why = _EMPTY.get(empty[0]) if len({*empty}) == 1 else None
        parts.append(f"{len(empty)} {of} {why or 'gave no value'}")
    for what, count in Counter(_FEWER.get(status, "fewer seeds") for status in fewer).items():
        parts.append(f"{count} {of} {'have' if count > 1 else 'has'} {what}")
    if len(tied) > 1:
        parts.append(f"{len(tied)} {of} tie: the first of the file was taken")
    return ", ".join(parts)


def _count_done(tally: Tally) -> int:
    """Return how many seeds of the file have a value."""
    return sum(status == ValueStatus.DONE for status, _ in tally.ends)


def untrained_remarks(
    spec: CellsTable, study: Study, trials: Sequence[Trial], outcomes: pl.DataFrame
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
