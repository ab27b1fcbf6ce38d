"""Reader of Parquet files, and of the Arrow files that Hugging Face `datasets` writes.

It also reads the class names that `datasets` stores with a column of class numbers.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .cells import Cells, RowsError, max_bytes, missing_column, too_large

_BATCH_ROWS = 256  # the rows that become Python values at a time
_VALUE_BYTES = 50  # about what any Python value takes


def read_columnar(data: bytes, form: str, columns: Sequence[str]) -> Cells:
    """Return these columns of a Parquet or Arrow file.

    The name `translation.en` stands for a field of the struct column `translation`.

    Raise RowsError for an invalid file, and for rows that exceed the size limit in memory.
    """
    try:
        return _read(data, form, columns)
    except RowsError:
        raise
    except MemoryError as error:
        raise RowsError([too_large("rows")]) from error
    except Exception as error:  # a damaged file can raise anything
        found = f"{type(error).__name__}: {error}"[:200]
        raise RowsError([f"expected {form.capitalize()}, got: {found}"]) from error


def _read(data: bytes, form: str, columns: Sequence[str]) -> Cells:
    schema, _ = _open(data, form, ())
    paths = [_find_path(schema, name) for name in columns]
    if missing := [name for name, path in zip(columns, paths, strict=True) if path is None]:
        raise RowsError([missing_column(name, _leaves(schema)) for name in missing])
    size = 0
    # a small compressed file can be huge in memory, so its size is estimated before it becomes Python values
    for arrays in _iter_arrays(data, form, columns, paths):
        for array in arrays:
            array.validate(full=True)
            size += _python_size(array)
        if size > max_bytes():
            raise RowsError([too_large("rows")])
    values: list[list[Any]] = [[] for _ in columns]
    for arrays in _iter_arrays(data, form, columns, paths):
        for column, array in zip(values, arrays, strict=True):
            column.extend(array.to_pylist())
    named = [_named(column, names) for column, names in zip(values, _class_names(schema, paths), strict=True)]
    return Cells(unit="row", numbers=range(1, len(values[0]) + 1), columns=named)


def _open(data: bytes, form: str, columns: Sequence[str]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if form == "parquet":
        file = pq.ParquetFile(io.BytesIO(data))
        schema = file.schema_arrow
        roots = {path[0] for name in columns if (path := _find_path(schema, name))}
        return schema, file.iter_batches(batch_size=_BATCH_ROWS, columns=sorted(roots))
    if data.startswith(b"ARROW1"):
        reader = pa.ipc.open_file(pa.BufferReader(data))
        return reader.schema, (reader.get_batch(place) for place in range(reader.num_record_batches))
    stream = pa.ipc.open_stream(pa.BufferReader(data))
    return stream.schema, iter(stream)


def _iter_arrays(
    data: bytes, form: str, columns: Sequence[str], paths: Sequence[list[str] | None]
) -> Iterator[list[pa.Array]]:
    """Yield these columns or nested fields of each batch. Fields of a null struct are null, too."""
    for batch in _open(data, form, columns)[1]:
        yield [
            functools.reduce(
                lambda array, name: array.flatten()[array.type.get_field_index(name)],
                path[1:],
                batch.column(batch.schema.names.index(path[0])),
            )
            for path in paths
            if path is not None
        ]


def _python_size(column: pa.Array) -> int:
    kind, size = column.type, _VALUE_BYTES * len(column)
    if pa.types.is_dictionary(kind):
        try:
            lengths = pc.call_function("binary_length", [column.dictionary])
        except pa.ArrowNotImplementedError:
            return size + len(column) * (column.dictionary.nbytes // max(1, len(column.dictionary)))
        return size + (pc.call_function("sum", [lengths.take(column.indices)]).as_py() or 0)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return size + _python_size(column.flatten())
    if pa.types.is_struct(kind):
        return size + sum(map(_python_size, column.flatten()))
    return size + column.nbytes


def _find_path(schema: pa.Schema, name: str) -> list[str] | None:
    """Split the name of a column or nested field: ["translation", "en"] for `translation.en`.

    Return None if there is no such field.
    """
    if name in schema.names:
        if schema.names.count(name) > 1:
            raise RowsError([f"expected one column '{name}', got {schema.names.count(name)}"])
        return [name]
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        root, rest = ".".join(parts[:end]), parts[end:]
        if schema.names.count(root) == 1 and _has_fields(schema.field(root).type, rest):
            return [root, *rest]
    return None


def _has_fields(kind: pa.DataType, keys: list[str]) -> bool:
    for key in keys:
        if not pa.types.is_struct(kind) or kind.get_field_index(key) < 0:
            return False
        kind = kind.field(key).type
    return True


def _leaves(schema: pa.Schema) -> list[str]:
    """Return the names of all columns and nested fields, such as `translation.en`."""
    found = []
    for field in schema:
        fields = [field.type.field(place) for place in range(field.type.num_fields)]
        nested = [f"{field.name}.{each.name}" for each in fields] if pa.types.is_struct(field.type) else []
        found += nested or [field.name]
    return found


def _class_names(schema: pa.Schema, paths: Sequence[list[str] | None]) -> list[list[str] | None]:
    """Return the class names of each column or field, where Hugging Face `datasets` has stored them."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return [None for _ in paths]
    return [_names_at(features, path or []) for path in paths]


def _names_at(feature: Any, path: list[str]) -> list[str] | None:  # noqa: ANN401 -- a file may say anything
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


def _named(values: list[Any], names: Sequence[str] | None) -> list[Any]:
    """Replace class numbers by class names, and unknown numbers by None."""
    if names is None:
        return values

    def name(value: Any) -> Any:  # noqa: ANN401 -- whatever stands in a file
        if isinstance(value, list):
            return [name(each) for each in value]
        return names[value] if isinstance(value, int) and 0 <= value < len(names) else None

    return [name(value) for value in values]
