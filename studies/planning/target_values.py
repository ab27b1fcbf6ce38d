"""The values of targets such as `steps_to[dev_loss <= 1.5]`, from the metrics of every epoch.

A training reaches a target at the first evaluation that shows it. Operations, tokens and seconds up to there
are the trial's own totals in proportion to its steps. A training that has ended and shows it nowhere is
censored: its value is infinite here, and what it took in all is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import polars as pl

from ..catalog.targets import Currency, Target, read_target

FindCourse = Callable[[str, pl.DataFrame], pl.DataFrame]
"""Returns one metric of some attempts at all steps, in the form of the store's metrics."""

_TOTALS: dict[Currency, pl.Expr] = {
    "steps": pl.col("steps").cast(pl.Float64),
    "flops": pl.col("flops"),
    "seconds": pl.col("seconds"),
    "tokens": (
        pl.col("metrics")
        .list.eval(
            pl.element().filter(pl.element().struct.field("name") == "tokens_per_s").struct.field("value")
        )
        .list.last()
        * pl.col("seconds")
    ).round(),
}


def spent(currency: Currency) -> pl.Expr:
    """Return what a trial took in all, in a frame of the store's trials; null if it is not known."""
    return _TOTALS[currency]


def spent_by_step(currency: Currency, step: pl.Expr) -> pl.Expr:
    """Return what a trial took up to a step, in proportion to its steps."""
    if currency == "steps":
        return step.cast(pl.Float64)
    found = spent(currency) * step / pl.col("steps")
    return found if currency == "seconds" else found.round()


def with_targets(outcomes: pl.DataFrame, names: Collection[str], find_course: FindCourse) -> pl.DataFrame:
    """Return the latest attempts with these targets among the final metrics of those that are done."""
    for name in names:
        if (target := read_target(name)) is not None:
            outcomes = _with_target(outcomes, name, target, find_course)
    return outcomes


def _with_target(outcomes: pl.DataFrame, name: str, target: Target, find_course: FindCourse) -> pl.DataFrame:
    done = outcomes.filter(pl.col("status") == "done", pl.col("steps") > 0)
    course = find_course(target.metric, done).filter(pl.col("name") == target.metric)
    value = pl.col("value")
    met = value.is_not_nan() & (value <= target.value if target.at_most else value >= target.value)
    reached = course.group_by("trial").agg(step=pl.col("step").filter(met).min())
    values = done.join(reached, on="trial").select(
        "trial",
        target=pl.when(pl.col("step").is_null())
        .then(pl.lit(math.inf))
        .otherwise(spent_by_step(target.currency, pl.col("step"))),
    )
    own = pl.struct(name=pl.lit(name), value=pl.col("target"))
    return (
        outcomes.join(values, on="trial", how="left", maintain_order="left")
        .with_columns(
            metrics=pl.when(pl.col("target").is_null())
            .then(pl.col("metrics"))
            .otherwise(pl.concat_list("metrics", own))
        )
        .drop("target")
    )
