"""Validation of rows before anything is written."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import polars as pl

from .errors import StoreError
from .paths import Layout, study_name_fault, trial_id_fault

_STATUSES: Final = ("done", "failed", "pruned")
_NULLABLE: Final = (
    *("reason", "commit", "torch_version", "cuda_version", "python_version"),
    *("continued_from", "continued_after", "packed_steps"),
)
_BITS: Final = {pl.Int32(): 32, pl.Int64(): 64}


def trial_row_faults(values: Mapping[str, object], schema: pl.Schema) -> list[str]:
    """Say all that is wrong with the values of a trial's row: with their types, else with their meaning."""
    return type_faults(values, schema) or list(_semantic_faults(values))


def type_faults(values: Mapping[str, object], schema: pl.Schema) -> list[str]:
    """Say which values their columns cannot hold."""
    return [
        f"{name}: expected {expected}, got {value!r}"
        for name, value in values.items()
        if not (value is None and name in _NULLABLE) and (expected := _expected(value, schema[name]))
    ]


def _expected(value: object, kind: pl.DataType) -> str | None:
    """Say what a column expects if a value is not that."""
    if bits := _BITS.get(kind):
        fits = type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1  # a bool does not fit
        return None if fits else f"an integer of {bits} bits"
    if isinstance(kind, pl.String):
        return None if isinstance(value, str) else "a text"
    if isinstance(kind, pl.Float64):
        return None if isinstance(value, int | float) else "a number"
    if isinstance(kind, pl.Datetime):
        return None if isinstance(value, datetime) and value.tzinfo else "a time with its zone"
    return None if _are_metrics(value) else "pairs of a name and a number"


def _are_metrics(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_metric, value))


def _is_metric(pair: object) -> bool:
    match pair:
        case (str(), int() | float()):
            return True
        case _:
            return False


def _semantic_faults(values: Mapping[str, object]) -> Iterator[str]:
    yield from filter(None, (trial_id_fault(str(values["trial"])), study_name_fault(str(values["study"]))))
    if isinstance(attempt := values["attempt"], int) and attempt < 0:
        yield f"attempt: expected 0 or more, got {attempt}"
    status, reason = values["status"], values["reason"]
    if status not in _STATUSES:
        yield f"status: expected one of {', '.join(_STATUSES)}, got {status!r}"
    elif (status == "done") != (reason is None):
        yield f"reason: expected one unless the status is done, got {reason!r} with {status}"
    for name in ("factors", "settings"):
        if not is_json_object(text := str(values[name])):
            yield f"{name}: expected a JSON object, got {text!r}"


def is_json_object(text: str | None) -> bool:
    """Return whether a text is a JSON object."""
    try:
        return text is not None and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def check_stored_row(layout: Layout, row: Mapping[str, Any]) -> None:
    """Raise `StoreError` for a row that activemem cannot have written: names, factors, missing values.

    Its settings are long, and are checked where they are read.
    """
    trial, study, attempt = row["trial"], row["study"], row["attempt"]
    faults = [*filter(None, (trial_id_fault(str(trial)), study_name_fault(str(study))))]
    if "factors" in row and not is_json_object(row["factors"]):
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
        raise StoreError(f"{place}: {'; '.join(faults)}; no activemem wrote this row: move its file away")
