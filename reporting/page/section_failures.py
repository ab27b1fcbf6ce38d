"""The trials that failed, and why.

All of them: a table only marks how many of a cell's seeds are missing.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ..frames import study_levels
from .inputs import PageInputs


def values(inputs: PageInputs) -> Mapping[str, object] | None:
    """How often each reason came, then every trial that failed with its levels; whole messages on demand."""
    failed = inputs.own_outcomes.filter(pl.col("status") == "failed").select("trial", "epochs", "reason")
    if not len(failed):
        return None
    levels = study_levels(inputs.study, inputs.outcomes)
    found = levels.join(failed, on="trial", maintain_order="left")
    return {
        "reasons": inputs.status.failure_reasons,
        "factors": levels.columns[1:],
        "trials": [
            (trial, each, epochs, (reason or "no reason stored").strip().partition("\n"))
            for trial, *each, epochs, reason in found.iter_rows()
        ],
    }
