"""The noise floor: the smallest difference that a study's spread over seeds can show."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from ..studies.planning.trial_values import final_value
from ..studies.resolve.trial import settings_from_json, trial_id
from .statistics.paired_tests import POWER, detectable

LEVEL = 0.05
"""The level of the two-sided test for a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """The spread over seeds, pooled over cells with several seeds, and the detectable difference.

    `difference` is detected with a chance of POWER when two cells with `seeds` each are compared. Cells
    differ in their spread: it is an average.
    """

    metric: str
    sd: float
    cells: int
    degrees: int
    seeds: int
    difference: float
    level: float = LEVEL
    power: float = POWER


def noise_floor(outcomes: pl.DataFrame, metric: str, seeds: int) -> NoiseFloor | None:
    """Return the noise floor of a metric for cells with `seeds` seeds; None without spread."""
    done = outcomes.filter(pl.col("status") == "done", final_value(metric).is_finite())
    if not len(done):
        return None
    cells = done.select(
        cell=pl.col("settings").map_elements(cell_of, return_dtype=pl.String), value=final_value(metric)
    )
    spread = cells.group_by("cell").agg(n=pl.len(), variance=pl.col("value").var()).filter(pl.col("n") > 1)
    if not len(spread):
        return None
    degrees = int((spread["n"] - 1).sum())
    sd = math.sqrt(float((spread["variance"] * (spread["n"] - 1)).sum()) / degrees)
    error = sd * math.sqrt(2 / seeds)
    return NoiseFloor(
        metric=metric,
        sd=sd,
        cells=len(spread),
        degrees=degrees,
        seeds=seeds,
        difference=detectable(error, degrees, LEVEL) if error else 0.0,
    )


def cell_of(settings: str) -> str:
    """Return a key that is equal for trials that differ only in their seed, whichever version stored them."""
    try:
        return trial_id(settings_from_json(settings).model_copy(update={"seed": 0}))
    except (ValueError, KeyError):  # of a plug-in that is not loaded
        return "".join(part for part in settings.split(",") if not part.strip().startswith('"seed":'))
