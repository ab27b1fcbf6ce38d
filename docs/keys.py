"""What the documents take from the code of studies: the keys of each table of a study file."""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from activemem.studies import settings
from activemem.studies.settings import Section

TABLES: Mapping[str, type[Section]] = {
    "study": settings.StudySettings,
    "model": settings.ModelSettings,
    "task": settings.TaskSettings,
    "train": settings.TrainSettings,
    "search": settings.SearchSettings,
}
"""Each table of a study file whose keys are known, with its model."""

_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any"}


def keys(table: str) -> str:
    """A Markdown table of a table's keys, those of inline tables by their dotted names."""
    lines = ["| key | type | default | meaning |", "| :-- | :-- | :-- | :-- |"]
    return "\n".join(lines + _rows(TABLES[table], ""))


def _rows(model: type[Section], before: str) -> list[str]:
    """A line for every key of a model, each inline table followed by its own keys."""
    rows: list[str] = []
    for key, field in model.model_fields.items():
        name = f"{before}{key}"
        rows.append(f"| `{name}` | {_type(field)} | {_default(field)} | {field.description} |")
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            rows += _rows(field.annotation, f"{name}.")
    return rows


def _type(field: FieldInfo) -> str:
    """What a key takes, with its bounds."""
    ends = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    bounds = [
        f"{word} {getattr(rule, end):g}"
        for rule in field.metadata
        for end, word in ends.items()
        if getattr(rule, end, None) is not None and abs(getattr(rule, end)) < 2**31
    ]
    return ", ".join([_plain(field.annotation), *bounds])


def _plain(kind: Any) -> str:  # noqa: ANN401 -- a type of any form
    """A type in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f'`"{word}"`' for word in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(_plain(one) for one in inner if one is not type(None))
    if origin is tuple:
        return f"list of {len(inner)}"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, Section)):
        return "table"
    return _PLAIN[kind]


def _default(field: FieldInfo) -> str:
    """The value of a key that is left out, as TOML has it."""
    if field.default is PydanticUndefined:
        return "required"
    match field.default:
        case None | Section():
            return "none" if field.default is None else "its keys'"
        case str():
            return f'`"{field.default}"`'
        case tuple():
            return f"`{list(field.default)}`"
        case {}:
            return "empty"
        case _:
            return f"`{field.default}`"


KEYS = {f"keys_{table}": partial(keys, table) for table in TABLES}
"""What can stand between the marks of a document, by name."""
