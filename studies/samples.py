"""The values that a figure is made of: a row for each, with its place in the figure and its seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from .curve_spec import INDICES, TIMES, CurveSpec
from .design import same
from .factors import SEED
from .measures import COSTS
from .selecting import chosen
from .settings import Level
from .trial import Trial
from .unprobed import unprobed

PLACES = ("panel", "series", "x", "y")
"""Columns that say where a value stands: the number of a level, or what is measured along the axis."""

_NAME = r"^[^\[]*\[([^,\]]*)(?:,([^\]]*))?\]$"  # of a metric with an index
_PLACED = {"trial": pl.String, "cell": pl.Int32, **dict.fromkeys(("panel", "series", "x", "y"), pl.Int32)}


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
    words: Mapping[tuple[int, ...], str]


def samples(
    spec: CurveSpec,
    factors: Mapping[str, tuple[Level, ...]],
    trials: Sequence[Trial],
    outcomes: pl.DataFrame,
    metrics: pl.DataFrame | None,
) -> Samples:
    """The values that a figure asks for, of the study's trials in the store's latest attempts.

    `metrics` is not needed, and not looked at, for a figure of final values.
    """
    placed, cells = _placed(spec, chosen(spec.select, factors), trials)
    ends = placed.join(outcomes.select("trial", "status"), on="trial", how="left", maintain_order="left")
    done = ends.filter(pl.col("status") == "done").drop("status")
    values = _values(spec, outcomes, metrics)
    taken = [name for name in values.columns if name in PLACES]
    frame = done.drop(taken).join(values.filter(pl.col("value").is_finite()), on="trial")
    statuses = ends["status"]
    waiting = pl.col("trial").is_in(list(unprobed(trials, outcomes, spec.value)))
    empty = done.join(frame, on="trial", how="anti")
    unread = len(empty.filter(waiting))
    return Samples(
        frame=frame.select("trial", "cell", *PLACES, "value"),
        trials=tuple(placed["trial"].unique(maintain_order=True)),
        cells=cells,
        failed=int((statuses == "failed").sum()),
        pruned=int((statuses == "pruned").sum()),
        missing=statuses.null_count(),
        valueless=len(empty) - unread,
        unprobed=unread,
        words=_words(ends.with_columns(unprobed=waiting)),
    )


def _placed(
    spec: CurveSpec, levels: Mapping[str, tuple[Level, ...]], trials: Sequence[Trial]
) -> tuple[pl.DataFrame, tuple[Mapping[str, Level], ...]]:
    """Every selected trial with the numbers of its levels in each role, and the levels of each cell.

    A role that no factor has, or a cost or an index, counts as one level, 0.
    """
    orders = {factor: {same(level): n for n, level in enumerate(each)} for factor, each in levels.items()}
    roles = (spec.panels, spec.series, spec.x, spec.y)
    cells: dict[tuple[int, ...], int] = {}
    kept: list[Mapping[str, Level]] = []
    rows: list[tuple[str | int, ...]] = []
    for trial in trials:
        numbers = {name: orders[name].get(same(level)) for name, level in trial.levels.items()}
        if None in numbers.values():
            continue
        place = tuple(number or 0 for name, number in numbers.items() if name != SEED)
        if place not in cells:
            cells[place] = len(kept)
            kept.append(trial.levels)
        rows.append((trial.id, cells[place], *(numbers.get(name or "") or 0 for name in roles)))
    return pl.DataFrame(rows, schema=_PLACED, orient="row"), tuple(kept)


def _values(spec: CurveSpec, outcomes: pl.DataFrame, metrics: pl.DataFrame | None) -> pl.DataFrame:
    """Trial and value, and x or y where those are measured: rows for every time or index of a trial."""
    if spec.over_time and metrics is None:
        raise ValueError(f"expected the metrics of the store for the curve {spec.name}, got none")
    if metrics is not None and spec.x in TIMES:
        named = metrics.filter(pl.col("name") == spec.value)
        return named.unique(["trial", spec.x], keep="last", maintain_order=True).select(
            "trial", pl.col(spec.x).alias("x"), "value"
        )
    if metrics is not None and spec.over_time:
        return _indexed(spec, outcomes, metrics)
    values = finals(outcomes, spec.value)
    if spec.kind != "pareto":
        return values
    return values.join(finals(outcomes, spec.x).rename({"value": "x"}), on="trial")


def finals(outcomes: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Trial and final value of a metric, or what each trial cost."""
    if metric in COSTS:
        return outcomes.select("trial", value=pl.col(metric).cast(pl.Float64))
    named = outcomes.select("trial", "metrics").explode("metrics").unnest("metrics")
    return named.filter(pl.col("name") == metric).select("trial", "value").unique("trial", keep="last")


def _indexed(spec: CurveSpec, outcomes: pl.DataFrame, metrics: pl.DataFrame) -> pl.DataFrame:
    """The last values of a family, by the indices along the axes; of a trial without them its final one.

    What has one index more than there are axes is averaged over it within each trial, but in a box, which is
    over all of its members.
    """
    members = metrics.filter(pl.col("name").str.starts_with(spec.value + "["))
    last = members.filter(pl.col("step") == pl.col("step").max().over("trial"))
    axes = {role: name for role, name in spec.roles.items() if name in INDICES}
    where = [
        pl.col("name").str.extract(_NAME, INDICES.index(name) + 1).alias(role) for role, name in axes.items()
    ]
    values = last.sort("trial", "name").select("trial", *where, "value").drop_nulls(list(axes))
    if not axes:
        plain = finals(outcomes, spec.value).join(values, on="trial", how="anti")
        return pl.concat([plain, values])
    if spec.kind == "box":
        return values
    return values.group_by("trial", *axes, maintain_order=True).agg(pl.col("value").mean())


def _words(ends: pl.DataFrame) -> dict[tuple[int, ...], str]:
    """What became of the trials at each place of levels, for the places where none has a value."""
    status = pl.col("status")
    kinds = {
        "unprobed": pl.col("unprobed"),
        "no value": status == "done",
        "failed": status == "failed",
        "pruned": status == "pruned",
    }
    found = (each.any().alias(word) for word, each in kinds.items())
    met = ends.group_by(PLACES, maintain_order=True).agg(found)
    return {
        tuple(place[name] for name in PLACES): next((word for word in kinds if place[word]), "not run")
        for place in met.iter_rows(named=True)
    }
