"""Which trainings diverged: at their end they had lost most of what they had learnt.

A mean over seeds of which one diverged is the value of no training, and its spread tells nothing of others.
So a diverged training counts as one that failed does: it is told, with its value, and no number has it in.
"""

from __future__ import annotations

import polars as pl

from ..catalog.metrics import METRICS

DIVERGED = "diverged"
"""The column with what the loss of a training that diverged did; null for any other."""

LOST_SHARE = 0.5
"""A training diverged if it lost more than this share of what its loss had fallen since the first epoch."""

MIN_RISE = 0.1
"""So small a rise, as a share of the lowest loss, is noise: it is all that moves where nothing is learnt."""


def may_diverge() -> pl.Expr:
    """Whether the loss of a trial in a frame of the store's trials has one meaning throughout.

    Where sequences grow longer it rises with each success.
    """
    grows = [name for name, metric in METRICS.items() if metric.steps_with_curriculum]
    names = pl.col("metrics").list.eval(pl.element().struct.field("name"))
    return (pl.col("status") == "done") & (names.list.set_intersection(grows).list.len() == 0)


def tell_divergence(outcomes: pl.DataFrame, losses: pl.DataFrame) -> pl.DataFrame:
    """The store's latest attempts with the column DIVERGED, from the course of their training losses.

    `losses` has the columns trial, epoch and value.
    """
    value, order = pl.col("value"), pl.col("epoch")
    course = losses.sort(order).group_by("trial").agg(
        first=value.first(), low=value.min(), last=value.last()
    )  # fmt: skip
    first, low, last = pl.col("first"), pl.col("low"), pl.col("last")
    rise = last - low
    lost = (rise > LOST_SHARE * (first - low)) & (rise > MIN_RISE * low)
    words = pl.format("rose from {} to {}", low.round_sig_figs(3), last.round_sig_figs(3))
    found = course.filter(lost).select("trial", words.alias(DIVERGED))
    return outcomes.join(found, on="trial", how="left", maintain_order="left")
