"""Child process that reads Parquet and Arrow files, since these can crash, stall or fill their reader.

It is run by its path and imports nothing of this package. A request is a line of JSON and the bytes of
a file. The answer is a line of JSON for each few rows, then one with what else is known, or with an error.
"""

import functools
import io
import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS = 256
"""The number of rows that become Python values at a time."""

_VALUE = 50
"""The bytes that any value takes in Python, about."""

_SHOWN = 60


class _RefusedError(Exception):
    """A file that cannot be read, with the message for the user."""


def main() -> None:
    """Answer requests until standard input ends."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := requests.readline():
        request = json.loads(line)
        data = requests.read(request["size"])
        try:
            known = _answer(data, request, answers)
        except _RefusedError as refused:
            known = {"error": str(refused)}
        except MemoryError:
            known = {"too_large": True}
        except Exception as error:  # noqa: BLE001 -- a damaged file can raise anything
            known = {"error": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(known).encode() + b"\n")
        answers.flush()


def _answer(data: bytes, request: dict[str, Any], answers: BinaryIO) -> dict[str, Any]:
    """Write the rows of a file, and return what else is known of it."""
    schema, _ = _open(data, request["form"], [])
    paths = [_find_path(schema, name) for name in request["columns"]]
    if missing := [name for name, path in zip(request["columns"], paths, strict=True) if path is None]:
        found = _leaves(schema)
        return {"missing": missing, "found": found[:100], "num_found": len(found)}
    size = 0
    for columns in _iter_columns(
        data, request, paths
    ):  # nothing becomes Python values before all is measured
        for column in columns:
            column.validate(full=True)
            size += _size(column)
        if size > request["max_bytes"]:
            return {"too_large": True}
    for columns in _iter_columns(data, request, paths):
        for start in range(0, len(columns[0]), ROWS):
            rows = [column.slice(start, ROWS).to_pylist() for column in columns]
            answers.write(json.dumps(rows, default=_foreign).encode() + b"\n")
    return {"names": _class_names(schema, paths)}


def _iter_columns(
    data: bytes, request: dict[str, Any], paths: list[list[str] | None]
) -> Iterator[list[pa.Array]]:
    """Yield the columns of one batch of rows after the other."""
    for batch in _open(data, request["form"], request["columns"])[1]:
        yield [_column(batch, path) for path in paths if path is not None]


def _size(column: pa.Array) -> int:
    """Return about how many bytes the values of a column take in Python."""
    kind, size = column.type, _VALUE * len(column)
    if pa.types.is_dictionary(kind):
        try:
            lengths = pc.call_function("binary_length", [column.dictionary])
        except pa.ArrowNotImplementedError:
            return size + len(column) * (column.dictionary.nbytes // max(1, len(column.dictionary)))
        return size + (pc.call_function("sum", [lengths.take(column.indices)]).as_py() or 0)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return size + _size(column.flatten())
    if pa.types.is_struct(kind):
        return size + sum(map(_size, column.flatten()))
    return size + column.nbytes


def _open(data: bytes, form: str, columns: list[str]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema of a file and its batches, of Parquet only with the columns asked for."""
    if form == "parquet":
        file = pq.ParquetFile(io.BytesIO(data))
        schema = file.schema_arrow
        roots = {path[0] for name in columns if (path := _find_path(schema, name))}
        return schema, file.iter_batches(batch_size=ROWS, columns=sorted(roots))
    if data.startswith(b"ARROW1"):
        reader = pa.ipc.open_file(pa.BufferReader(data))
        return reader.schema, (reader.get_batch(place) for place in range(reader.num_record_batches))
    stream = pa.ipc.open_stream(pa.BufferReader(data))
    return stream.schema, iter(stream)


def _find_path(schema: pa.Schema, name: str) -> list[str] | None:
    """Return the keys from a column to a field of its structs: `translation.en` is ["translation", "en"]."""
    if name in schema.names:
        if schema.names.count(name) > 1:
            raise _RefusedError(f"expected one column '{name}', got {schema.names.count(name)}")
        return [name]
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        root, rest = ".".join(parts[:end]), parts[end:]
        if schema.names.count(root) == 1 and _has_fields(schema.field(root).type, rest):
            return [root, *rest]
    return None


def _has_fields(kind: pa.DataType, keys: list[str]) -> bool:
    """Return whether a type is a struct with these nested fields."""
    for key in keys:
        if not pa.types.is_struct(kind) or kind.get_field_index(key) < 0:
            return False
        kind = kind.field(key).type
    return True


def _column(batch: pa.RecordBatch, path: list[str]) -> pa.Array:
    """Return a column, or a field within its structs."""
    column = batch.column(batch.schema.names.index(path[0]))
    return functools.reduce(_field, path[1:], column)


def _field(column: pa.Array, name: str) -> pa.Array:
    """Return a field of structs, null where the struct is."""
    return column.flatten()[column.type.get_field_index(name)]


def _leaves(schema: pa.Schema) -> list[str]:
    """Return the names of all columns, those of structs as `translation.en`."""
    found = []
    for field in schema:
        fields = [field.type.field(place) for place in range(field.type.num_fields)]
        nested = [f"{field.name}.{each.name}" for each in fields] if pa.types.is_struct(field.type) else []
        found += nested or [field.name]
    return found


def _foreign(value: object) -> dict[str, str]:
    """Return a stand-in for a value that is no text, number or list, such as a date."""
    return {"": repr(value[:_SHOWN] if isinstance(value, bytes) else value)[:_SHOWN]}


def _class_names(schema: pa.Schema, paths: list[list[str] | None]) -> list[list[str] | None]:
    """Return for each column the names of its classes, where Hugging Face `datasets` describes them."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return [None for _ in paths]
    return [_names_at(features, path or []) for path in paths]


def _names_at(feature: Any, path: list[str]) -> list[str] | None:  # noqa: ANN401 -- a file may say anything
    """Return the names of the classes that a column has, or that are in its lists."""
    for key in path:
        feature = feature.get(key) if isinstance(feature, dict) else None
    if isinstance(feature, dict) and feature.get("_type") in ("Sequence", "List", "LargeList"):
        feature = feature.get("feature")
    elif isinstance(feature, list) and feature:
        feature = feature[0]
    if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
        return None
    names = feature.get("names")
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


if __name__ == "__main__":
    main()
