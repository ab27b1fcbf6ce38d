"""Formats of data files: CSV, tab-separated values, JSON Lines, Parquet, and line-aligned texts.

Rows come with the number of their line or row, from 1. A fault takes the place of a row that cannot be read.
Polars reads none of these files: it reports faults without their lines, joins rows at a stray quote, keeps
one of two equal keys, and a damaged Parquet file can end the process.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ActivememError, hint, nearest, printable, quoted, replace_unprintable
from ..text.units import format_bytes, listed
from .files import RAISE_LIMIT, max_bytes

if TYPE_CHECKING:
    import pyarrow as pa

USUAL_COLUMNS = ("text", "label", "source", "target")
"""The default names of a corpus's columns, which are also the keys that give other names."""

_MAX_NAMED = 12
_SHOWN = 40


class FaultyValueError(ActivememError):
    """Error for a value, a row or a file that is not as expected.

    Faults that differ only in `got` are reported in one message. `advice` follows it. A fault of a whole file
    is not of one row, so further rows may be unread.
    """

    def __init__(self, expected: str, got: str, advice: str = "", *, of_file: bool = False) -> None:
        self.of_file = of_file
        # names of columns and the words of libraries contain whatever stands in a file
        lines = (" ".join(replace_unprintable(text).splitlines()) for text in (expected, got, advice))
        self.expected, self.got, self.advice = lines
        super().__init__(f"expected {self.expected}, got {self.got}{self.advice}")


def shown(value: Any) -> str:  # noqa: ANN401 -- whatever stands in a file
    """Return the beginning of a value in printable characters, for a message."""
    if value is None or value == "":
        return "an empty text" if value == "" else "none"
    text = repr(value[:_SHOWN] if isinstance(value, str | bytes | list) else value)
    text = printable(text[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


NumberedRows = Iterator[tuple[int, Sequence[Any] | FaultyValueError]]
"""The values of the requested columns in each row of a file, after the number of its line or row.

A fault takes the place of a missing value. A fault of the whole file has the number 0.
"""


def iter_rows(form: str, data: Sequence[bytes], columns: Sequence[str]) -> NumberedRows:
    """Yield these columns of a file, or of two line-aligned files.

    `form` is csv, tsv, jsonl, parquet, lines, or pairs: tab-separated values without a line of names, whose
    first two columns are read.
    """
    if form == "parquet":
        yield from _parquet_rows(data[0], columns)
        return
    texts = [each.decode().removeprefix("\ufeff") for each in data]
    if form == "lines":
        yield from _aligned_lines(*texts)
    elif form == "jsonl":
        yield from _json_lines(texts[0], columns)
    else:
        yield from _delimited_rows(texts[0], columns, form)


def _aligned_lines(source: str, target: str) -> NumberedRows:
    sides = [
        [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] for text in (source, target)
    ]
    lines, others = map(len, sides)
    if lines != others:
        expected = "equally many lines in both files"
        yield 0, FaultyValueError(expected, f"{lines:,} and {others:,}", of_file=True)
    else:
        yield from enumerate(zip(*sides, strict=True), start=1)


csv.field_size_limit(sys.maxsize)  # a field may be a whole document


def _delimited_rows(text: str, columns: Sequence[str], form: str) -> NumberedRows:
    plain = {} if form == "csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    rows, line = csv.reader(io.StringIO(text, newline=""), strict=True, **plain), 1
    places, width = [0, 1], 0
    try:
        for row in rows:
            if not row:
                pass
            elif columns and not width:
                if faults := column_faults(columns, row):
                    yield from ((line, fault) for fault in faults)
                    return
                places, width = [row.index(name) for name in columns], len(row)
            elif len(row) < 2 if not columns else len(row) != width:
                yield line, FaultyValueError(f"{width or 2} columns", f"{len(row)}")
            else:
                yield line, [row[place] for place in places]
            # a quoted field may span lines, so the next row begins after the last line that was read
            line = rows.line_num + 1
    except csv.Error as error:
        yield line, FaultyValueError("valid quotes around fields", str(error), of_file=True)
    if columns and not width:
        yield from ((1, fault) for fault in column_faults(columns, ()))


def column_faults(columns: Sequence[str], found: Sequence[str]) -> list[FaultyValueError]:
    """Return a fault for each of these columns that a file lacks or has more than once."""
    counts = {name: found.count(name) for name in columns}
    return [
        FaultyValueError(f"one column '{name}'", f"{count}", of_file=True)
        if count
        else _missing_column(name, found)
        for name, count in counts.items()
        if count != 1
    ]


def _missing_column(wanted: str, found: Sequence[str]) -> FaultyValueError:
    names = ", ".join(f"'{quoted(name)}'" for name in found[:_MAX_NAMED])
    names += f" and {len(found) - _MAX_NAMED:,} more" if len(found) > _MAX_NAMED else ""
    near, advice = nearest(wanted, found), ""
    if wanted in USUAL_COLUMNS and found:
        advice = f'; name your column in corpus, as in {wanted} = "{near or "my column"}"'
    elif near and len(found) > _MAX_NAMED:
        advice = f"; nearest: {near}"
    return FaultyValueError(f"a column '{wanted}'", names or "none", advice, of_file=True)


def _json_lines(text: str, columns: Sequence[str]) -> NumberedRows:
    first = text.lstrip().partition("\n")[0].rstrip()
    if (first.startswith("[") and not first.endswith("]")) or first == "{":
        got = "an array of objects" if first.startswith("[") else "one over several lines"
        yield 1, FaultyValueError("a JSON object on each line", got, of_file=True)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line, object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            yield number, FaultyValueError("JSON", _json_words(error))
            continue
        if not isinstance(found, dict):
            yield number, FaultyValueError("an object", quoted(line.strip()))
            continue
        values = [_value_or_fault(found, name) for name in columns]
        if columns[1:] and all(isinstance(each, FaultyValueError) for each in values):
            near = hint(columns[0], list(found)[:100])
            yield number, FaultyValueError(f"the keys {listed(map(repr, columns))}", "none of them", near)
        else:
            yield number, values


def _json_words(error: Exception) -> str:
    """Return what is wrong with JSON that cannot be read, without the words of Python."""
    if isinstance(error, RecursionError):
        return "brackets that are nested too deep"
    if not isinstance(error, ValueError):
        return "JSON of another structure"
    if isinstance(error, json.JSONDecodeError):
        return f"a fault at column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
    return "a whole number of thousands of digits" if "int_max_str_digits" in str(error) else str(error)


def _value_or_fault(found: dict[str, Any], name: str) -> Any:  # noqa: ANN401 -- whatever stands in a file
    try:
        return find_key(found, name)
    except KeyError as error:  # of a nested key, the part that is missing
        return FaultyValueError(f"a key '{error.args[0]}'", "none", hint(error.args[0], list(found)[:100]))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key '{quoted(next(name for name in names if names.count(name) > 1))}' twice")
    return found


def find_key(found: dict[str, Any], name: str) -> Any:  # noqa: ANN401 -- whatever stands in a file
    """Return the value of a key, which may be nested like `translation.en`; raise KeyError if missing."""
    if name in found:
        return found[name]
    root, _, rest = name.partition(".")
    inner = found.get(root)
    if not rest or not isinstance(inner, dict):
        raise KeyError(name)
    return find_key(inner, rest)


_BATCH_ROWS = 256
_MAX_EXPANSION = 100
"""How many times larger than its file the values of a Parquet file may be, if they take much of the limit."""

_MUCH = 0.1
"""The share of the size limit that the values of any Parquet file may take."""

_BYTES_PER_VALUE, _VALUES_PER_BYTE = 1_000, 16
"""A Parquet file may have a value for so many bytes of the size limit, or so many for each of its bytes.

A file of nulls, or of one value, has millions for each kilobyte.
"""


def _parquet_rows(data: bytes, columns: Sequence[str]) -> NumberedRows:
    number = 0
    for batch in iter_parquet(data, columns, limit=max_bytes()):
        if isinstance(batch, FaultyValueError):
            yield 0, batch
            continue
        for row in zip(*batch, strict=True):
            number += 1
            yield number, row


def iter_parquet(
    data: bytes | Path, columns: Sequence[str], *, limit: float = math.inf
) -> Iterator[list[list[Any]] | FaultyValueError]:
    """Yield the values of these columns of a Parquet file, a batch of rows at a time, or faults of the file.

    The name `translation.en` means a field of the struct column `translation`. Class numbers of Hugging Face
    `datasets` become the names of the classes. A file whose values take more than `limit` bytes is a fault,
    and so is one whose values are far larger or far more than such a file can be expected to have.
    """
    try:
        yield from _batches(data, columns, limit)
    except FaultyValueError as fault:
        yield fault
    except MemoryError:
        yield _excess(max_bytes(), data)
    except Exception as error:  # noqa: BLE001 -- a damaged file can raise anything
        yield FaultyValueError("Parquet", f"{type(error).__name__}: {error}"[:200])


def _batches(
    data: bytes | Path, columns: Sequence[str], limit: float
) -> Iterator[list[list[Any]] | FaultyValueError]:
    import pyarrow as pa  # noqa: PLC0415 -- loads slowly
    import pyarrow.parquet as pq  # noqa: PLC0415

    def flat(table: pa.Table) -> pa.Table:
        # fields of structs are columns named like `translation.en`
        while any(pa.types.is_struct(field.type) for field in table.schema):
            table = table.flatten()
        return table

    with pq.ParquetFile(io.BytesIO(data) if isinstance(data, bytes) else data) as file:
        schema, metadata = file.schema_arrow, file.metadata
        if faults := column_faults(columns, flat(schema.empty_table()).schema.names):
            yield from faults
            return
        paths = [file.schema.column(place).path for place in range(metadata.num_columns)]
        inside = tuple(f"{name}." for name in columns)
        chunks = [
            metadata.row_group(group).column(place)
            for place, path in enumerate(paths)
            if path in columns or path.startswith(inside)
            for group in range(metadata.num_row_groups)
        ]
        values, size = sum(each.num_values for each in chunks), _size(data)
        if values > (few := max(max_bytes() // _BYTES_PER_VALUE, _VALUES_PER_BYTE * size)):
            expected = f"at most {few:,} values in a file of {size:,} bytes"
            yield FaultyValueError(expected, f"{values:,}", f": {RAISE_LIMIT}")
            return
        most = min(limit, max(_MUCH * max_bytes(), _MAX_EXPANSION * size))
        if sum(each.total_uncompressed_size for each in chunks) > most:  # before they are in memory
            yield _excess(most, data)
            return
        # each value may be a text that the file has only once, of at most the size of its chunk
        largest = max((each.total_uncompressed_size for each in chunks), default=1)
        rows = int(min(max(_MUCH * max_bytes() // max(largest, 1), 1), _BATCH_ROWS))
        names, taken = [_class_names(schema, name) for name in columns], 0
        for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
            batch.validate(full=True)
            table = flat(pa.Table.from_batches([batch]))
            found = [table.column(name).combine_chunks() for name in columns]
            taken += sum(map(_bytes_of, found))
            if taken > most:
                yield _excess(most, data)
                return
            yield [_named(each.to_pylist(), known) for each, known in zip(found, names, strict=True)]


def _bytes_of(array: pa.Array) -> int:
    """Return the bytes of an array, in which each text of a dictionary counts as often as it occurs."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if pa.types.is_dictionary(array.type) and pa.types.is_string(array.type.value_type):
        lengths = pc.call_function("binary_length", [array.dictionary]).take(array.indices)
        return pc.call_function("sum", [lengths]).as_py() or 0
    return array.nbytes


def _size(data: bytes | Path) -> int:
    return len(data) if isinstance(data, bytes) else data.stat().st_size


def _excess(most: float, data: bytes | Path) -> FaultyValueError:
    what = f"at most {format_bytes(most)} of values in a file of {_size(data):,} bytes"
    return FaultyValueError(what, "more", f": {RAISE_LIMIT}")


def _class_names(schema: pa.Schema, column: str) -> list[str] | None:
    """Return the class names that Hugging Face `datasets` has stored for a column; None if it has none."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    try:
        feature = find_key(json.loads(metadata)["info"]["features"], column) if metadata else None
    except KeyError:
        return None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FaultyValueError(
            "features in the metadata of Hugging Face datasets", _json_words(error)
        ) from error
    if isinstance(feature, dict) and feature.get("_type") in ("Sequence", "List", "LargeList"):
        feature = feature.get("feature")
    elif isinstance(feature, list) and feature:
        feature = feature[0]
    if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
        return None
    names = feature.get("names")
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def _named(values: list[Any], names: Sequence[str] | None) -> list[Any]:
    """Replace class numbers by class names, and unknown numbers by None. Names stay."""
    if names is None:
        return values

    def name(value: Any) -> Any:  # noqa: ANN401 -- whatever stands in a file
        if isinstance(value, list):
            return [name(each) for each in value]
        if isinstance(value, str):
            return value
        return names[value] if isinstance(value, int) and 0 <= value < len(names) else None

    return [name(value) for value in values]
