"""Reader of Parquet files, and of the Arrow files that Hugging Face `datasets` writes.

It also reads the class names that `datasets` stores with a column of class numbers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .cells import Cells, RowsError, find_key, max_bytes, missing_column, too_large

BATCH_ROWS = 256
"""The number of rows that become Python values at a time."""

_VALUE_BYTES = 50  # about what any Python value takes


@contextmanager
def damage_as_fault(form: str, what: str) -> Iterator[None]:
    """Raise RowsError in place of any exception that a damaged or too large file causes.

    `form` is the expected format, and `what` says what the file contains.
    """
    try:
        yield
    except RowsError:
        raise
    except MemoryError as error:
        raise RowsError([too_large(what)]) from error
    except Exception as error:  # a damaged file can raise anything
        raise RowsError([f"expected {form}, got: {type(error).__name__}: {error}"[:200]]) from error


def read_columnar(data: bytes, form: str, columns: Sequence[str]) -> Cells:
    """Return these columns of a Parquet or Arrow file.

    The name `translation.en` stands for a field of the struct column `translation`.

    Raise RowsError for an invalid file, and for rows that exceed the size limit in memory.
    """
    values, size = [list[Any]() for _ in columns], 0
    with damage_as_fault(form.capitalize(), "rows"):
        schema, batches = _open(data, form, columns)
        known = _flat(schema.empty_table()).schema.names
        if faults := [missing_column(name, known) for name in columns if name not in known]:
            raise RowsError(faults)
        if twice := [name for name in columns if known.count(name) > 1]:
            raise RowsError([f"expected one column '{name}', got {known.count(name)}" for name in twice])
        for batch in batches:
            batch.validate(full=True)
            flat = _flat(pa.Table.from_batches([batch]))
            chunks = [chunk for name in columns for chunk in flat.column(name).chunks]
            # a small compressed file can be huge in memory, so its size is estimated before the conversion
            size += sum(map(_python_size, chunks))
            if size > max_bytes():
                raise RowsError([too_large("rows")])
            for column, name in zip(values, columns, strict=True):
                column.extend(flat.column(name).to_pylist())
    named = [_named(column, _class_names(schema, name)) for column, name in zip(values, columns, strict=True)]
    return Cells(unit="row", numbers=range(1, len(values[0]) + 1), columns=named)


def _open(data: bytes, form: str, columns: Sequence[str]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if form == "parquet":
        file = pq.ParquetFile(io.BytesIO(data))
        return file.schema_arrow, file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns))
    if data.startswith(b"ARROW1"):
        reader = pa.ipc.open_file(pa.BufferReader(data))
        return reader.schema, (reader.get_batch(place) for place in range(reader.num_record_batches))
    stream = pa.ipc.open_stream(pa.BufferReader(data))
    return stream.schema, iter(stream)


def _flat(table: pa.Table) -> pa.Table:
    """Replace structs by their fields, named like `translation.en`. Fields of a null struct are null, too."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


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


def _class_names(schema: pa.Schema, column: str) -> list[str] | None:
    """Return the class names that Hugging Face `datasets` has stored for a column; None if it has none."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        feature = find_key(features, column)
    except (KeyError, ValueError, TypeError):
        return None
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
