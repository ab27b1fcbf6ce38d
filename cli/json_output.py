"""Output of commands as JSON, for programs: the fields of their results."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from typing import TYPE_CHECKING

from .output import SCHEMA

if TYPE_CHECKING:
    import polars as pl


def print_json(*results: object, **others: object) -> None:
    """Write the fields of results, and other values by name, as one JSON object after the schema version."""
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(_page(results, others)):
        # no control character may reach a terminal; JSON can express each as an escape
        escaped = (c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in piece)
        sys.stdout.write(piece if piece.isprintable() else "".join(escaped))
    print()


def print_json_line(result: object) -> None:
    """Write a command's result to standard output at once, as a line of JSON."""
    print("".join(json.JSONEncoder().iterencode(_page((result,), {}))), flush=True)


def _page(results: tuple[object, ...], others: Mapping[str, object]) -> dict[str, object]:
    page: dict[str, object] = {"schema": SCHEMA}
    for each in results:
        page |= _fields(each)
    return page | {name: as_json(value) for name, value in others.items()}


def as_json(value: object) -> object:  # noqa: PLR0911, PLR0912 -- a case for each kind of value
    """Return a result as plain data. Infinity and NaN become null.

    A dataclass becomes an object with its fields, a frame the list of its rows, and a table of results the
    list of its cells. A study becomes its name, a store its place. A trial has its id, its study and its
    levels.
    """
    import polars as pl
    from pydantic import BaseModel

    from ..reporting.tables.table import Table, iter_records
    from ..storage import Store
    from ..studies.resolve.trial import Trial
    from ..studies.study import Study

    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return str(value)
        case BaseModel():
            return as_json(value.model_dump(mode="json"))
        case Trial():
            return {"id": value.id, "study": value.study, "levels": as_json(value.levels)}
        case Study():
            return value.name
        case Store():
            return str(value.place)
        case Mapping():
            return {str(name): as_json(each) for name, each in value.items()}
        case Table():
            return as_json(list(iter_records(value)))
        case pl.DataFrame():
            return _FrameRows(value)
        case list() | tuple() | set() | frozenset():
            return list(map(as_json, value))
        case _ if is_dataclass(value):
            return _fields(value)
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)  # such as a path


def _fields(result: object) -> dict[str, object]:
    assert is_dataclass(result), "a result has fields"
    return {each.name: as_json(getattr(result, each.name)) for each in fields(result)}


class _FrameRows(list[object]):
    """The rows of a frame as plain data. Each is made when it is written, which takes little memory."""

    def __init__(self, frame: pl.DataFrame) -> None:
        super().__init__()
        self._frame = frame

    def __len__(self) -> int:
        return self._frame.height

    def __iter__(self) -> Iterator[object]:
        return map(as_json, self._frame.iter_rows(named=True))
