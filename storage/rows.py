"""Rows: their columns in the order of the files, and the frames that they become."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Final, NamedTuple, get_type_hints

import polars as pl

from .errors import StoreError
from .row_validation import trial_row_faults, type_faults

Int32 = Annotated[int, 32]
OptionalInt32 = Annotated[int | None, 32]
OptionalInt64 = Annotated[int | None, 64]

_COLUMN_TYPES: Final = {
    str: pl.String(),
    str | None: pl.String(),
    int: pl.Int64(),
    Int32: pl.Int32(),
    OptionalInt32: pl.Int32(),
    OptionalInt64: pl.Int64(),
    float: pl.Float64(),
    tuple[tuple[str, float], ...]: pl.List(pl.Struct({"name": pl.String(), "value": pl.Float64()})),
    datetime: pl.Datetime("us", "UTC"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One attempt at one trial, as it ended.

    `trial` is 16 hexadecimal digits; `factors` and `settings` are JSON objects as text; `metrics` are the
    final values by name; `flops` counts the training done; `started` and `finished` carry a time zone.
    `commit` is that of the code, with a hash of what differed from it: 5d02964+a1b2c3d4. `cuda_version` is
    empty on a CPU. Rows of earlier versions lack these versions, and have only the "+" of such a hash. A
    training that went on from that of a trial with fewer epochs tells it, and after how many. `packed_steps`
    are those of `steps` that were taken together with other trials.
    Raises `StoreError` with everything that is wrong.
    """

    trial: str
    attempt: Int32
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
    epochs: Int32
    steps: int
    seconds: float
    peak_mib: float
    version: str
    commit: str | None = None
    torch_version: str | None = None
    cuda_version: str | None = None
    python_version: str | None = None
    continued_from: str | None = None
    continued_after: OptionalInt32 = None
    packed_steps: OptionalInt64 = None
    device: str
    host: str
    started: datetime
    finished: datetime

    def __post_init__(self) -> None:
        if faults := trial_row_faults(_values(self), TRIALS):
            raise StoreError("; ".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One value of one metric, after `step` steps and in `epoch`; it may be infinite or not a number.

    Raises `StoreError` with everything that is wrong.
    """

    step: int
    epoch: Int32
    name: str
    value: float

    def __post_init__(self) -> None:
        if faults := type_faults(_values(self), METRICS):
            raise StoreError("; ".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOutputs:
    """What a trained model wrote for the test split, line by line, and the search that found it.

    `references` are as BLEU reads them; a line is its symbols' numbers where the task has no text. `sizes`
    says which a model was told that must be told one: "all" of them in turn, or "estimated" ones.
    """

    beam: Int32
    length_penalty: float
    coverage_penalty: float
    sizes: str
    sources: Sequence[str]
    references: Sequence[str]
    outputs: Sequence[str]


class AttemptRows(NamedTuple):
    """What is stored of one attempt."""

    trial: TrialRow
    metrics: Sequence[MetricRow]
    outputs: WrittenOutputs | None = None


def _columns(row: type) -> dict[str, pl.DataType]:
    return {name: _COLUMN_TYPES[kind] for name, kind in get_type_hints(row, include_extras=True).items()}


TRIALS: Final = pl.Schema(_columns(TrialRow))
_ATTEMPT: Final = {name: TRIALS[name] for name in ("trial", "attempt", "study")}
METRICS: Final = pl.Schema({**_ATTEMPT, **_columns(MetricRow)})
OUTPUTS: Final = pl.Schema(
    {
        **_ATTEMPT,
        "beam": pl.Int32(),
        "length_penalty": pl.Float64(),
        "coverage_penalty": pl.Float64(),
        "sizes": pl.String(),
        "line": pl.Int32(),
        **dict.fromkeys(("source", "reference", "output"), pl.String()),
    }
)

TAKEN: Final = pl.Schema({**_ATTEMPT, "factors": pl.String(), "at": pl.Datetime("us", "UTC")})
"""The trials of others that a study counts as its own, the levels by which it calls them, and since when."""


def trial_frame(*rows: TrialRow) -> pl.DataFrame:
    """Make the rows of trials, in their order."""
    page = list[dict[str, object]]()
    for row in rows:
        values = {name: _storable(value) for name, value in _values(row).items()}
        values["metrics"] = [{"name": name, "value": float(value)} for name, value in row.metrics]
        page.append(values)
    return pl.DataFrame(page, schema=TRIALS, orient="row")


def metric_frame(row: TrialRow, metrics: Sequence[MetricRow]) -> pl.DataFrame:
    """Make the rows of a trial's metrics, in their order."""
    columns = {name: [getattr(metric, name) for metric in metrics] for name in MetricRow.__slots__}
    return _attempt_frame(row, columns, METRICS)


_SEARCH = ("beam", "length_penalty", "coverage_penalty", "sizes")


def output_frame(row: TrialRow, written: WrittenOutputs) -> pl.DataFrame:
    """Make the rows of what a trial's model wrote, one per line, counted from 1."""
    columns = {
        "line": range(1, len(written.outputs) + 1),
        "source": written.sources,
        "reference": written.references,
        "output": written.outputs,
        **{name: getattr(written, name) for name in _SEARCH},
    }
    return _attempt_frame(row, columns, OUTPUTS)


def _attempt_frame(row: TrialRow, columns: Mapping[str, object], schema: pl.Schema) -> pl.DataFrame:
    """Make the rows of these columns that belong to an attempt."""
    keys = (pl.lit(getattr(row, name), dtype=kind).alias(name) for name, kind in _ATTEMPT.items())
    frame = pl.DataFrame(columns, schema_overrides={name: schema[name] for name in columns})
    return frame.with_columns(keys).select(schema.names())


def _values(row: TrialRow | MetricRow) -> dict[str, object]:
    return {field.name: getattr(row, field.name) for field in fields(row)}


def _storable(value: object) -> object:
    """Return a value that can be stored: a failure's message may have characters that UTF-8 cannot encode."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
