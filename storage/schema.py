"""The columns of the two datasets, and the rows that become them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

import polars as pl

from .layout import StoreError, name_fault, trial_fault

SCHEMA_VERSION: Final = 1
STATUSES: Final = ("done", "failed", "pruned")

# The order is that of the files.
TRIALS: Final = pl.Schema(
    {
        "trial": pl.String(),
        "attempt": pl.Int32(),
        "study": pl.String(),
        "recipe": pl.String(),
        "recipe_id": pl.String(),
        "task": pl.String(),
        "seed": pl.Int64(),
        "status": pl.String(),
        "reason": pl.String(),
        "factors": pl.String(),
        "settings": pl.String(),
        "metrics": pl.List(pl.Struct({"name": pl.String(), "value": pl.Float64()})),
        "parameters": pl.Int64(),
        "flops": pl.Float64(),
        "epochs": pl.Int32(),
        "steps": pl.Int64(),
        "seconds": pl.Float64(),
        "peak_mib": pl.Float64(),
        "version": pl.String(),
        "commit": pl.String(),
        "device": pl.String(),
        "host": pl.String(),
        "started": pl.Datetime("us", "UTC"),
        "finished": pl.Datetime("us", "UTC"),
    }
)
METRICS: Final = pl.Schema(
    {
        "trial": pl.String(),
        "attempt": pl.Int32(),
        "study": pl.String(),
        "step": pl.Int64(),
        "epoch": pl.Int32(),
        "name": pl.String(),
        "value": pl.Float64(),
    }
)
SCHEMAS: Final = {"trials": TRIALS, "metrics": METRICS}
ORDERS: Final = {"trials": ("trial", "attempt"), "metrics": ("trial", "attempt", "step", "epoch", "name")}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One attempt at one trial, as it ended.

    `trial` is 16 hexadecimal digits; `factors` and `settings` are JSON objects as text; `metrics` are
    the final values by name; `flops` counts the training done; `started` and `finished` carry a time zone.
    Raises `StoreError` that names all that is wrong.
    """

    trial: str
    attempt: int
    study: str
    recipe: str
    recipe_id: str
    task: str
    seed: int
    status: str
    reason: str | None = None
    factors: str
    settings: str
    metrics: tuple[tuple[str, float], ...]
    parameters: int
    flops: float
    epochs: int
    steps: int
    seconds: float
    peak_mib: float
    version: str
    commit: str | None = None
    device: str
    host: str
    started: datetime
    finished: datetime

    def __post_init__(self) -> None:
        if faults := list(_trial_faults(self)):
            raise StoreError("; ".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One value of one metric, after `step` steps and in `epoch`; it may be infinite or not a number."""

    step: int
    epoch: int
    name: str
    value: float


def trial_frame(row: TrialRow) -> pl.DataFrame:
    """Make the one row of a trial's file."""
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    values["metrics"] = [{"name": name, "value": value} for name, value in row.metrics]
    return _frame({name: [value] for name, value in values.items()}, TRIALS)


def metric_frame(row: TrialRow, metrics: Sequence[MetricRow]) -> pl.DataFrame:
    """Make the rows of a trial's metrics, in their order."""
    count = len(metrics)
    columns: dict[str, list[object]] = {
        "trial": [row.trial] * count,
        "attempt": [row.attempt] * count,
        "study": [row.study] * count,
    }
    columns |= {
        name: [getattr(metric, name) for metric in metrics] for name in ("step", "epoch", "name", "value")
    }
    return _frame(columns, METRICS)


def _frame(columns: Mapping[str, Sequence[object]], schema: pl.Schema) -> pl.DataFrame:
    """Build a frame of exactly these types; raises `StoreError` for a value that its column cannot hold."""
    series: list[pl.Series] = []
    for name, kind in schema.items():
        try:
            series.append(pl.Series(name, columns[name], dtype=kind, strict=True))
        except (pl.exceptions.PolarsError, TypeError, OverflowError) as error:
            raise StoreError(f"{name}: expected {kind}, got {list(columns[name])[:3]}") from error
    return pl.DataFrame(series)


def _trial_faults(row: TrialRow) -> Iterator[str]:
    """Yield what is wrong with a row, in the order of its fields."""
    yield from filter(None, (trial_fault(row.trial), name_fault(row.study)))
    if row.attempt < 0:
        yield f"attempt: expected 0 or more, got {row.attempt}"
    if row.status not in STATUSES:
        yield f"status: expected one of {', '.join(STATUSES)}, got {row.status!r}"
    if (row.status == "done") != (row.reason is None):
        yield f"reason: expected none when done and one otherwise, got {row.reason!r} with {row.status!r}"
    for name in ("factors", "settings"):
        if not _is_json_object(text := getattr(row, name)):
            yield f"{name}: expected a JSON object, got {text!r}"
    for name in ("started", "finished"):
        if getattr(row, name).tzinfo is None:
            yield f"{name}: expected a time with its zone, got {getattr(row, name).isoformat()}"


def _is_json_object(text: str) -> bool:
    """Say whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False
