"""Reader of Parquet files, and of the class names that Hugging Face `datasets` stores with a column."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .cells import NumberedRows, RowsError, column_faults, find_key, max_bytes, too_large

BATCH_ROWS = 256
"""The number of rows that become Python values at a time."""


@contextmanager
def damage_as_fault(what: str) -> Iterator[None]:
    """Raise RowsError in place of any exception that a damaged or too large Parquet file causes.

    `what` says what the file contains.
    """
    try:
        yield
    except RowsError:
        raise
    except MemoryError as error:
        raise RowsError([too_large(what)]) from error
    except Exception as error:  # a damaged file can raise anything
        raise RowsError([f"expected Parquet, got: {type(error).__name__}: {error}"[:200]]) from error


def read_parquet(data: bytes, columns: Sequence[str]) -> NumberedRows:
    """Return these columns of a Parquet file.

    The name `translation.en` means a field of the struct column `translation`.

    Raise RowsError for an invalid file, and for rows that exceed the size limit in memory.
    """
    values, size = [list[Any]() for _ in columns], 0
    with damage_as_fault("rows"):
        file = pq.ParquetFile(io.BytesIO(data))
        schema = file.schema_arrow
        if faults := column_faults(columns, _flat(schema.empty_table()).schema.names):
            raise RowsError(faults)
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
            batch.validate(full=True)
            flat = _flat(pa.Table.from_batches([batch]))
            for column, name in zip(values, columns, strict=True):
                found = flat.column(name)
                if pa.types.is_dictionary(found.type):
                    found = found.cast(found.type.value_type)
                # a small compressed file can be huge in memory
                size += found.nbytes
                if size > max_bytes():
                    raise RowsError([too_large("rows")])
                column.extend(found.to_pylist())
    named = [_named(column, _class_names(schema, name)) for column, name in zip(values, columns, strict=True)]
    return list(enumerate(zip(*named, strict=True), start=1))


def _flat(table: pa.Table) -> pa.Table:
    """Replace structs by their fields, named like `translation.en`. Fields of a null struct are null, too."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


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
