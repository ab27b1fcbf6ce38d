"""Rows of the store, with their columns and their validation."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_type_hints

import polars as pl
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from .errors import StoreError, describe_faults
from .place import study_name_fault, trial_id_fault

_STATUSES: Final = ("done", "failed", "pruned")


def _escaped(value: object) -> object:
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_escaped)]
"""A text. Characters that UTF-8 cannot encode are escaped."""

Int32 = Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]
Int64 = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]

_COLUMN_TYPES: Final = {
    Text: pl.String(),
    Int32: pl.Int32(),
    Int64: pl.Int64(),
    float: pl.Float64(),
    tuple[tuple[Text, float], ...]: pl.List(pl.Struct({"name": pl.String(), "value": pl.Float64()})),
    AwareDatetime: pl.Datetime("us", "UTC"),
}
_STRICT: Final = ConfigDict(strict=True)


_Row = TypeVar("_Row")


def _raising_store_errors(row: type[_Row]) -> type[_Row]:
    """Let a pydantic dataclass raise `StoreError` with its faults."""
    check = row.__init__

    def init(self: _Row, **values: object) -> None:
        try:
            check(self, **values)
        except ValidationError as error:
            raise StoreError(describe_faults(error)) from None

    row.__init__ = init
    return row


@_raising_store_errors
@pydantic_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class TrialRow:
    """The row of one ended attempt at a trial.

    - `trial` is 16 hexadecimal digits.
    - `factors` and `settings` are JSON objects as text.
    - `metrics` are the final values by name.
    - `flops` counts the FLOPs of the training.
    - `started` and `finished` carry a time zone.
    - `commit` names the commit of the code, with a hash of uncommitted changes: 5d02964+a1b2c3d4.
    - `cuda_version` is empty on a CPU.
    - `arithmetic` is the number of the code's arithmetic, `ARITHMETIC` in `studies/resolve/trial.py`; none
      is 0.
    - `gpus` is the share of a GPU that the trial had, 0 on a CPU.
    - `continued_from` is the trial with fewer epochs or other tests that this one continues, if any. It is
      the trial itself if the row is a copy of the result of another study.
    - `continued_after` is the number of epochs of that trial.
    - `packed_steps` counts the `steps` that earlier releases took together with other trials; new rows have
      none.

    Rows of earlier releases have no `gpus`, no versions of torch, CUDA, Python and Optuna, and only the "+"
    of the hash. Raise `StoreError` with what is wrong.
    """

    trial: Text
    attempt: Int32
    study: Text
    recipe: Text
    recipe_id: Text
    task: Text
    seed: Int64
    status: Text
    reason: Text | None = None
    factors: Text
    settings: Text
    metrics: tuple[tuple[Text, float], ...]
    parameters: Int64
    flops: float
    epochs: Int32
    steps: Int64
    seconds: float
    peak_mib: float
    version: Text
    commit: Text | None = None
    torch_version: Text | None = None
    cuda_version: Text | None = None
    gpus: float | None = None
    python_version: Text | None = None
    optuna_version: Text | None = None
    arithmetic: Int32 | None = None
    continued_from: Text | None = None
    continued_after: Int32 | None = None
    packed_steps: Int64 | None = None
    device: Text
    host: Text
    started: AwareDatetime
    finished: AwareDatetime

    def __post_init__(self) -> None:
        if faults := list(_faults(self)):
            raise StoreError("; ".join(faults))


def _faults(row: TrialRow) -> Iterator[str]:
    yield from filter(None, (trial_id_fault(row.trial), study_name_fault(row.study)))
    if row.attempt < 0:
        yield f"attempt: expected 0 or more, got {row.attempt}"
    if row.status not in _STATUSES:
        yield f"status: expected one of {', '.join(_STATUSES)}, got {row.status!r}"
    elif (row.status == "done") != (row.reason is None):
        yield f"reason: expected none with status done, else a text; got {row.reason!r} with {row.status}"
    if not _is_factors(row.factors):
        yield f"factors: expected a JSON object, got {row.factors!r}"
    if not _is_json_object(row.settings):
        yield f"settings: expected a JSON object, got {row.settings!r}"


def _is_factors(text: str) -> bool:
    return text.count('":') <= MAX_FACTORS and _is_json_object(text)


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


_REQUIRED: Final = frozenset(
    name for name, kind in get_type_hints(TrialRow).items() if type(None) not in get_args(kind)
)
_OPTIONAL: Final = frozenset(get_type_hints(TrialRow)) - _REQUIRED
_CHECKED: Final = ("trial", "attempt", "study")
_SIMPLE: Final = r'"[^"\\]*": (?:"[^"\\]*"|-?[0-9]{1,15}(?:\.[0-9]{1,17})?|true|false|null)'
_PATTERNS: Final = {
    "trial": "^[0-9a-f]{16}$",
    "study": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$",
    "status": f"^(?:{'|'.join(_STATUSES)})$",
    "factors": rf"^\{{(?:{_SIMPLE}(?:, {_SIMPLE})*)?\}}$",
}
"""Patterns of valid texts. Factors that do not match may be valid, too, and are parsed."""

_MEANING: Final = {
    "trial": "16 hexadecimal digits as a trial",
    "study": "the name of a study",
    "status": f"one of {', '.join(_STATUSES)} as status",
    "factors": "a JSON object as factors",
}
_TIMES: Final = tuple(
    (each.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    for each in (datetime.min, datetime.max)
)
"""The first and the last time that Python knows, as a store writes it."""

MAX_FACTORS: Final = 10_000
"""The maximum number of factors in a row. Each becomes a column of the results."""

_NUM_SHOWN: Final = 3
_MAX_SHOWN: Final = 60


def content_fault(dataset: str, *files: bytes) -> str | None:
    """Return what a store would never write in intact Parquet files of a dataset, or None.

    Many small files are checked together in much less time than one by one. A checksum shows that bytes are
    as they were written, not who wrote them. Settings are long, and the code that reads them checks them.
    """
    schema = SCHEMAS[dataset]
    added_later = _OPTIONAL if dataset == "trials" else frozenset[str]()
    try:
        for file in files:
            found = pl.read_parquet_schema(io.BytesIO(file))
            faults = [f"an unknown column {shown_value(name)}" for name in found if name not in schema]
            faults += [
                f"{shown_value(name)}: expected {schema[name]}, got {kind}"
                for name, kind in found.items()
                if name in schema and kind != schema[name]
            ]
            faults += [
                f"no column {name}" for name in schema if name not in found and name not in added_later
            ]
            if faults:
                return f"expected the columns of a store, got {'; '.join(faults[:_NUM_SHOWN])}"
        rows = pl.scan_parquet(list(files), schema=schema, missing_columns="insert")
        return _row_fault(dataset, rows)
    except pl.exceptions.PolarsError as error:
        return f"expected rows of a store, got Parquet that cannot be read ({str(error).splitlines()[0]})"


def _row_fault(dataset: str, rows: pl.LazyFrame) -> str | None:
    """Return what a store would never write in the rows of a dataset, or None."""
    schema, is_trials = SCHEMAS[dataset], dataset == "trials"
    numbers = [name for name, kind in schema.items() if kind != pl.String()]
    checked = [*_CHECKED, *(["factors", "status"] if is_trials else [*numbers, *({"name"} & {*schema})])]
    required = [name for name in schema if name in (_REQUIRED - {"settings"} if is_trials else checked)]
    fits = {name: pl.col(name).str.contains(_PATTERNS[name]) for name in checked if name in _PATTERNS}
    if "factors" in fits:
        fits["factors"] &= pl.col("factors").str.count_matches('":', literal=True) <= MAX_FACTORS
    times = [name for name in required if isinstance(schema[name], pl.Datetime)]
    sound = [
        pl.col(name).to_physical().is_between(_TIMES[0], _TIMES[1]).all().alias(f"{name} is a time")
        for name in times
    ]
    sound += [pl.col(name).null_count().eq(0).alias(f"{name} has values") for name in required]
    is_sound = rows.select(sound).collect(engine="streaming").row(0, named=True)
    if not all(is_sound[f"{name} is a time"] for name in times):
        return "expected times of the years 1 to 9999, got others"
    if empty := [name for name in required if not is_sound[f"{name} has values"]]:
        return f"expected a value in each row, got none of {', '.join(empty[:_NUM_SHOWN])}"
    for name, fit in fits.items():
        texts = rows.select(name)
        if not is_trials:  # a trial has many rows, one after the other
            texts = texts.filter(pl.col(name).ne_missing(pl.col(name).shift()))
        for value in texts.select(pl.col(name).filter(~fit)).collect()[name]:
            if name != "factors" or not _is_factors(value):
                return f"expected {_MEANING[name]}, got {shown_value(value)}"
    return None


def shown_value(value: str) -> str:
    """Return a text of a file so that it can be printed: quoted, escaped and short."""
    return ascii(value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}…")


@_raising_store_errors
@pydantic_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class MetricRow:
    """One value of one metric, after `step` steps and in `epoch`.

    The value may be infinite or NaN. Raise `StoreError` with what is wrong.
    """

    step: Int64
    epoch: Int32
    name: Text
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOutputs:
    """A trained model's outputs for the test split, line by line: sequences, or predicted labels.

    With them are the settings of the beam search; for labels `beam` is 1 and `sizes` empty. `references` have
    the form that BLEU expects. If the task has no text, a line has symbol numbers. `sizes` is for models that
    need the size of the output: they try "all" sizes in turn, or only "estimated" ones.
    """

    beam: Int32 = 1
    length_penalty: float = 0.0
    coverage_penalty: float = 0.0
    sizes: str = ""
    sources: Sequence[str]
    references: Sequence[str]
    outputs: Sequence[str]


class AttemptRows(NamedTuple):
    """Everything that is stored for one attempt: its row, its metrics, and its outputs, if any."""

    trial: TrialRow
    metrics: Sequence[MetricRow]
    outputs: WrittenOutputs | None = None


def _columns(row: type) -> dict[str, pl.DataType]:
    kinds = get_type_hints(row, include_extras=True)
    optional = {name: args[0] for name, kind in kinds.items() if type(None) in (args := get_args(kind))}
    return {name: _COLUMN_TYPES[kind] for name, kind in (kinds | optional).items()}


TRIALS: Final = pl.Schema(_columns(TrialRow))
_ATTEMPT: Final = {name: TRIALS[name] for name in ("trial", "attempt", "study")}
KEY_COLUMNS: Final = tuple(_ATTEMPT)
"""The columns that identify an attempt, which every reading of `Store.trials` needs."""

METRIC_COLUMNS: Final = pl.Schema({**_ATTEMPT, **_columns(MetricRow)})
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


def has_trial(trials: Iterable[str]) -> pl.Expr:
    """Return a Polars expression that selects these trials' rows faster than with a plain list."""
    return pl.col("trial").is_in(pl.Series(list(trials), dtype=pl.String).implode())


def row_values(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the final metrics in one row of the store, by name."""
    return {each["name"]: each["value"] for each in row["metrics"] or ()}


def trial_frame(*rows: TrialRow) -> pl.DataFrame:
    """Return a frame with these rows of trials, in the given order."""
    page = [
        {**asdict(row), "metrics": [{"name": name, "value": value} for name, value in row.metrics]}
        for row in rows
    ]
    return pl.DataFrame(page, schema=TRIALS, orient="row")


def metric_frame(row: TrialRow, metrics: Sequence[MetricRow]) -> pl.DataFrame:
    """Return a frame with a row for each value in `metrics`, in this order."""
    columns = {name: [getattr(metric, name) for metric in metrics] for name in MetricRow.__slots__}
    return _attempt_frame(row, len(metrics), columns, METRIC_COLUMNS)


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
    return _attempt_frame(row, len(written.outputs), columns, OUTPUTS)


def _attempt_frame(
    row: TrialRow, height: int, columns: Mapping[str, object], schema: pl.Schema
) -> pl.DataFrame:
    keys = {name: [getattr(row, name)] * height for name in _ATTEMPT}
    return pl.DataFrame({**keys, **columns}, schema=schema)


SCHEMA_VERSION: Final = 4
"""The written schema version; 2 added columns for where a trial ran, 3 `gpus`, and 4 `optuna_version` and
`arithmetic`. They are null in files of earlier versions."""

READ_VERSIONS: Final = (1, 2, 3, 4)
"""The readable schema versions."""

SCHEMAS: Final = {
    "trials": TRIALS,
    "metrics": METRIC_COLUMNS,
    "probes": METRIC_COLUMNS,
    "tuning": METRIC_COLUMNS,
    "outputs": OUTPUTS,
    "tuned_outputs": OUTPUTS,
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
}
