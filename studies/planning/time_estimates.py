"""Time estimates of trials, only from outcomes in the store on this machine."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, get_args

import polars as pl

from ..resolve.costs import flops_of_test, max_training_flops
from ..resolve.trial import Trial
from ..schema.factors import SEED
from ..schema.settings import read_recipe

EstimateBasis = Literal["measured", "at most", "unknown"]
"""How a time is known: from finished trials that differ only in the seed; from the speed of other trials, for
a length that grows in every epoch until its ceiling; or not before a first trial has run on this machine."""


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Seconds of training, None where nothing is known."""

    seconds: float | None
    basis: EstimateBasis


MIN_INFORMATIVE_FLOPS = 1e8
"""The FLOPs of a step above which its time predicts that of other recipes; below, overheads dominate."""

UNKNOWN_TIME = TimeEstimate(None, "unknown")


class TimeEstimator:
    """Estimates from the outcomes of this machine, on the device that it used last."""

    def __init__(self, outcomes: pl.DataFrame, trials: Iterable[Trial]) -> None:
        """Take speeds from all outcomes, and times from those of these trials."""
        rows = _outcomes_on_this_device(outcomes)
        speed = pl.col("flops").sum() / pl.col("seconds").sum()
        self._speeds: Mapping[str, float] = dict(rows.group_by("recipe_id").agg(speed).iter_rows())
        large = rows.filter(pl.col("flops") / pl.col("steps") >= MIN_INFORMATIVE_FLOPS)
        self._speed: float | None = large.select(speed).item() if len(large) else None
        seconds = dict(rows.filter(pl.col("status") == "done").select("trial", "seconds").iter_rows())
        cells: dict[str, list[float]] = {}
        for trial in trials:
            if trial.id in seconds:
                cells.setdefault(_cell(trial), []).append(seconds[trial.id])
        self._cells: Mapping[str, float] = {cell: fmean(found) for cell, found in cells.items()}
        self._known: dict[str, TimeEstimate] = {}

    def estimate(self, trial: Trial) -> TimeEstimate:
        """Return the training time of one trial."""
        cell = _cell(trial)
        if cell not in self._known:
            self._known[cell] = self._estimate_cell(trial, cell)
        return self._known[cell]

    def _estimate_cell(self, trial: Trial, cell: str) -> TimeEstimate:
        """Return the time of a cell: measured, or bounded by a speed.

        The speed is that of its recipe, else of all recipes.
        """
        if cell in self._cells:
            return TimeEstimate(self._cells[cell], "measured")
        speed = self._speeds.get(read_recipe(trial.settings.model.recipe).id, self._speed)
        if speed is None:
            return UNKNOWN_TIME
        flops = max_training_flops(trial.settings) + flops_of_test(trial.settings)
        return TimeEstimate(flops / speed, "at most")


def total_time(estimates: Iterable[TimeEstimate]) -> TimeEstimate:
    """Return the sum of the times, with the weakest basis among them."""
    found = list(estimates)
    bases: list[EstimateBasis] = ["measured", *(one.basis for one in found)]
    basis = max(bases, key=get_args(EstimateBasis).index)
    seconds = None if basis == "unknown" else sum(one.seconds or 0.0 for one in found)
    return TimeEstimate(seconds, basis)


def _cell(trial: Trial) -> str:
    return repr([(name, level) for name, level in trial.levels.items() if name != SEED])


def _outcomes_on_this_device(outcomes: pl.DataFrame) -> pl.DataFrame:
    here = outcomes.filter(
        (pl.col("host") == platform.node()) & (pl.col("flops") > 0) & (pl.col("seconds") > 0)
    )
    if not len(here):
        return here
    device = pl.col("device").str.replace(r", (a share of|batches in|kernels of) .*$", "")  # how it was used
    latest = here.sort("finished", "trial").select(device).item(-1, 0)
    return here.filter(device == latest)
