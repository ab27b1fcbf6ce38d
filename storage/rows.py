"""The rows that are written, and the frames that they become."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

import polars as pl

from .paths import StoreError
from .row_validation import metric_row_faults, trial_row_faults
from .schema import METRICS, TRIALS


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One attempt at one trial, as it ended.

    `trial` is 16 hexadecimal digits; `factors` and `settings` are JSON objects as text; `metrics` are the
    final values by name; `flops` counts the training done; `started` and `finished` carry a time zone.
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
        if faults := trial_row_faults(_values(self)):
            raise StoreError("; ".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One value of one metric, after `step` steps and in `epoch`; it may be infinite or not a number.

    Raises `StoreError` that names all that is wrong.
    """

    step: int
    epoch: int
    name: str
    value: float

    def __post_init__(self) -> None:
        if faults := metric_row_faults(_values(self)):
            raise StoreError("; ".join(faults))


def trial_frame(row: TrialRow) -> pl.DataFrame:
    """Make the one row of a trial's file."""
    values = {name: _storable(value) for name, value in _values(row).items()}
    values["metrics"] = [{"name": name, "value": float(value)} for name, value in row.metrics]
    return pl.DataFrame([values], schema=TRIALS, orient="row")


def metric_frame(row: TrialRow, metrics: Sequence[MetricRow]) -> pl.DataFrame:
    """Make the rows of a trial's metrics, in their order."""
    keys = (
        pl.lit(getattr(row, name), dtype=METRICS[name]).alias(name) for name in ("trial", "attempt", "study")
    )
    columns = {
        name: [getattr(metric, name) for metric in metrics] for name in ("step", "epoch", "name", "value")
    }
    frame = pl.DataFrame(columns, schema_overrides={name: METRICS[name] for name in columns})
    return frame.with_columns(keys).select(METRICS.names())


def _values(row: TrialRow | MetricRow) -> dict[str, object]:
    """Return a row's values by name."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def _storable(value: object) -> object:
    """Return a value as it can be stored: the message of a failure may hold characters that UTF-8 has not."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
