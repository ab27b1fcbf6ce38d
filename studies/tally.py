"""What became of the trials of each cell: gathered from the store's frame in Polars, averaged exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from .labels import level_text, one_line
from .table import Status
from .trial import Trial

Place = tuple[str, str]
"""A row and a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The outcomes of one cell's trials: finite values of those done, reasons of those failed or pruned."""

    trials: int
    values: tuple[float, ...]
    failed: tuple[str, ...]
    pruned: tuple[str, ...]
    missing: int

    @property
    def status(self) -> Status:
        """How far these trials came; one that is done without a finite value counts as failed."""
        if self.values:
            return Status.DONE if len(self.values) == self.trials else Status.PARTIAL
        if self.missing == self.trials:
            return Status.MISSING
        return Status.PRUNED if len(self.pruned) + self.missing == self.trials else Status.FAILED

    @property
    def mean(self) -> float | None:
        """The mean of the values, the same to the last bit in any order of them."""
        return math.fsum(self.values) / len(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation, None below two values."""
        mean, count = self.mean, len(self.values)
        if mean is None or count < 2:
            return None
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / (count - 1))

    def remarks(self, metric: str) -> list[str]:
        """What a reader must know of the trials that are not in the mean: a sentence a kind."""
        valueless = self.trials - len(self.values) - len(self.failed) - len(self.pruned) - self.missing
        kinds = (
            (len(self.failed), "failed: " + ", ".join(dict.fromkeys(self.failed))),
            (len(self.pruned), "pruned: " + ", ".join(dict.fromkeys(self.pruned))),
            (valueless, f"ended without a finite {metric}"),
            (self.missing if self.missing < self.trials else 0, "not run"),
        )
        return [what if self.trials == 1 else f"{n} of {self.trials} seeds {what}" for n, what in kinds if n]


def gather(
    trials: Sequence[Trial], outcomes: pl.DataFrame, *, rows: str, columns: str, metric: str
) -> dict[Place, Tally]:
    """The tally of each place with a trial; `rows` and `columns` are factors, `outcomes` latest attempts."""
    placed = pl.DataFrame(
        {
            "trial": [trial.id for trial in trials],
            "row": [level_text(trial.levels[rows]) for trial in trials],
            "column": [level_text(trial.levels[columns]) for trial in trials],
        },
        schema={"trial": pl.String, "row": pl.String, "column": pl.String},
    )
    finals = outcomes.select("trial", "metrics").explode("metrics").unnest("metrics")
    values = (
        finals.filter(pl.col("name") == metric)
        .select("trial", "value")
        .unique("trial", keep="last", maintain_order=True)
    )
    ends = outcomes.select("trial", "status", pl.col("reason").fill_null("no reason stored"))
    status = pl.col("status")
    cells = (
        placed.join(ends, on="trial", how="left", maintain_order="left")
        .join(values, on="trial", how="left", maintain_order="left")
        .group_by("row", "column", maintain_order=True)
        .agg(
            trials=pl.len(),
            values=pl.col("value").filter((status == "done") & pl.col("value").is_finite()),
            failed=pl.col("reason").filter(status == "failed"),
            pruned=pl.col("reason").filter(status == "pruned"),
            missing=status.null_count(),
        )
    )
    return {(cell["row"], cell["column"]): _tally(cell) for cell in cells.iter_rows(named=True)}


def _tally(cell: dict[str, Any]) -> Tally:
    return Tally(
        trials=cell["trials"],
        values=tuple(cell["values"]),
        failed=tuple(map(_summary, cell["failed"])),
        pruned=tuple(map(_summary, cell["pruned"])),
        missing=cell["missing"],
    )


def _summary(reason: str) -> str:
    """The first line of a reason; a traceback may follow it."""
    return one_line(reason.partition("\n")[0])
