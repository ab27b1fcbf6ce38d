"""Where the numbers come from: versions, commits, devices, dates.

The names of the machines are left out: a page is for others.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from .inputs import PageInputs

_KINDS = ("version", "commit", "device")


def values(inputs: PageInputs) -> Mapping[str, object] | None:
    """The programs and devices that trained, in the order of use, and the trials of other studies."""
    outcomes = inputs.own_outcomes
    if not len(outcomes):
        return None
    groups = outcomes.group_by(_KINDS).agg(
        pl.len().alias("trials"),
        pl.col("seconds").sort().sum(),
        pl.col("started").min().alias("first"),
        pl.col("finished").max().alias("last"),
    )
    others = outcomes.filter(pl.col("study") != inputs.study.name)
    return {
        "groups": groups.sort("first", "last", *_KINDS).iter_rows(named=True),
        "others": others.group_by("study").len().sort("study").iter_rows(),
    }
