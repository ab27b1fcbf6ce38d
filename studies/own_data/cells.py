"""Readers of CSV, tab-separated and JSON Lines files.

They return rows with the numbers of their lines. Only regular files are read, up to a size limit.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import hint, nearest, quoted
from ...storage.errors import UnreadableError
from ...storage.files import open_regular
from ..catalog.datasets import CorpusError
from ..text.units import plural

MOST_FAULTS = 5
"""The number of a file's faults that are listed; further ones are counted."""

USUAL_COLUMNS = ("text", "label", "source", "target")
"""The default names of a corpus's columns, which are also the keys that give other names."""

_MAX_NAMED = 12
_MAX_BESIDE = 1000  # files of a folder among which the nearest name is searched


class RowsError(CorpusError):
    """Error for faulty rows of a file. `faults` has the first messages, then the number of further ones."""

    def __init__(self, faults: Sequence[str]) -> None:
        more = len(faults) - MOST_FAULTS
        self.faults = (*faults[:MOST_FAULTS], *([f"… and {plural(more, 'more fault')}"] if more > 0 else []))
        super().__init__("\n".join(self.faults))


NumberedRows = Sequence[tuple[int, Sequence[Any]]]
"""The values of the requested columns in each row of a file, after the number of its line or row, from 1."""


MAX_DATA_VARIABLE = "ACTIVEMEM_MAX_DATA_GB"
"""The environment variable that raises the size limit."""

_DEFAULT_GB = 1.0
_GB = 10**9


def max_bytes() -> int:
    """Return the size limit of a user's file in bytes. It also limits the rows after decompression."""
    given = os.environ.get(MAX_DATA_VARIABLE, "").strip()
    try:
        size = float(given) if given else _DEFAULT_GB
        if not 0 < size < 10**6:
            raise ValueError
    except ValueError:
        raise CorpusError(
            f"{MAX_DATA_VARIABLE}: expected a number of gigabytes, got {given[:40]!r}"
        ) from None
    return int(size * _GB)


def too_large(what: str) -> str:
    """Return an error message for data above the size limit. It says how to raise the limit."""
    size = max_bytes() / _GB
    remedy = f"raise the limit, as in {MAX_DATA_VARIABLE}=8"
    return f"expected at most {size:g} GB of {what}, got more: {remedy}"


def read_limited(path: Path) -> bytes:
    """Return the bytes of a regular file of at most `max_bytes()`.

    Raise CorpusError for anything else, such as a device, a pipe or a folder, without reading it.
    """
    limit = max_bytes()
    with _opened(path) as file:
        # another program may write to the file meanwhile, so the size is checked after the read, too
        data = b"" if os.fstat(file.fileno()).st_size > limit else file.read(limit + 1)
        if len(data) > limit or os.fstat(file.fileno()).st_size > limit:
            raise CorpusError(f"{path}: {too_large('data')}")
        return data


def digest_in_pieces(path: Path) -> str:
    """Return the SHA-256 of a regular file of any size; raise CorpusError for anything else."""
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType] -- has `readinto`


def _where(path: Path) -> str:
    if "{" in path.name:
        return ": a hole cannot name a file, because files are read before holes are filled: write its name"
    folder = path.absolute().parent
    if not folder.is_dir():
        return f": there is no folder {folder}; paths are relative to the study file"
    beside = [each.stem for each in islice(folder.iterdir(), _MAX_BESIDE) if each.suffix == path.suffix]
    near = nearest(path.stem, beside)
    named = f"; nearest: {near}{path.suffix}" if near else ""
    return f" in {folder}{named}; paths are relative to the study file"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with open_regular(path) as file:
            yield file
    except CorpusError:  # from the caller, and a ValueError too
        raise
    except FileNotFoundError as error:
        raise CorpusError(f"{path}: expected a file, got none{_where(path)}") from error
    except UnreadableError as error:
        raise CorpusError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CorpusError(f"{path}: expected a file: {reason}") from error


def missing_column(wanted: str, found: Sequence[str]) -> str:
    """Return the message for a missing column, with the columns that exist."""
    names = ", ".join(f"'{quoted(name)}'" for name in found[:_MAX_NAMED])
    names += f" and {len(found) - _MAX_NAMED:,} more" if len(found) > _MAX_NAMED else ""
    message = f"expected a column '{wanted}', got {names or 'none'}"
    near = nearest(wanted, found)
    if wanted in USUAL_COLUMNS and found:
        return f'{message}; name your column in corpus, as in {wanted} = "{near or "my column"}"'
    return f"{message}; nearest: {near}" if near and len(found) > _MAX_NAMED else message


csv.field_size_limit(sys.maxsize)  # a field may be a whole document


def read_delimited(text: str, columns: Sequence[str], form: str) -> NumberedRows:
    """Return these columns of a CSV or tab-separated file with a header line.

    Without `columns`, return the first two fields of each line, since no line is a header. Raise RowsError if
    a row is invalid.
    """
    rows, line = list[tuple[int, list[str]]](), 1
    plain = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if form == "tsv" else {}
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, **plain)
    try:
        for row in reader:
            if row:
                rows.append((line, row))
            # a quoted field may span lines, so the next row begins after the last line that was read
            line = reader.line_num + 1
    except csv.Error as error:
        raise RowsError([f"line {line:,}: expected valid quotes around fields, got: {error}"]) from error
    if columns:
        header = rows.pop(0)[1] if rows else []
        if faults := column_faults(columns, header):
            raise RowsError([f"line 1: {fault}" for fault in faults])
        places, expected = [header.index(name) for name in columns], len(header)
    else:
        places, expected = [0, 1], 2
    if faults := [
        f"line {line:,}: expected {expected} columns, got {len(row)}"
        for line, row in rows
        if (len(row) != expected if columns else len(row) < expected)
    ]:
        raise RowsError(faults)
    return [(line, [row[place] for place in places]) for line, row in rows]


def column_faults(columns: Sequence[str], found: Sequence[str]) -> list[str]:
    """Return a fault for each of these columns that a file lacks or has more than once."""
    faults = [missing_column(name, found) for name in columns if name not in found]
    twice = ((name, found.count(name)) for name in columns)
    return faults + [f"expected one column '{name}', got {count}" for name, count in twice if count > 1]


def read_json_lines(text: str, columns: Sequence[str]) -> NumberedRows:
    """Return the values of these keys on all non-blank lines; raise RowsError if a line is invalid."""
    rows, faults = list[tuple[int, list[Any]]](), list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.append(f"line {number:,}: expected JSON, got: {error}")
            continue
        if not isinstance(found, dict):
            faults.append(f"line {number:,}: expected an object, got {quoted(line.strip())}")
            continue
        try:
            rows.append((number, [find_key(found, name) for name in columns]))
        except KeyError as error:
            near = hint(error.args[0], list(found)[:100])
            faults.append(f"line {number:,}: expected a key '{error.args[0]}', got none{near}")
    if faults:
        raise RowsError(faults)
    return rows


def find_key(found: dict[str, Any], name: str) -> Any:  # noqa: ANN401 -- whatever stands in a file
    """Return the value of a key, which may be nested like `translation.en`; raise KeyError if missing."""
    if name in found:
        return found[name]
    root, _, rest = name.partition(".")
    inner = found.get(root)
    if not rest or not isinstance(inner, dict):
        raise KeyError(name)
    return find_key(inner, rest)
