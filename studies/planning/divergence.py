"""Diverged trainings: at their end they had lost most of what they had learned, or all of it and more.

A mean over seeds of which one diverged is the value of no training, and its spread says nothing about the
others. So a diverged training is treated like a failed one: tables name it with its value and leave it out
of all numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from ..catalog.metrics import METRICS
from ..catalog.tasks import GeneratedTask
from ..resolve.trial import task_from_json

DIVERGED = "diverged"
"""The column with what the loss of a training that diverged did; null for any other."""

LOST_SHARE = 0.5
"""A training diverged if it lost more than this share of what its loss had fallen since the first epoch."""

MIN_RISE = 0.1
"""So small a rise, as a share of the loss below it, is noise: all that moves where nothing is learnt."""


def may_diverge() -> pl.Expr:
    """Return whether the loss of a trial has one meaning throughout.

    It is an expression over the store's trials. If sequences grow longer, the loss rises with each success.
    """
    grows = [name for name, metric in METRICS.items() if metric.steps_with_curriculum]
    names = pl.col("metrics").list.eval(pl.element().struct.field("name"))
    return (pl.col("status") == "done") & (names.list.set_intersection(grows).list.len() == 0)


def ignorant_losses(outcomes: pl.DataFrame) -> dict[str, float]:
    """Return, by trial, the loss in nats of a model that predicts all symbols with equal probability.

    Trials without symbols and tasks with losses of their own have none.
    """
    tasks = outcomes.select("trial", task=pl.col("settings").str.json_path_match("$.task"))
    known = {text: _ignorant_loss(text) for text in tasks["task"].drop_nulls().unique()}
    return {trial: loss for trial, text in tasks.iter_rows() if (loss := known.get(text)) is not None}


def tell_divergence(
    outcomes: pl.DataFrame, losses: pl.DataFrame, ignorant: Mapping[str, float]
) -> pl.DataFrame:
    """Return the store's latest attempts with the column DIVERGED, from their training losses.

    `losses` has the columns trial, epoch and value; `ignorant` is the result of `ignorant_losses`.
    """
    value, order = pl.col("value"), pl.col("epoch")
    course = losses.sort(order).group_by("trial").agg(
        first=value.first(), low=value.min(), last=value.last()
    )  # fmt: skip
    known = pl.col("trial").replace_strict(ignorant, default=None, return_dtype=pl.Float64)
    first, low, last, guess = pl.col("first"), pl.col("low"), pl.col("last"), pl.col("guess")
    rise = last - low
    lost = (rise > LOST_SHARE * (first - low)) & (rise > MIN_RISE * low)
    low, last, guess = (each.round_sig_figs(3) for each in (low, last, guess))
    words = (
        pl.when(lost)
        .then(pl.format("rose from {} to {}", low, last))
        .when(pl.col("last") > (1 + MIN_RISE) * pl.col("guess"))
        .then(pl.format("ended at {}, where all symbols equally likely give {}", last, guess))
    )
    found = course.with_columns(guess=known).select("trial", words.alias(DIVERGED))
    return outcomes.join(found, on="trial", how="left", maintain_order="left")


def _ignorant_loss(task: str) -> float | None:
    """Return the loss of equally likely symbols in a row's task; None without symbols."""
    try:
        settings = task_from_json(task)
        vocab = settings.interface.vocab
    except ValueError:  # a corpus or a task that is no longer known
        return None
    own = isinstance(settings, GeneratedTask) and settings.has_own_losses
    return None if vocab is None or own else math.log(vocab)
