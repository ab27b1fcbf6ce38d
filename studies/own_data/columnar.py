"""Parquet, and Arrow as Hugging Face `datasets` writes it; classes get the names that it has for them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .cells import Cells, RowsError, missing_column

if TYPE_CHECKING:
    import pyarrow as pa

_FEATURES = b"huggingface"
"""The key below which `datasets` describes its columns in the metadata of a schema."""


def read_columnar(data: bytes, form: str, columns: Sequence[str]) -> Cells:
    """These columns of a file whose form is parquet or arrow; RowsError."""
    import pyarrow as pa  # noqa: PLC0415 -- most studies have no such file

    try:
        table = _read_parquet(data) if form == "parquet" else _read_arrow(data)
    except (pa.ArrowException, OSError) as error:
        raise RowsError([f"expected {form.capitalize()}, got: {error}"]) from error
    found = table.column_names
    if faults := [missing_column(name, found) for name in columns if name not in found]:
        raise RowsError(faults)
    names = _class_names(table.schema.metadata)
    values = [_named(table.column(name).to_pylist(), names.get(name)) for name in columns]
    return Cells(unit="row", numbers=range(1, table.num_rows + 1), columns=values)


def _read_parquet(data: bytes) -> pa.Table:
    import pyarrow.parquet as pq  # noqa: PLC0415 -- as above

    return pq.read_table(io.BytesIO(data))


def _read_arrow(data: bytes) -> pa.Table:
    """A stream of record batches, as `datasets` writes it, or a file of them."""
    import pyarrow as pa  # noqa: PLC0415 -- as above

    opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    return opened(pa.BufferReader(data)).read_all()


def _class_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, list[str]]:
    """The names of the classes of each column that `datasets` has described as such, or as lists of them."""
    try:
        features = json.loads((metadata or {})[_FEATURES])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return {}
    described = {name: _element(feature) for name, feature in features.items()}
    return {
        name: each["names"]
        for name, each in described.items()
        if isinstance(each, dict) and each.get("_type") == "ClassLabel"
    }


def _element(feature: Any) -> Any:  # noqa: ANN401 -- whatever stands in a file
    """What a column, or each element of its lists, is said to be."""
    if isinstance(feature, dict) and feature.get("_type") in ("Sequence", "List", "LargeList"):
        return feature.get("feature")
    return feature[0] if isinstance(feature, list) and feature else feature


def _named(values: Sequence[Any], names: Sequence[str] | None) -> Sequence[Any]:
    """Values with a name for each number of a class; one without a name is no class, as `datasets` has it."""
    if names is None:
        return values

    def name(value: Any) -> Any:  # noqa: ANN401 -- as above
        if isinstance(value, list):
            return [name(each) for each in value]
        return names[value] if isinstance(value, int) and 0 <= value < len(names) else None

    return [name(value) for value in values]
