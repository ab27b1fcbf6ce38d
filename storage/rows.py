"""Rows of the store, with their columns and their validation."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import polars as pl

from .errors import StoreError
from .place import Layout, study_name_fault, trial_id_fault

_STATUSES: Final = ("done", "failed", "pruned")
_NULLABLE: Final = (
    *("reason", "commit", "torch_version", "cuda_version", "python_version"),
    *("continued_from", "continued_after", "packed_steps"),
)
_BITS: Final = {pl.Int32(): 32, pl.Int64(): 64}


def _type_faults(values: Mapping[str, object], schema: pl.Schema) -> list[str]:
    return [
        f"{name}: expected {expected}, got {value!r}"
        for name, value in values.items()
        if not (value is None and name in _NULLABLE) and (expected := _expected(value, schema[name]))
    ]


def _expected(value: object, kind: pl.DataType) -> str | None:
    if bits := _BITS.get(kind):
        fits = type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1  # a bool does not fit
        return None if fits else f"an integer of {bits} bits"
    if isinstance(kind, pl.String):
        return None if isinstance(value, str) else "a text"
    if isinstance(kind, pl.Float64):
        return None if isinstance(value, int | float) else "a number"
    if isinstance(kind, pl.Datetime):
        return None if isinstance(value, datetime) and value.tzinfo else "a time with a time zone"
    is_metrics = isinstance(value, tuple) and all(
        isinstance(pair, tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], int | float)
        for pair in value
    )
    return None if is_metrics else "pairs of a name and a number"


def _semantic_faults(values: Mapping[str, object]) -> Iterator[str]:
    yield from filter(None, (trial_id_fault(str(values["trial"])), study_name_fault(str(values["study"]))))
    if isinstance(attempt := values["attempt"], int) and attempt < 0:
        yield f"attempt: expected 0 or more, got {attempt}"
    status, reason = values["status"], values["reason"]
    if status not in _STATUSES:
        yield f"status: expected one of {', '.join(_STATUSES)}, got {status!r}"
    elif (status == "done") != (reason is None):
        yield f"reason: expected none with status done, else a text; got {reason!r} with {status}"
    for name in ("factors", "settings"):
        if not _is_json_object(text := str(values[name])):
            yield f"{name}: expected a JSON object, got {text!r}"


def _is_json_object(text: str | None) -> bool:
    try:
        return text is not None and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


_JSON_TEXT: Final = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
_JSON_NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_JSON_PAIR: Final = rf"{_JSON_TEXT}: (?:{_JSON_TEXT}|{_JSON_NUMBER}|true|false|null)"
_USUAL: Final = {
    "trial": "^[0-9a-f]{16}$",
    "study": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$",
    "factors": rf"^\{{(?:{_JSON_PAIR}(?:, {_JSON_PAIR})*)?\}}$",
}
"""Patterns of nearly all values; others are checked one by one."""


def check_stored_rows(layout: Layout, rows: pl.DataFrame) -> None:
    """Raise `StoreError` if a row has values that activemem never writes.

    Names, factors and missing values are checked. The settings in a row are long; the code that reads them
    checks them.
    """
    usual = [pl.col(name).str.contains(_USUAL[name]) for name in rows.columns if name in _USUAL]
    usual += [pl.col(name).is_not_null() for name in rows.columns if name not in {*_USUAL, *_NULLABLE}]
    for row in rows.filter(~pl.all_horizontal(usual).fill_null(value=False)).iter_rows(named=True):
        _check_stored_row(layout, row)


def _check_stored_row(layout: Layout, row: Mapping[str, Any]) -> None:
    trial, study, attempt = row["trial"], row["study"], row["attempt"]
    faults = [*filter(None, (trial_id_fault(str(trial)), study_name_fault(str(study))))]
    if "factors" in row and not _is_json_object(row["factors"]):
        faults.append(f"factors: expected a JSON object, got {str(row['factors'])[:60]!r}")
    may_lack = {*_NULLABLE, "trial", "study", "factors"}  # the last three were checked above
    faults += [
        f"{name}: expected a value, got none"
        for name, value in row.items()
        if value is None and name not in may_lack
    ]
    if faults:
        place = layout.root / "trials"
        if study_name_fault(str(study)) is None and trial_id_fault(str(trial)) is None:
            own = layout.attempt_file("trials", study, trial, attempt)
            place = own if own.is_file() else own.parent
        raise StoreError(
            f"{place}: {'; '.join(faults)}; this row was not written by activemem: move its file away"
        )


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
    """The row of one ended attempt at a trial.

    - `trial` is 16 hexadecimal digits.
    - `factors` and `settings` are JSON objects as text.
    - `metrics` are the final values by name.
    - `flops` counts the FLOPs of the training.
    - `started` and `finished` carry a time zone.
    - `commit` names the commit of the code, with a hash of uncommitted changes: 5d02964+a1b2c3d4.
    - `cuda_version` is empty on a CPU.
    - `continued_from` is the trial with fewer epochs whose training this one continues, if any.
    - `continued_after` is the number of epochs of that trial.
    - `packed_steps` counts the `steps` that were taken together with other trials.

    Rows of earlier releases have no versions of torch, CUDA and Python, and only the "+" of the hash. Raise
    `StoreError` with everything that is wrong.
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
        values = _values(self)
        if faults := _type_faults(values, TRIALS) or list(_semantic_faults(values)):
            raise StoreError("; ".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One value of one metric, after `step` steps and in `epoch`.

    The value may be infinite or NaN. Raise `StoreError` with everything that is wrong.
    """

    step: int
    epoch: Int32
    name: str
    value: float

    def __post_init__(self) -> None:
        if faults := _type_faults(_values(self), METRICS):
            raise StoreError("; ".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOutputs:
    """A trained model's outputs for the test split, line by line.

    With them are the settings of the beam search. `references` have the form that BLEU expects. If the task
    has no text, a line has symbol numbers. `sizes` is for models that need the size of the output: they try
    "all" sizes in turn, or only "estimated" ones.
    """

    beam: Int32
    length_penalty: float
    coverage_penalty: float
    sizes: str
    sources: Sequence[str]
    references: Sequence[str]
    outputs: Sequence[str]


class AttemptRows(NamedTuple):
    """Everything that is stored for one attempt: its row, its metrics, and its outputs, if any."""

    trial: TrialRow
    metrics: Sequence[MetricRow]
    outputs: WrittenOutputs | None = None


def _columns(row: type) -> dict[str, pl.DataType]:
    return {name: _COLUMN_TYPES[kind] for name, kind in get_type_hints(row, include_extras=True).items()}


TRIALS: Final = pl.Schema(_columns(TrialRow))
_ATTEMPT: Final = {name: TRIALS[name] for name in ("trial", "attempt", "study")}
KEY_COLUMNS: Final = tuple(_ATTEMPT)
"""The columns that identify an attempt, which every reading of `Store.trials` needs."""

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
"""The trials of other studies that a study has adopted, with its factor levels for them, and the time."""


def has_trial(trials: Iterable[str]) -> pl.Expr:
    """Return a Polars expression that selects the rows of these trials.

    It is faster than with a plain list.
    """
    return pl.col("trial").is_in(pl.Series(list(trials), dtype=pl.String).implode())


def trial_frame(*rows: TrialRow) -> pl.DataFrame:
    """Return a frame with these rows of trials, in the given order."""
    page = list[dict[str, object]]()
    for row in rows:
        values = _values(row)
        for name, value in values.items():
            if isinstance(value, str):  # escape the characters that UTF-8 cannot encode
                values[name] = value.encode(errors="backslashreplace").decode()
        values["metrics"] = [{"name": name, "value": float(value)} for name, value in row.metrics]
        page.append(values)
    return pl.DataFrame(page, schema=TRIALS, orient="row")


def metric_frame(row: TrialRow, metrics: Sequence[MetricRow]) -> pl.DataFrame:
    """Return a frame with a row for each value in `metrics`, in this order."""
    columns = {name: [getattr(metric, name) for metric in metrics] for name in MetricRow.__slots__}
    return _attempt_frame(row, columns, METRICS)


_SEARCH = ("beam", "length_penalty", "coverage_penalty", "sizes")


def output_frame(row: TrialRow, written: WrittenOutputs) -> pl.DataFrame:
    """Return a frame with a row for each line of a model's outputs. Lines count from 1."""
    columns = {
        "line": range(1, len(written.outputs) + 1),
        "source": written.sources,
        "reference": written.references,
        "output": written.outputs,
        **{name: getattr(written, name) for name in _SEARCH},
    }
    return _attempt_frame(row, columns, OUTPUTS)


def _attempt_frame(row: TrialRow, columns: Mapping[str, object], schema: pl.Schema) -> pl.DataFrame:
    keys = (pl.lit(getattr(row, name), dtype=kind).alias(name) for name, kind in _ATTEMPT.items())
    frame = pl.DataFrame(columns, schema_overrides={name: schema[name] for name in columns})
    return frame.with_columns(keys).select(schema.names())


def _values(row: TrialRow | MetricRow) -> dict[str, object]:
    return {field.name: getattr(row, field.name) for field in fields(row)}


SCHEMA_VERSION: Final = 2
"""The written schema version; 2 added columns for where a trial ran, which are null in files of version 1."""

READ_VERSIONS: Final = (1, 2)
"""The readable schema versions."""

SCHEMAS: Final = {
    "trials": TRIALS,
    "metrics": METRICS,
    "probes": METRICS,
    "tuning": METRICS,
    "outputs": OUTPUTS,
    "tuned_outputs": OUTPUTS,
    "taken": TAKEN,
}
MEASURED_LATER: Final = ("probes", "tuning")
_BY_STEP: Final = ("trial", "attempt", "step", "epoch", "name")
_BY_LINE: Final = ("trial", "attempt", "line")
SORT_KEYS: Final = {
    "trials": ("trial", "attempt"),
    "metrics": _BY_STEP,
    **dict.fromkeys(MEASURED_LATER, _BY_STEP),
    "outputs": _BY_LINE,
    "tuned_outputs": _BY_LINE,
    "taken": ("trial", "attempt"),
}
