"""Which trained models wait for a probe before a metric of theirs is known."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from .encoders import encoder_arguments
from .measures import measure
from .metrics import PROBED
from .trial import Trial


def unprobed(trials: Iterable[Trial], outcomes: pl.DataFrame, metric: str) -> frozenset[str]:
    """The ids of the trials that are done, could be probed for a metric, and never were.

    `outcomes` are the store's latest attempts with what `wanted` names; none for what trials report.
    """
    if not measure(metric).probe:
        return frozenset()
    done = outcomes.filter(pl.col("status") == "done").select("trial", "metrics")
    names = done.explode("metrics").unnest("metrics")
    probed = set(names.filter(pl.col("name") == PROBED)["trial"])
    waiting = set(done["trial"]) - probed
    return frozenset(
        trial.id for trial in trials if trial.id in waiting and encoder_arguments(trial.settings) is not None
    )
