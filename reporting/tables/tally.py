"""What became of the trials of each cell: gathered from the store's frame in Polars, a metric at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from ...studies.catalog.metrics import COSTS
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import SEED
from ...studies.schema.level_names import level_names, level_text, one_line
from ...studies.schema.table import Center, Spread
from ..probe_metrics import unprobed_trials
from ..statistics.estimates import Estimate, estimate
from .table import CellStatus

CellKey = tuple[str, str, str]
"""A row, a column and a metric."""

_LOCATED_SCHEMA = {
    **dict.fromkeys(("trial", "row", "column", "over"), pl.String),
    **dict.fromkeys(("unit", "seed"), pl.Int64),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The outcomes of one cell's trials: finite values of those done, reasons of those failed or pruned.

    `units` has for each value the number of its seed, or of its seed and the levels that the cell is over:
    what cells are paired by. `begun` counts trials with a checkpoint and no outcome, `missing` those with
    neither, `unprobed` those that are done and wait for a probe. `label` says of which levels of the factors
    picked from the trials are, empty if of all.
    """

    trials: int
    values: tuple[float, ...]
    failed: tuple[str, ...]
    pruned: tuple[str, ...]
    missing: int
    begun: int = 0
    unprobed: int = 0
    units: tuple[int, ...] = ()
    label: str = ""

    @property
    def status(self) -> CellStatus:
        """How far these trials came."""
        if self.values:
            return CellStatus.DONE if len(self.values) == self.trials else CellStatus.PARTIAL
        if self.begun:
            return CellStatus.BEGUN
        if self.unprobed:
            return CellStatus.UNPROBED
        if self.missing == self.trials:
            return CellStatus.MISSING
        if self.failed:
            return CellStatus.FAILED
        return CellStatus.PRUNED if len(self.pruned) + self.missing == self.trials else CellStatus.NO_VALUE

    @property
    def values_by_unit(self) -> dict[int, float]:
        """The values by what they are paired by."""
        return dict(zip(self.units, self.values, strict=True))

    def estimate(self, center: Center = "mean", spread: Spread = "sd") -> Estimate | None:
        """The centre of the values with their spread; None without values."""
        return estimate(self.values, center=center, spread=spread) if self.values else None

    def remarks(self, metric: str, noun: str = "seeds") -> list[str]:
        """What a reader must know of the trials that are not in the mean: a sentence a kind."""
        ended = len(self.values) + len(self.failed) + len(self.pruned)
        valueless = self.trials - ended - self.begun - self.unprobed - self.missing
        kinds = (
            (len(self.failed), "failed: " + ", ".join(dict.fromkeys(self.failed))),
            (len(self.pruned), "pruned: " + ", ".join(dict.fromkeys(self.pruned))),
            (valueless, f"ended without a finite {metric}"),
            (self.unprobed if self.unprobed < self.trials else 0, "not probed yet"),
            (self.begun if self.begun < self.trials else 0, "begun, not ended"),
            (self.missing if self.missing < self.trials else 0, "not run"),
        )
        return [what if self.trials == 1 else f"{n} of {self.trials} {noun} {what}" for n, what in kinds if n]


def tally_trials(
    trials: Sequence[Trial],
    outcomes: pl.DataFrame,
    *,
    rows: str,
    columns: str | None,
    metrics: Sequence[str],
    over: Sequence[str] = (),
    separate: bool = False,
    begun: Collection[str] = (),
) -> dict[CellKey, tuple[Tally, ...]]:
    """The tallies of each place with a trial: one, or where `apart` one for every combination of `over`.

    `rows`, `columns` and `over` are factors; `outcomes` has the store's latest attempts, `begun` the trials
    that have begun and may have ended since. Without a factor in columns, a place's column is empty.
    """
    placed = _locate_trials(trials, rows, columns, over)
    if separate:  # cells of different levels are still paired by their seeds
        placed = placed.with_columns(unit=pl.col("seed"))
    ends = outcomes.select("trial", "status", pl.col("reason").fill_null("no reason stored"), *COSTS)
    known = placed.join(ends, on="trial", how="left", maintain_order="left").with_columns(
        begun=pl.col("status").is_null() & pl.col("trial").is_in(list(begun))
    )
    finals = outcomes.select("trial", "metrics").explode("metrics").unnest("metrics")
    found: dict[CellKey, tuple[Tally, ...]] = {}
    for metric in metrics:
        valued = known.with_columns(value=pl.col(metric).cast(pl.Float64)) if metric in COSTS else None
        if valued is None:
            named = finals.filter(pl.col("name") == metric).select("trial", "value")
            last = named.unique("trial", keep="last", maintain_order=True)
            valued = known.join(last, on="trial", how="left", maintain_order="left")
        waiting = pl.col("trial").is_in(list(unprobed_trials(trials, outcomes, metric)))
        valued = valued.with_columns(unprobed=waiting & pl.col("value").is_null())
        for row, column, tally in _tallies(valued, separate=separate):
            place = row, column, metric
            found[place] = (*found.get(place, ()), tally)
    return found


def _locate_trials(
    trials: Sequence[Trial], rows: str, columns: str | None, over: Sequence[str]
) -> pl.DataFrame:
    """Each trial with where it stands, and the number of what it is paired by."""
    units: dict[object, int] = {}
    text = lru_cache(maxsize=None, typed=True)(level_text)
    names = {factor: _names(trials, factor) for factor in over}
    data: Mapping[str, list[Any]] = {name: [] for name in _LOCATED_SCHEMA}
    for trial in trials:
        levels = trial.levels
        label = ", ".join(f"{factor} {names[factor][text(levels[factor])]}" for factor in over)
        data["trial"].append(trial.id)
        data["seed"].append(levels[SEED])
        data["unit"].append(units.setdefault((levels[SEED], label), len(units)))
        data["row"].append(text(levels[rows]))
        data["column"].append("" if columns is None else text(levels[columns]))
        data["over"].append(label)
    return pl.DataFrame(data, schema=_LOCATED_SCHEMA)


def _names(trials: Sequence[Trial], factor: str) -> dict[str, str]:
    """What the levels that trials have of a factor are called, by their texts."""
    levels = {level_text(trial.levels[factor]): trial.levels[factor] for trial in trials}
    return dict(zip(levels, level_names(list(levels.values())), strict=True))


def _tallies(valued: pl.DataFrame, *, separate: bool) -> Iterator[tuple[str, str, Tally]]:
    """The tally of each cell in the order of its first trial."""
    status = pl.col("status")
    counted = (status == "done") & pl.col("value").is_finite()
    cells = valued.group_by(["row", "column", *(["over"] if separate else [])], maintain_order=True).agg(
        trials=pl.len(),
        values=pl.col("value").filter(counted),
        units=pl.col("unit").filter(counted),
        failed=pl.col("reason").filter(status == "failed"),
        pruned=pl.col("reason").filter(status == "pruned"),
        begun=pl.col("begun").sum(),
        unprobed=pl.col("unprobed").sum(),
        missing=(status.is_null() & ~pl.col("begun")).sum(),
    )
    for cell in cells.iter_rows(named=True):
        yield (
            cell["row"],
            cell["column"],
            Tally(
                trials=cell["trials"],
                values=tuple(cell["values"]),
                units=tuple(cell["units"]),
                failed=tuple(map(_first_line, cell["failed"])),
                pruned=tuple(map(_first_line, cell["pruned"])),
                begun=cell["begun"],
                unprobed=cell["unprobed"],
                missing=cell["missing"],
                label=cell.get("over", ""),
            ),
        )


def _first_line(reason: str) -> str:
    """The first line of a reason; a traceback may follow it."""
    return one_line(reason.partition("\n")[0])
