"""The values that a figure is made of: a row for each, with its place in the figure and its seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ...studies.catalog.metrics import COSTS
from ...studies.resolve.trial import Trial
from ...studies.schema.curve import INDEX_AXES, TIME_AXES, CurveSpec
from ...studies.schema.design import level_key
from ...studies.schema.factors import SEED
from ...studies.schema.selection import selected_levels
from ...studies.schema.settings import Level
from ..probe_metrics import unprobed_trials

POSITION_COLUMNS = ("panel", "series", "x", "y")
"""Columns that say where a value stands: the number of a level, or what is measured along the axis."""

_INDEXED_METRIC = r"^[^\[]*\[([^,\]]*)(?:,([^\]]*))?\]$"  # of a metric with an index
_POSITION_SCHEMA = {
    "trial": pl.String,
    "cell": pl.Int32,
    **dict.fromkeys(("panel", "series", "x", "y"), pl.Int32),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The finite values of trials that are done, and how many trials gave none and why.

    `frame` has the columns of PLACES, `cell`, the number of its combination of levels without the seed,
    `trial` and `value`. `trials` are all that it asks for, `cells` the levels of each cell by its number.
    `words` says of each place of levels without a value what its trials did instead.
    """

    frame: pl.DataFrame
    trials: tuple[str, ...]
    cells: tuple[Mapping[str, Level], ...]
    failed: int
    pruned: int
    missing: int
    valueless: int
    unprobed: int
    placeholders: Mapping[tuple[int, ...], str]


def collect_samples(
    spec: CurveSpec,
    factors: Mapping[str, tuple[Level, ...]],
    trials: Sequence[Trial],
    outcomes: pl.DataFrame,
    metrics: pl.DataFrame | None,
) -> Samples:
    """The values that a figure asks for, of the study's trials in the store's latest attempts.

    `metrics` is not needed, and not looked at, for a figure of final values.
    """
    placed, cells = _locate_trials(spec, selected_levels(spec.select, factors), trials)
    ends = placed.join(outcomes.select("trial", "status"), on="trial", how="left", maintain_order="left")
    done = ends.filter(pl.col("status") == "done").drop("status")
    values = _values(spec, outcomes, metrics)
    taken = [name for name in values.columns if name in POSITION_COLUMNS]
    frame = done.drop(taken).join(values.filter(pl.col("value").is_finite()), on="trial")
    statuses = ends["status"]
    waiting = pl.col("trial").is_in(list(unprobed_trials(trials, outcomes, spec.value)))
    empty = done.join(frame, on="trial", how="anti")
    unread = len(empty.filter(waiting))
    return Samples(
        frame=frame.select("trial", "cell", *POSITION_COLUMNS, "value"),
        trials=tuple(placed["trial"].unique(maintain_order=True)),
        cells=cells,
        failed=int((statuses == "failed").sum()),
        pruned=int((statuses == "pruned").sum()),
        missing=statuses.null_count(),
        valueless=len(empty) - unread,
        unprobed=unread,
        placeholders=_placeholders(ends.with_columns(unprobed=waiting)),
    )


def _locate_trials(
    spec: CurveSpec, levels: Mapping[str, tuple[Level, ...]], trials: Sequence[Trial]
) -> tuple[pl.DataFrame, tuple[Mapping[str, Level], ...]]:
    """Every selected trial with the numbers of its levels in each role, and the levels of each cell.

    A role that no factor has, or a cost or an index, counts as one level, 0.
    """
    orders = {
        factor: {level_key(level): n for n, level in enumerate(each)} for factor, each in levels.items()
    }
    roles = (spec.panels, spec.series, spec.x, spec.y)
    cells: dict[tuple[int, ...], int] = {}
    kept: list[Mapping[str, Level]] = []
    rows: list[tuple[str | int, ...]] = []
    for trial in trials:
        numbers = {name: orders[name].get(level_key(level)) for name, level in trial.levels.items()}
        if None in numbers.values():
            continue
        place = tuple(number or 0 for name, number in numbers.items() if name != SEED)
        if place not in cells:
            cells[place] = len(kept)
            kept.append(trial.levels)
        rows.append((trial.id, cells[place], *(numbers.get(name or "") or 0 for name in roles)))
    return pl.DataFrame(rows, schema=_POSITION_SCHEMA, orient="row"), tuple(kept)


def _values(spec: CurveSpec, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> pl.DataFrame:
    """Trial and value, and x or y where those are measured: rows for every time or index of a trial."""
    if spec.needs_history and metrics is None:
        raise ValueError(f"expected the metrics of the store for the curve {spec.name}, got none")
    if metrics is not None and spec.x in TIME_AXES:
        named = metrics.filter(pl.col("name") == spec.value)
        return named.unique(["trial", spec.x], keep="last", maintain_order=True).select(
            "trial", pl.col(spec.x).alias("x"), "value"
        )
    if metrics is not None and spec.needs_history:
        return _indexed_values(spec, outcomes, metrics)
    values = final_values(outcomes, spec.value)
    if spec.kind != "pareto":
        return values
    return values.join(final_values(outcomes, spec.x).rename({"value": "x"}), on="trial")


def final_values(outcomes: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Trial and final value of a metric, or what each trial cost."""
    if metric in COSTS:
        return outcomes.select("trial", value=pl.col(metric).cast(pl.Float64))
    named = outcomes.select("trial", "metrics").explode("metrics").unnest("metrics")
    return named.filter(pl.col("name") == metric).select("trial", "value").unique("trial", keep="last")


def _indexed_values(spec: CurveSpec, outcomes: pl.DataFrame, metrics: pl.DataFrame) -> pl.DataFrame:
    """The last values of a family, by the indices along the axes; of a trial without them its final one.

    What has one index more than there are axes is averaged over it within each trial, but in a box, which is
    over all of its members.
    """
    members = metrics.filter(pl.col("name").str.starts_with(spec.value + "["))
    last = members.filter(pl.col("step") == pl.col("step").max().over("trial"))
    axes = {role: name for role, name in spec.roles.items() if name in INDEX_AXES}
    where = [
        pl.col("name").str.extract(_INDEXED_METRIC, INDEX_AXES.index(name) + 1).alias(role)
        for role, name in axes.items()
    ]
    values = last.sort("trial", "name").select("trial", *where, "value").drop_nulls(list(axes))
    if not axes:
        plain = final_values(outcomes, spec.value).join(values, on="trial", how="anti")
        return pl.concat([plain, values])
    if spec.kind == "box":
        return values
    return values.group_by("trial", *axes, maintain_order=True).agg(pl.col("value").mean())


def _placeholders(ends: pl.DataFrame) -> dict[tuple[int, ...], str]:
    """What became of the trials at each place of levels, for the places where none has a value."""
    status = pl.col("status")
    kinds = {
        "unprobed": pl.col("unprobed"),
        "no value": status == "done",
        "failed": status == "failed",
        "pruned": status == "pruned",
    }
    found = (each.any().alias(word) for word, each in kinds.items())
    met = ends.group_by(POSITION_COLUMNS, maintain_order=True).agg(found)
    return {
        tuple(place[name] for name in POSITION_COLUMNS): next(
            (word for word in kinds if place[word]), "not run"
        )
        for place in met.iter_rows(named=True)
    }
